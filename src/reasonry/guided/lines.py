"""The lines of a session: where each stands, and what the numbers on it mean.

Numbers are the thinker's own and may repeat on every line. One is looked up on the caller's line, then on the lines it
left, up to the thought it left where the numbers tell, then anywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ..errors import StoreError, UsageError
from ..records import SessionRow, SessionView, ThoughtRow
from ..text import show_value

MAIN = "main"
"""Means the main line, like the empty text, where no branch has this name."""
_SHOWN_SPANS = 20
_SHOWN_LINES = 8

T = TypeVar("T")

encode = msgspec.json.Encoder().encode


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
    score_before: float | None = None
    """The score before the latest one."""
    predicted: str = ""
    """What its thinker expects of the next observation, as `data.predict`."""
    passed_over: bool = False
    """Whether another branch was selected since its latest thought."""


class ClaimVerdict(Struct, frozen=True, array_like=True):
    """What other eyes said of a claim in a session."""

    number: int | None
    """The thought that makes it; None: it cannot be told."""
    verdict: str
    """`confirmed`, `refuted` or `undecided`."""
    claim: str
    reason: str
    is_new: bool = False
    """Whether no reply has told of it yet."""


class Head(Struct, frozen=True, omit_defaults=True):
    """Where a session stands: all that is needed to judge the next call, besides the numbers there are."""

    main: ThoughtLine
    branches: dict[str, ThoughtLine] = {}
    """In the order in which they were begun."""
    latest: str | None = None
    """The branch of the latest thought; None: the main line."""
    chosen: str | None = None
    """The branch that the main line took in or selected last: it continues that branch, and values it, until it creates
    branches anew."""
    thoughts: int = 0
    highest: int = 0
    """The highest number of a thought: a thought with a higher one has not been here before."""
    ended: bool = False
    """Whether the latest thought said that no other is needed."""
    directory: str = ""
    """The working directory in which the session was begun; never exported."""
    guided: tuple[str, ...] = ()
    """The stages whose guidance a reply gave."""
    from_run: int = 0
    """How many of its first thoughts are those of a run, which nothing is left open in."""
    asked: bool = False
    """Whether a reply has asked what is asked before the end."""
    verdicts: tuple[ClaimVerdict, ...] = ()

    def line(self, branch: str | None) -> ThoughtLine:
        """Return the line of that name; None: the main line."""
        return self.main if branch is None else self.branches[branch]

    @property
    def main_name(self) -> str:
        """The branch id that names the main line; empty where a branch bears that name."""
        return "" if MAIN in self.branches else MAIN

    @property
    def stage(self) -> str:
        """The stage of the latest thought."""
        return self.line(self.latest).stage

    @property
    def has_stage(self) -> bool:
        """Whether a strategy or a stage was named, on any line."""
        return any(line.stage for line in (self.main, *self.branches.values()))


class RowsView:
    """A session that is not written yet, as the rules see any: a `SessionView`."""

    def __init__(self, row: SessionRow | None = None, thoughts: Iterable[ThoughtRow] = ()) -> None:
        self.row = row
        self.rows: list[ThoughtRow] = []
        self._numbers: dict[int, list[ThoughtRow]] = {}
        for thought in thoughts:
            self.add(thought)

    def add(self, thought: ThoughtRow) -> None:
        """Take a thought as the latest."""
        self.rows.append(thought)
        self._numbers.setdefault(thought.number, []).append(thought)

    def with_number(self, number: int) -> list[ThoughtRow]:
        """See `SessionView`."""
        return self._numbers.get(number, [])

    def latest(self, count: int) -> list[ThoughtRow]:
        """See `SessionView`."""
        return self.rows[-count:] if count > 0 else []

    def other(self, session_id: str) -> SessionView:
        """See `SessionView`: nothing else is seen from here."""
        return RowsView()


class ThoughtRecord(Struct, frozen=True, omit_defaults=True):
    """What is kept of a thought besides its text, number and branch, under the names that documents have for it."""

    stage: str = ""
    total_thoughts: int = 0
    next_thought_needed: bool = True
    at_ms: int = 0
    """UTC, milliseconds since 1970."""
    from_stage: str | None = None
    """The stage before, where the thought moved its line."""
    is_revision: bool = False
    revises_thought: int | None = None
    branch_from_thought: int | None = None
    needs_more_thoughts: bool = False
    merge_branch: str | None = None
    data: dict[str, Any] | None = None
    score: float | None = None
    path: tuple[str, ...] = ()
    """The stages, where one call named several; the last is `stage`."""
    revises_seq: int | None = None
    """`seq` of the thought it revises: numbers may repeat."""
    branch_from_seq: int | None = None
    """`seq` of the thought that it left, where it begins a branch."""
    mark: int = 0
    """Tells the call that handed it in from others; 0: that does not matter."""

    @property
    def said(self) -> dict[str, Any]:
        """Its data without the stages that parts of it are for."""
        return without_stages(self.data)

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages the thought is in, in order; none where no stage was named."""
        return self.path or ((self.stage,) if self.stage else ())


