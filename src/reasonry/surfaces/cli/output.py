"""What commands print: one JSON document, or text for people."""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO

import msgspec

from ...core.text import escaped_json, inert
from ...errors import ReasonryError, UsageError


def print_document(document: Any) -> None:
    """Print one JSON document on standard output, and nothing else."""
    _write(sys.stdout, _json_text(document))


def print_long_document(
    head: Mapping[str, Any], names: Iterable[str], chunks: Iterable[tuple[str, Sequence[Any]]]
) -> None:
    """Print one JSON document whose last values are long lists, as `print_document` would, but piece by piece.

    Args:
        head: What stands before the lists.
        names: The keys of the lists, in their order.
        chunks: Entries of the lists, a list after the other.
    """
    _write(sys.stdout, _json_text(dict(head)).removesuffix("\n}"), end="")
    lists = itertools.groupby(chunks, key=itemgetter(0))
    name, found = next(lists, ("", iter(())))
    for key in names:
        _write(sys.stdout, f",\n  {json.dumps(key)}: [", end="")
        separator = ""
        for _, entries in found if key == name else ():
            if entries:
                _write(sys.stdout, separator + _indent(entries), end="")
                separator = ","
        _write(sys.stdout, "\n  ]" if separator else "]", end="")
        if key == name:
            name, found = next(lists, ("", iter(())))
    _write(sys.stdout, "\n}")


def _indent(entries: Sequence[Any]) -> str:
    """Return entries of a list in a document as JSON, a line end before each."""
    text = msgspec.json.format(msgspec.json.encode(entries), indent=2).decode()
    text = text[1:-2].replace("\n", "\n  ")
    # Encoded as it is, JSON has of the characters to escape none in ASCII but this one; to look for all takes seconds.
    return text if text.isascii() and "\x7f" not in text else escaped_json(text)


def print_line(text: str = "") -> None:
    """Print a line on standard output, inert; a terminal does not break it inside a word."""
    print_lines([text])


def print_text(text: str) -> None:
    """Print a text that is to be used elsewhere, as it is but inert."""
    _write(sys.stdout, inert(text))


def print_lines(lines: Iterable[str]) -> None:
    """Print lines on standard output, inert, many at a time."""
    print_inert_lines(wrap_lines(map(inert, lines), sys.stdout))


def print_inert_lines(lines: Iterable[str]) -> None:
    """Print lines that are inert already, or drawn in colours, as they are."""
    rest = iter(lines)
    while batch := list(itertools.islice(rest, 1_000)):
        _write(sys.stdout, "\n".join(batch))


def write_text(path: Path, content: Any) -> None:
    """Write a document as JSON, without characters that act unseen, or text as it is, to a file.

    Raises:
        UsageError: The file cannot be written.
    """
    text = content if isinstance(content, str) else _json_text(content) + "\n"
    try:
        path.write_text(text, "utf-8", newline="\n")
    except OSError as error:
        raise _unwritable(path, error) from None


def _json_text(document: Any) -> str:
    return escaped_json(json.dumps(document, ensure_ascii=False, indent=2))


def check_writable(path: Path) -> None:
    """Check that `write_text` can write to a path; nothing is left there, and what is there stays as it is.

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        there = path.exists()
        if there and not (path.is_file() or path.is_dir()):
            return  # a pipe would notice
        with path.open("ab"):
            pass
        if not there and not path.is_symlink():
            path.unlink()
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be written: {error.strerror}", path=str(path))


def wrap_lines(lines: Iterable[str], stream: TextIO) -> Iterator[str]:
    """Yield lines that a terminal does not break inside words; what is no terminal gets them as they are."""
    width = shutil.get_terminal_size().columns if stream.isatty() else 0
    for line in (part for text in lines for part in text.split("\n")):
        if width < 20 or (len(line) <= width and line.isascii()):
            yield line
        else:
            yield from _wrap(line, width, hangs=line[:1] == " " or stream is sys.stderr)


def _wrap(line: str, width: int, *, hangs: bool) -> Iterator[str]:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.text import Text

    cells = cell_len(line)
    if cells <= width:
        yield line
        return
    indent = len(line) - len(line.lstrip())
    first, later = (" " * min(indent + more, width // 2) for more in (0, 2 * hangs))
    room = width - len(later)
    if cells == len(line):
        # A word that is longer than a line, such as a path, is left whole, so that it can be copied.
        parts = textwrap.wrap(line.lstrip(), room, break_long_words=False, break_on_hyphens=False)
    else:
        parts = [part.plain.rstrip() for part in Text(line.lstrip()).wrap(Console(), room)]
    for place, part in enumerate(parts):
        yield (later if place else first) + part


def print_notes(lines: Iterable[str]) -> None:
    """Print lines for people on standard error, inert, whole."""
    for line in wrap_lines(map(inert, lines), sys.stderr):
        _write(sys.stderr, line)


def print_note(text: str) -> None:
    """Print a line for people on standard error, inert; a terminal does not break it inside a word."""
    print_notes([text])


def confirm(question: str) -> bool:
    """Ask for a yes in the terminal.

    Raises:
        UsageError: Nobody is there to ask.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "this deletes for good, and there is nobody to ask; --yes does it unasked", option="yes"
        )
    print_note(question)
    _write(sys.stderr, "yes or no [no]: ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def print_warnings(document: dict[str, Any]) -> None:
    """Print what a result warns of, as notes."""
    for warning in document["warnings"]:
        print_note(f"warning: {warning}")


def print_error(error: ReasonryError) -> None:
    """Print one clear message on standard error."""
    print_note(f"reasonry: {error.message}")


def _write(stream: Any, text: str, end: str = "\n") -> None:
    if not text.isascii():
        encoding = stream.encoding or "utf-8"
        text = text.encode(encoding, "backslashreplace").decode(encoding)
    stream.write(text + end)
    stream.flush()
