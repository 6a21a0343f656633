"""The one drawing of lists: a table that fits the terminal, or lines of tab-separated values where nobody looks on.

Rule 1: in a terminal no word is broken and no line is longer than the screen; what has no room is cut with "…", or its
        column is left out, the least important first. The last column may wrap instead.
Rule 2: elsewhere a row is one line, its values are whole and stand between tabs, and there is no heading.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TextIO

from ...core.text import inert
from .arguments import local_time
from .output import print_inert_lines

if TYPE_CHECKING:
    from rich.console import Console

_GAP = 2
_STYLES: Mapping[str, str] = {
    "solved": "green",
    "answered": "green",
    "done": "green",
    "active": "cyan",
    "waiting": "cyan",
    "stopped": "yellow",
    "unsolved": "yellow",
    "error": "red",
    "failed": "red",
    "damaged": "bold red",
    "not usable": "red",
    "cancelled": "dim",
    "archived": "dim",
    "ended": "dim",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Args:
        heading: What stands above it in a terminal.
        of: What it shows of a row: a key, or a function of the row.
        kind: An `id` is shortened in a terminal, an `instant` is said as people say it.
        rank: 0: it is always shown; where there is no room, the column with the highest rank is left out first.
        narrowest: For a column of texts, the width down to which they are cut; None: its values are never cut.
        wraps: Whether its values continue in the next line rather than being cut; only for the last column.
        align_right: Whether its values are numbers.
    """

    heading: str
    of: str | Callable[[Any], Any]
    kind: Literal["text", "id", "instant"] = "text"
    rank: int = 0
    narrowest: int | None = None
    wraps: bool = False
    align_right: bool = False

    def read(self, row: Any) -> str:
        """Return what a row has in this column."""
        value = row.get(self.of) if isinstance(self.of, str) else self.of(row)
        return "" if value is None else " ".join(str(value).split())

    def shorten(self, value: str, ids: Mapping[str, str]) -> str:
        """Return a value as a terminal shows it."""
        if self.kind == "instant":
            return local_time(value)
        return ids.get(value, value) if self.kind == "id" else value


def print_table(columns: Sequence[Column], rows: Iterable[Any], ids: Mapping[str, str] = {}) -> None:
    """Print rows on standard output: as a table in a terminal, elsewhere as tab-separated values.

    Args:
        ids: How ids are shortened in a terminal.
    """
    cells = [[inert(column.read(row)) for column in columns] for row in rows]
    if not sys.stdout.isatty():
        print_inert_lines("\t".join(row) for row in cells)
        return
    cells = [[column.shorten(cell, ids) for column, cell in zip(columns, row, strict=True)] for row in cells]
    if cells:
        print_inert_lines(_draw(columns, cells))


def _draw(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> Iterable[str]:
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    console = open_console()
    widest = [max(map(cell_len, values)) for values in zip(*cells, strict=True)]
    # A column without values is left out.
    shown = [place for place, width in enumerate(widest) if width] or [len(columns) - 1]
    needed = {place: _narrowest(columns[place], widest[place]) for place in shown}
    while sum(needed.values()) + _GAP * (len(needed) - 1) > console.width:
        last = max(needed, key=lambda place: (columns[place].rank, place))
        if len(needed) == 1 or not columns[last].rank:
            break
        del needed[last]
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim")
    for place in needed:
        column = columns[place]
        table.add_column(
            Text(column.heading, no_wrap=True),
            justify="right" if column.align_right else "left",
            no_wrap=column.narrowest is None,
        )
    for row in cells:
        table.add_row(
            *(
                Text(
                    row[place],
                    _STYLES.get(row[place].partition(",")[0].lower(), ""),
                    no_wrap=not columns[place].wraps,
                    overflow="fold" if columns[place].wraps else "ellipsis",
                )
                for place in needed
            )
        )
    return draw_lines(console, table)


def _narrowest(column: Column, widest: int) -> int:
    natural = max(widest, len(column.heading))
    return natural if column.narrowest is None else min(column.narrowest, natural)


def open_console(stream: TextIO | None = None) -> Console:
    """Return what draws on a stream, standard output where none is named, as wide as its terminal.

    Left to itself rich takes every terminal that calls itself dumb to be 80 columns wide.
    """
    from rich.console import Console

    width, height = shutil.get_terminal_size()
    return Console(file=stream or sys.stdout, highlight=False, width=width, height=height)


def draw_lines(console: Console, drawing: Any) -> list[str]:
    """Return what rich draws, as lines."""
    with console.capture() as drawn:
        console.print(drawing)
    return [line.rstrip() for line in drawn.get().splitlines()]
