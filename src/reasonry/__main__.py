"""`python -m reasonry` is the command line."""

from .surfaces.cli import main

main()
