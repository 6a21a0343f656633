"""A session drawn in the terminal, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ...core.text import clip, inert
from ...guided.export import stages_of
from ...guided.plain_data import plain_value
from .. import present
from .output import print_inert_lines
from .terminal import open_console

_DATA_CHARS = 500
"""Of one field; `--json` has it whole."""

Document = dict[str, Any]
Piece = tuple[str, str]
"""A text and its style."""


@dataclass(frozen=True, slots=True)
class _Row:
    indent: int
    pieces: tuple[Piece, ...]


def draw(session: Document, thoughts: Iterable[Document]) -> None:
    """Draw the main line, and under the thought it left each branch."""
    console = open_console()
    lines = _Lines(thoughts)
    strategy = f"  {session['strategy']}" if "strategy" in session else ""
    head = f"{session['session_id']}{strategy}  {present.count_of(lines.count, 'thought')}"
    console.print(Text(inert(head), style="bold"))
    if session.get("purpose"):
        console.print(Text(clip(session["purpose"], console.width), style="dim"))
    print_inert_lines(_draw_row(console, row) for row in lines.rows())


def _draw_row(console: Console, row: _Row) -> str:
    plain = " " * row.indent + "".join(text for text, _ in row.pieces)
    if console.color_system is None and plain.isascii() and "\n" not in plain and len(plain) <= console.width:
        return plain
    with console.capture() as drawn:
        console.print(Padding(Text.assemble(*row.pieces), (0, 0, 0, row.indent), expand=False))
    return drawn.get().removesuffix("\n")


class _Lines:
    """The thoughts of a session by line, and where each branch leaves."""

    def __init__(self, thoughts: Iterable[Document]) -> None:
        self.count = 0
        self._by_branch: dict[str | None, list[Document]] = {}
        self._leaving: dict[tuple[str, int], list[str]] = {}
        """The branches whose first thought leaves from a thought, by its `seq`, or by its number in an old record."""
        self._drawn: set[str | None] = set()
        for self.count, thought in enumerate(thoughts, 1):
            name = thought.get("branch_id")
            if name is not None and name not in self._by_branch and "branch_from_thought" in thought:
                by = "branch_from_seq" if "branch_from_seq" in thought else "branch_from_thought"
                self._leaving.setdefault((by, thought[by]), []).append(name)
            self._by_branch.setdefault(name, []).append(thought)

    def rows(self) -> Iterator[_Row]:
        """Yield the main line with each branch under the thought it left, then the branches that left none of it."""
        yield from self._walk(None, 0)
        for name in self._by_branch:
            if name not in self._drawn:
                yield _branch(str(name), 0)
                yield from self._walk(name, 1)

    def _walk(self, branch: str | None, depth: int) -> Iterator[_Row]:
        open_lines = [self._line(branch, depth)]
        while open_lines:
            found = next(open_lines[-1], None)
            if found is None:
                open_lines.pop()
            elif isinstance(found, _Row):
                yield found
            else:
                open_lines.append(found)

    def _line(self, branch: str | None, depth: int) -> Iterator[Any]:
        """Yield the rows of a line, and in their places the lines of the branches that leave it."""
        self._drawn.add(branch)
        for thought in self._by_branch.get(branch, ()):
            yield _Row(2 * depth, tuple(_thought(thought)))
            yield from _data(thought, 2 * depth + 4)
            by_number = self._leaving.get(("branch_from_thought", thought["thought_number"]), [])
            for name in (*self._leaving.get(("branch_from_seq", thought["seq"]), []), *by_number):
                if name not in self._drawn:
                    yield _branch(name, 2 * depth + 2)
                    yield self._line(name, depth + 2)


def _branch(name: str, indent: int) -> _Row:
    return _Row(indent, ((f"⎇ {clip(name, 40)}", "magenta"),))


def _data(thought: Document, indent: int) -> Iterator[_Row]:
    """Yield a row for each field of a thought's stage, and for the score a run gave it."""
    data = {**({"score": thought["score"]} if "score" in thought else {}), **thought.get("data", {})}
    for name, value in data.items():
        text = clip(f"{name}: {plain_value(value)}", _DATA_CHARS)
        yield _Row(indent, ((text, "dim"),))


def _thought(thought: Document) -> Iterator[Piece]:
    yield f"{thought['thought_number']:>3} ", "bold"
    if thought.get("stage"):
        yield f"[{inert(' → '.join(stages_of(thought)))}] ", "cyan"
    if thought.get("revises_thought"):
        yield f"↺ revises {thought['revises_thought']} ", "yellow"
    if thought.get("merge_branch"):
        yield f"⇠ takes in {clip(thought['merge_branch'], 30)} ", "magenta"
    yield inert(thought["thought"]), ""
