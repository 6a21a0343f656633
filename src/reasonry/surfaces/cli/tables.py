"""The one drawing of lists: a table that fits the terminal, or lines of tab-separated values where nobody looks on.

Rule 1: in a terminal no word is broken and no line is longer than the screen; what has no room is cut with "…", or its
        column is left out, the least important first. The last column may wrap instead.
Rule 2: elsewhere a row is one line, its values are whole and stand between tabs, and there is no heading.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.text import inert
from .output import print_inert_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

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


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        heading: What stands above it in a terminal.
        rank: 0: it is always shown; where there is no room, the column with the highest rank is left out first.
        narrowest: For a column of texts, the width down to which they are cut; None: its values are never cut.
        wraps: Whether its values go on in the next line rather than being cut; only for the last column.
        align_right: Whether its values are numbers.
    """

    heading: str
    rank: int = 0
    narrowest: int | None = None
    wraps: bool = False
    align_right: bool = False


Row = Sequence[str]
"""A value for each column."""


def print_table(columns: Sequence[Column], rows: Iterable[Row], whole: Iterable[Row] | None = None) -> None:
    """Print rows on standard output: as a table in a terminal, elsewhere as tab-separated values.

    Args:
        whole: The rows where nobody looks on, if those differ: whole ids, instants instead of "today".
    """
    if not sys.stdout.isatty():
        print_inert_lines("\t".join(map(_one_line, row)) for row in (rows if whole is None else whole))
        return
    drawn = [[_one_line(value) for value in row] for row in rows]
    from .terminal import open_console

    console = open_console()
    print_inert_lines(_draw(console, columns, drawn) if drawn else ())


def _one_line(value: str) -> str:
    return inert(" ".join(value.split()))


def _draw(console: Console, columns: Sequence[Column], rows: Sequence[Row]) -> Iterable[str]:
    from rich.text import Text

    texts = [[Text(value) for value in row] for row in rows]
    widest = [max(row[place].cell_len for row in texts) for place in range(len(columns))]
    # A column without values is left out.
    naturals = [
        width and max(width, len(column.heading)) for width, column in zip(widest, columns, strict=True)
    ]
    shown = _fit(columns, naturals, console.width)
    heading = [Text(column.heading, style="dim") for column in columns]
    for row in (heading, *texts):
        yield from _draw_row(console, columns, row, shown)


def _fit(columns: Sequence[Column], naturals: Sequence[int], width: int) -> dict[int, int]:
    """Return the places of the columns that are shown, each with its width."""
    shown = [place for place, natural in enumerate(naturals) if natural] or [len(naturals) - 1]
    while len(shown) > 1 and _narrowest_table(columns, naturals, shown) > width:
        last = max(shown, key=lambda place: (columns[place].rank, place))
        if not columns[last].rank:
            break
        shown.remove(last)
    widths = {place: _narrowest(columns[place], naturals[place]) for place in shown}
    room = width - sum(widths.values()) - _GAP * (len(shown) - 1)
    # Texts share what is left, and what one of them does not need goes to the others.
    wanting = sorted(
        (place for place in shown if widths[place] < naturals[place]), key=lambda at: naturals[at]
    )
    for count, place in enumerate(wanting):
        share = max(room, 0) // (len(wanting) - count)
        more = min(share, naturals[place] - widths[place])
        widths[place] += more
        room -= more
    for place in shown:
        if room < 0 and columns[place].narrowest is not None:
            fewer = min(-room, widths[place] - 1)
            widths[place] -= fewer
            room += fewer
    return widths


def _narrowest(column: Column, natural: int) -> int:
    return natural if column.narrowest is None else min(column.narrowest, natural)


def _narrowest_table(columns: Sequence[Column], naturals: Sequence[int], shown: Sequence[int]) -> int:
    return sum(_narrowest(columns[place], naturals[place]) for place in shown) + _GAP * (len(shown) - 1)


def _draw_row(
    console: Console, columns: Sequence[Column], row: Sequence[Text], widths: Mapping[int, int]
) -> Iterable[str]:
    from rich.text import Text

    *before, last = widths
    line = Text()
    for place in before:
        line.append_text(_fill(row[place], columns[place], widths[place])).append(" " * _GAP)
    room = max(widths[last], 1)
    if columns[last].wraps:
        indent = line.cell_len
        parts = list(row[last].wrap(console, room)) or [Text()]
    else:
        indent, parts = 0, [row[last]]
        parts[0].truncate(room, overflow="ellipsis")
    for number, part in enumerate(parts):
        yield _render(console, line + part if number == 0 else Text(" " * indent) + part)


def _fill(text: Text, column: Column, width: int) -> Text:
    style = _STYLES.get(text.plain.partition(",")[0].lower())
    if style is not None:
        text.stylize(style)
    text.truncate(width, overflow="ellipsis")
    text.align("right" if column.align_right else "left", width)
    return text


def _render(console: Console, line: Text) -> str:
    line.rstrip()
    with console.capture() as drawn:
        console.print(line, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)
    return drawn.get().rstrip("\n")
