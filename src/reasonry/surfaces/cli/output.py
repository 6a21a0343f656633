"""What commands print: one JSON document, or text for people."""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import msgspec

from ...core.text import escaped_json, inert
from ...errors import ReasonryError, UsageError

_MAX_CHOICES = 40


def print_document(document: Any) -> None:
    """Print one JSON document on standard output, and nothing else."""
    _write(sys.stdout, _json_text(document))


def part_of(document: Any, path: str) -> Any:
    """Return a part of a document, as `--field` names it: members and places in lists, with dots between.

    Raises:
        UsageError: The document has no such part; `choices` has the names there are.
    """
    found = msgspec.to_builtins(document)
    for name in path.split("."):
        there = (
            dict(enumerate(found)) if isinstance(found, list) else found if isinstance(found, dict) else {}
        )
        members = {str(key): value for key, value in there.items()}
        if name not in members:
            choices = [*members][:_MAX_CHOICES]
            raise UsageError(
                f"--field {path}: there is no {name[:40]!r}; there is {', '.join(choices) or 'nothing in it'}",
                option="field",
                choices=choices,
            )
        found = members[name]
    return found


def print_part(part: Any) -> None:
    """Print a part of a document on standard output: a text as it is but inert, nothing for null, else JSON."""
    if part is not None:
        print_text(part if isinstance(part, str) else _json_text(part))


def print_line(text: str = "") -> None:
    """Print a line on standard output, inert; a terminal does not break it inside a word."""
    print_lines([text])


def print_text(text: str) -> None:
    """Print a text that is to be used elsewhere, as it is but inert."""
    _write(sys.stdout, inert(text))


def print_lines(lines: Iterable[str], stream: TextIO | None = None) -> None:
    """Print lines, inert and many at a time; on standard output where no stream is named."""
    out = stream or sys.stdout
    print_inert_lines(wrap_lines(map(inert, lines), out), out)


def print_inert_lines(lines: Iterable[str], stream: TextIO | None = None) -> None:
    """Print lines that are inert already, or drawn in colours, as they are."""
    rest = iter(lines)
    while batch := list(itertools.islice(rest, 1_000)):
        _write(stream or sys.stdout, "\n".join(batch))


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
    try:
        text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    except UnicodeEncodeError:
        # Half characters, such as a file name's that is not UTF-8.
        text = json.dumps(document, ensure_ascii=False, indent=2)
    # Encoded as it is, JSON has of the characters to escape none in ASCII but this one; to look for all takes seconds.
    return text if text.isascii() and "\x7f" not in text else escaped_json(text)


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
    from rich.console import Console
    from rich.text import Text

    text = Text(line)
    if text.cell_len <= width:
        yield line
        return
    indent = len(line) - len(line.lstrip())
    first, later = (" " * min(indent + more, width // 2) for more in (0, 2 * hangs))
    room = width - len(later)
    if text.cell_len == len(line):
        # A word that is longer than a line, such as a path, is left whole, so that it can be copied.
        parts = textwrap.wrap(line.lstrip(), room, break_long_words=False, break_on_hyphens=False)
    else:
        parts = [part.plain.rstrip() for part in Text(line.lstrip()).wrap(Console(), room)]
    for place, part in enumerate(parts):
        yield (later if place else first) + part


def print_notes(lines: Iterable[str]) -> None:
    """Print lines for people on standard error, inert, whole."""
    print_lines(lines, sys.stderr)


def print_note(text: str) -> None:
    """Print a line for people on standard error, inert; a terminal does not break it inside a word."""
    print_notes([text])


def confirm(question: str) -> bool | None:
    """Ask for a yes in the terminal; None: nobody is there to ask."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    print_note(question)
    _write(sys.stderr, "yes or no [no]: ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def print_warnings(warnings: Iterable[str]) -> None:
    """Print warnings as notes."""
    print_notes(f"warning: {warning}" for warning in warnings)


def print_error(error: ReasonryError) -> None:
    """Print one clear message on standard error."""
    print_note(f"reasonry: {error.message}")


def _write(stream: Any, text: str, end: str = "\n") -> None:
    if not text.isascii():
        encoding = stream.encoding or "utf-8"
        text = text.encode(encoding, "backslashreplace").decode(encoding)
    stream.write(text + end)
    stream.flush()
