"""The terminal that tables and trees are drawn for."""

from __future__ import annotations

import shutil
import sys

from rich.console import Console


def open_console() -> Console:
    """Return what draws on standard output, as wide as its terminal.

    Left to itself rich takes every terminal that calls itself dumb to be 80 columns wide.
    """
    width, height = shutil.get_terminal_size()
    return Console(file=sys.stdout, highlight=False, width=width, height=height)
