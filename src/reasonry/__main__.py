"""Run the command line with `python -m reasonry`."""

from .surfaces.cli import main

main()
