"""Prints the output of commands: one JSON document for programs, or text and tables for people.

Rule 1: in a terminal, a table is never wider than the screen. A value that is too long is cut with "…", or it wraps.
        If the space left is less than a column's minimum width, the column and all later columns are left out.
Rule 2: elsewhere, each row is one line of uncut values separated by tabs. A heading line is printed only on request.
"""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from ...errors import UsageError
from ...guided.export import plain_value
from ...text import escape_json, escape_unseen

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_MAX_CHOICES = 40


def print_document(document: Any) -> None:
    """Print one JSON document on standard output, and nothing else."""
    _write(sys.stdout, _json_text(document))


def print_part(document: Any, path: str) -> None:
    """Print the part of a document at a path such as `questions.0.prompt`.

    A string is printed with control characters escaped. null prints nothing. Any other part is printed as JSON.

    Raises:
        UsageError: The document has no such part. The error's `choices` lists the names that exist.
    """
    found = msgspec.to_builtins(document)
    for name in path.split("."):
        found = dict(enumerate(found)) if isinstance(found, list) else found
        members = {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}
        if name not in members:
            choices = [*members][:_MAX_CHOICES]
            there = ", ".join(choices) or "nothing in it"
            message = f"--field {path}: there is no {name[:40]!r}; there is {there}"
            raise UsageError(message, option="field", choices=choices)
        found = members[name]
    if found is not None:
        print_text(found if isinstance(found, str) else _json_text(found))


def print_line(*lines: str, stream: TextIO | None = None) -> None:
    """Print lines with control characters escaped. In a terminal, long lines wrap."""
    out = stream or sys.stdout
    print_inert_lines(wrap_lines(map(escape_unseen, lines), out), out)


def print_note(*lines: str) -> None:
    """Print notes for people on standard error. Lines are escaped and wrapped as in `print_line`."""
    print_line(*lines, stream=sys.stderr)


def print_text(text: str) -> None:
    """Print a text with control characters escaped. Lines do not wrap, so that other programs can use the text."""
    _write(sys.stdout, escape_unseen(text))


def print_inert_lines(lines: Iterable[str], stream: TextIO | None = None) -> None:
    """Print lines without escaping. Their control characters must already be escaped, except for color codes."""
    rest = iter(lines)
    while batch := list(itertools.islice(rest, 1_000)):
        _write(stream or sys.stdout, "\n".join(batch))


def write_text(path: Path, content: Any) -> None:
    """Write a string to a file unchanged. Write any other content as JSON with escapes for invisible characters."""
    text = content if isinstance(content, str) else _json_text(content) + "\n"
    with _refuse_unwritable(path):
        path.write_text(text, "utf-8", newline="\n")


def _json_text(document: Any) -> str:
    try:
        text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    except UnicodeEncodeError:
        # The document has lone surrogates, for example from a file name that is not UTF-8.
        text = json.dumps(document, ensure_ascii=False, indent=2)
    # In ASCII JSON, DEL is the only invisible character. Searching for every invisible character takes seconds.
    return text if text.isascii() and "\x7f" not in text else escape_json(text)


def check_writable(path: Path) -> None:
    """Check that `write_text` can write to a path, and leave the path unchanged."""
    with _refuse_unwritable(path):
        there = path.exists()
        if there and not (path.is_file() or path.is_dir()):
            return  # opening a pipe would affect its reader
        path.open("ab").close()
        if not there and not path.is_symlink():
            path.unlink()


