"""The lines of a session, where each stands, and the thoughts on them, looked up by number.

Numbers are the thinker's own and may repeat on every line. One is looked up on the caller's line, then on the lines it
left, up to the thought it left where the numbers tell, then anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from msgspec import Struct

from ..errors import UsageError

MAIN = "main"
"""Means the main line, like the empty text, where no branch has this name."""
_SHOWN_SPANS = 20
_SHOWN_LINES = 8
_SHOWN_NAME_CHARS = 40


class ThoughtLine(Struct, frozen=True, array_like=True):
    """Where one line of a session stands."""

    stage: str
    """Empty: neither a strategy nor a stage was named on it, so its first stage may be any."""
    number: int = 0
    """Of its latest thought; 0: none yet."""
    total: int = 0
    """Thoughts expected, as of its latest thought."""
    thoughts: int = 0
    left: int | None = None
    """Number of the thought a branch left."""
    parent: str | None = None
    """The branch it left; None: the main line."""
    score: float | None = None
    """The latest one given on this line, as `data.score`."""
    merged: bool = False
    """Whether its latest thought was taken back in by another line."""


class Head(Struct, frozen=True, omit_defaults=True):
    """Where a session stands: all that is needed to judge the next call, besides the numbers there are."""

    main: ThoughtLine
    branches: dict[str, ThoughtLine] = {}
    """In the order in which they were begun."""
    latest: str | None = None
    """The branch of the latest thought; None: the main line."""
    thoughts: int = 0
    ended: bool = False
    """Whether the latest thought said that no other is needed."""
    directory: str = ""
    """The working directory in which the session was begun; never exported."""
    guided: tuple[str, ...] = ()
    """The stages whose guidance a reply gave."""
    from_run: int = 0
    """How many of its first thoughts are those of a run, which nothing is left open in."""

    def line(self, branch: str | None) -> ThoughtLine:
        """Return the line of that name; None: the main line."""
        return self.main if branch is None else self.branches[branch]

    @property
    def stage(self) -> str:
        """The stage of the latest thought."""
        return self.line(self.latest).stage

    @property
    def has_stage(self) -> bool:
        """Whether a strategy or a stage was named, on any line."""
        return any(line.stage for line in (self.main, *self.branches.values()))


class Place(NamedTuple):
    """A thought that was taken: its number, its branch and the stage it is in."""

    number: int
    branch: str | None
    stage: str
    seq: int


class Recorded(NamedTuple):
    """The `seq` of the thoughts that a call refers to, where they are on record: in a session that is imported."""

    branch_from: int | None = None
    revises: int | None = None


NOT_RECORDED = Recorded()


class Past(Protocol):
    """The thoughts a session has already, as far as its rules ask."""

    def with_number(self, number: int) -> Iterable[Place]:
        """Return the thoughts that bear a number, latest first."""
        ...

    def places(self) -> Iterable[Place]:
        """Return all thoughts, latest first. Only refusals ask for them."""
        ...


Search = Iterator[tuple[str | None, int | None]]
"""The lines to look for a number on, in order, each with the highest number that counts there (None: any)."""


def ancestry(head: Head, branch: str | None, line: ThoughtLine | None = None) -> Search:
    """Return a line, the line it left, the line that one left, …, each with the number of the thought left there.

    Args:
        line: Where the branch stands, if it is not in `head` yet.
    """
    bound: int | None = None
    while True:
        yield branch, bound
        if branch is None:
            return
        line = line or head.branches[branch]
        branch, bound, line = line.parent, line.left, None


def find_thought(
    past: Past,
    field: str,
    number: int,
    search: Iterable[tuple[str | None, int | None]],
    seq: int | None = None,
) -> Place:
    """Return the thought that a number means.

    Args:
        seq: Of the thought meant, where that is on record.

    Raises:
        UsageError: No thought of the session bears the number; `exists` has the numbers there are.
    """
    there = list(past.with_number(number))
    if not there:
        raise _no_thought_error(past, field, number)
    on_record = next((place for place in there if place.seq == seq), None)
    if on_record is not None:
        return on_record
    for branch, bound in search:
        if bound is None or number <= bound:
            found = next((place for place in there if place.branch == branch), None)
            if found is not None:
                return found
    return there[0]


def _no_thought_error(past: Past, field: str, number: int) -> UsageError:
    there = spans(place.number for place in past.places())
    has = f"it has: {there}" if there else "it has none yet"
    return UsageError(
        f"{field}: there is no thought {number} in this session; {has}.",
        field=field,
        number=number,
        exists=there,
    )


def spans(numbers: Iterable[int]) -> str:
    """Return numbers as a short text: `1-5, 8`."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in found]
    if len(texts) > _SHOWN_SPANS:
        half = _SHOWN_SPANS // 2
        texts = [*texts[:half], "…", *texts[-half:]]
    return ", ".join(texts)


def show_lines(head: Head) -> str:
    """Return where the lines stand, for an error: the main line and the latest branches."""
    names = list(head.branches)
    hidden = len(names) - _SHOWN_LINES
    shown = [f"branch {show_name(name)} at {_stage(head.branches[name])}" for name in names[-_SHOWN_LINES:]]
    more = [f"{hidden} more"] if hidden > 0 else []
    return ", ".join([f"main line at {_stage(head.main)}", *more, *shown])


def _stage(line: ThoughtLine) -> str:
    return line.stage or "no stage"


def show_name(branch: str) -> str:
    """Return a branch's name as an error shows it."""
    short = branch if len(branch) <= _SHOWN_NAME_CHARS else branch[:_SHOWN_NAME_CHARS] + "…"
    return json.dumps(short, ensure_ascii=False)