def without_stages(data: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the data of a thought without the stages that parts of it are for; the last value of a name counts."""
    parts = [part for part in (data or {}).values() if isinstance(part, dict)]
    return {name: value for part in (data or {}, *parts) for name, value in part.items()}


_heads = msgspec.json.Decoder(Head)
_records = msgspec.json.Decoder(ThoughtRecord)


def decode_head(row: SessionRow) -> Head:
    """Return where the lines of a session stand.

    Raises:
        StoreError: `store_corrupt`: it cannot be read.
    """
    return decode_stored(_heads, row.head, f"session {row.session_id}")


def decode_record(thought: ThoughtRow) -> ThoughtRecord:
    """Return what is kept of a thought besides its text, number and branch; raises as `decode_head`."""
    return decode_stored(_records, thought.body, f"thought {thought.seq}")


def find_kept(view: SessionView, head: Head, number: int, text: str, mark: int) -> ThoughtRow | None:
    """Return the thought that the same call has handed in before, as when a client sends a call again."""
    there = view.with_number(number) if mark and number <= head.highest else ()
    return next((row for row in there if row.text == text and decode_record(row).mark == mark), None)


def decode_stored(decoder: msgspec.json.Decoder[T], body: bytes, subject: str) -> T:
    """Return what a store keeps as JSON; raises as `decode_head`."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"{subject} is damaged: {error}. Restore it from a backup"
        raise StoreError(message, code="store_corrupt") from error


# -- numbers


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
    view: SessionView,
    field: str,
    number: int,
    search: Iterable[tuple[str | None, int | None]],
    seq: int | None = None,
) -> ThoughtRow:
    """Return the thought that a number means.

    Args:
        seq: Of the thought meant, where that is on record.

    Raises:
        UsageError: No thought of the session bears the number; `exists` has the numbers there are.
    """
    there = view.with_number(number)[::-1]
    if not there:
        exists = spans(thought.number for thought in view.latest(sys.maxsize))
        has = f"it has: {exists}" if exists else "it has none yet"
        raise UsageError(
            f"There is no thought {number} in this session; {has}.",
            field=field,
            number=number,
            exists=exists,
        )
    on_record = [thought for thought in there if thought.seq == seq]
    lines = (branch for branch, bound in search if bound is None or number <= bound)
    nearest = (thought for branch in lines for thought in there if thought.branch == branch)
    return next(chain(on_record, nearest), there[0])


def spans(numbers: Iterable[int]) -> str:
    """Return numbers as a short text: `1-5, 8`."""
    ordered = enumerate(sorted(set(numbers)))
    runs = [[number for _, number in run] for _, run in groupby(ordered, lambda pair: pair[1] - pair[0])]
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    if len(texts) > _SHOWN_SPANS:
        half = _SHOWN_SPANS // 2
        texts = [*texts[:half], "…", *texts[-half:]]
    return ", ".join(texts)


def show_lines(head: Head) -> str:
    """Return where the lines stand, for an error: the main line and the latest branches."""
    lines = [
        f"branch {show_value(name)} at {line.stage or 'no stage'}" for name, line in head.branches.items()
    ]
    hidden = len(lines) - _SHOWN_LINES
    more = [f"{hidden} more"] if hidden > 0 else []
    return ", ".join([f"main line at {head.main.stage or 'no stage'}", *more, *lines[-_SHOWN_LINES:]])
