"""An example for every command: what was typed, and what it printed in a terminal of 80 columns.

They stand in `examples.txt`, in the order in which they were run one after another, over one store; a test runs them
again. What an example leaves out, and what differs each time, is "…".
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_SECTION = "## "


@cache
def read_examples() -> dict[str, str]:
    """Return the examples by command, without its first word: `runs list`."""
    text = Path(__file__).with_suffix(".txt").read_text("utf-8")
    sections = (part.partition("\n") for part in ("\n" + text).split("\n" + _SECTION)[1:])
    return {name.strip(): example.strip("\n") for name, _, example in sections}