@contextmanager
def _refuse_unwritable(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", path=str(path)) from None


def wrap_lines(lines: Iterable[str], stream: TextIO) -> Iterator[str]:
    """Wrap lines between words for a terminal. For other streams, the lines stay unchanged."""
    width = shutil.get_terminal_size().columns if stream.isatty() else 0
    # A word that is wider than the terminal, such as a path, stays whole, so that the user can copy the word.
    wrap = partial(textwrap.wrap, width=width, break_long_words=False, break_on_hyphens=False)
    for line in (part for text in lines for part in text.split("\n")):
        indent = len(line) - len(line.lstrip()) + 2 * (line[:1] == " " or stream is sys.stderr)
        fits = width < 20 or len(line) <= width
        yield from [line] if fits else wrap(line, subsequent_indent=" " * min(indent, width // 2))


def confirm(question: str) -> bool | None:
    """Ask the user a yes-or-no question in the terminal. Return None if there is no terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    print_note(question)
    _write(sys.stderr, "yes or no [no]: ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def confirm_deletion(question: str) -> bool:
    """Ask the user to confirm a deletion. Raise `UsageError` if there is no terminal."""
    confirmed = confirm(question)
    if confirmed is None:
        raise UsageError("no terminal to confirm the deletion; --yes deletes without asking", option="yes")
    if not confirmed:
        print_note("nothing was deleted")
    return confirmed


def _write(stream: Any, text: str, end: str = "\n") -> None:
    stream.write(text + end)
    stream.flush()


# -- tables

_GAP = 2
_STYLES: Mapping[str, Sequence[str]] = {
    "green": ("solved", "answered", "done"),
    "cyan": ("active", "waiting"),
    "yellow": ("stopped", "unsolved"),
    "red": ("error", "failed", "not usable"),
    "bold red": ("damaged",),
    "dim": ("cancelled", "archived", "ended"),
}
_STYLE_OF = {word: style for style, words in _STYLES.items() for word in words}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Args:
        heading: The heading of the column.
        of: The value to show: a key or a function of the row.
        in_terminal: Formats a value for a terminal, for example by shortening an id.
        narrowest: The minimum width of the column when space is short. None means that the column keeps its full width.
        wraps: Whether long values wrap instead of being cut.
        align_right: Whether values are aligned to the right, as numbers are.
    """

    heading: str
    of: str | Callable[[Any], Any]
    in_terminal: Callable[[str], str] = str
    narrowest: int | None = None
    wraps: bool = False
    align_right: bool = False

    def read(self, row: Any) -> str:
        """Return the value of a row in this column."""
        value = row.get(self.of) if isinstance(self.of, str) else self.of(row)
        return "" if value is None else " ".join(plain_value(value).split())


_MEMBERS = (
    Column("", lambda member: member[0].replace("_", " ")),
    Column("", lambda member: member[1], narrowest=8, wraps=True),
)


def print_table(columns: Sequence[Column], rows: Iterable[Any], *, is_headed: bool = False) -> None:
    """Print rows on standard output: as a table in a terminal, as tab-separated values elsewhere.

    Args:
        is_headed: Whether tab-separated output also has a heading line.
    """
    forms = [column.in_terminal if sys.stdout.isatty() else str for column in columns]
    cells = [
        [escape_unseen(form(column.read(row))) for column, form in zip(columns, forms, strict=True)]
        for row in rows
    ]
    if not sys.stdout.isatty():
        heads = [[column.heading for column in columns]] if is_headed else []
        print_inert_lines("\t".join(row) for row in [*heads, *cells])
    elif cells:
        print_inert_lines(_draw(columns, cells))


def print_record(record: Mapping[str, Any]) -> None:
    """Print the members of a document as a table. A member that is a list of records gets a table of its own below."""
    tables = {
        name: rows
        for name, rows in record.items()
        if isinstance(rows, list | tuple) and isinstance(next(iter(rows), None), dict)
    }
    print_table(_MEMBERS, (member for member in record.items() if member[0] not in tables))
    for name, rows in tables.items():
        print_line("", name)
        print_table(columns_of(*dict.fromkeys(name for row in rows for name in row)), rows)


def columns_of(*names: str) -> list[Column]:
    """Return a table column for each key in `names`. Long values wrap, except in the first column."""
    first, *others = names
    wrapping = [Column(name.upper(), name, narrowest=8, wraps=True) for name in others]
    return [Column(first.upper(), first), *wrapping]


def local_time(instant: str) -> str:
    """Format an ISO 8601 time as local time: `21 Nov 14:02` in this year, `2025-11-21` in any other year."""
    try:
        local = datetime.fromisoformat(instant).astimezone()
    except (ValueError, OverflowError, OSError):
        # An imported file may name the year 1, which has no local time.
        return instant[:10]
    is_recent = local.year == time.localtime(time.time()).tm_year
    return f"{local:%d %b %H:%M}" if is_recent else local.date().isoformat()


def _draw(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> Iterable[str]:
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    console = open_console()
    widest = [max(map(cell_len, values)) for values in zip(*cells, strict=True)]
    room, shown = console.width + _GAP, list[int]()
    # A column without values is left out.
    for place in (place for place, width in enumerate(widest) if width):
        natural, narrowest = max(widest[place], len(columns[place].heading)), columns[place].narrowest
        room -= min(narrowest or natural, natural) + _GAP
        if room >= 0 or not shown:
            shown.append(place)
    is_headed = any(column.heading for column in columns)
    table = Table(
        box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim", show_header=is_headed
    )
    for column in (columns[place] for place in shown or [0]):
        table.add_column(
            Text(column.heading, no_wrap=True),
            justify="right" if column.align_right else "left",
            no_wrap=column.narrowest is None,
        )
    for row in cells:
        table.add_row(*(_cell(row[place], wraps=columns[place].wraps) for place in shown or [0]))
    return draw_lines(console, table)


def _cell(value: str, *, wraps: bool) -> Text:
    from rich.text import Text

    style = _STYLE_OF.get(value.partition(",")[0].lower(), "")
    return Text(value, style, no_wrap=not wraps, overflow="fold" if wraps else "ellipsis")


def open_console(stream: TextIO | None = None) -> Console:
    """Return a `rich` console that has the terminal's width. `stream` defaults to standard output.

    The width is set here because rich would assume 80 columns for every dumb terminal.
    """
    from rich.console import Console

    width, height = shutil.get_terminal_size()
    return Console(file=stream or sys.stdout, highlight=False, width=width, height=height)


def draw_lines(console: Console, drawing: Any) -> list[str]:
    """Render a drawing with rich, and return its lines."""
    with console.capture() as drawn:
        console.print(drawing)
    return [line.rstrip() for line in drawn.get().splitlines()]
