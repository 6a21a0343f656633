"""The lines of a session: their states, and the meaning of the numbers on them.

Numbers are the agent's own and may repeat on every line. A number is looked up on the caller's line, then on its parent
lines up to the branching thought, then anywhere.
"""

import sys
from collections.abc import Iterable, Mapping
from itertools import chain, groupby
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ..errors import StoreError, UsageError
from ..records import SessionRow, SessionView, ThoughtRow
from ..text import show_value

MAIN = "main"
"""Names the main line, like the empty text, unless a branch has this name."""
_SHOWN_SPANS = 20
_SHOWN_LINES = 8

T = TypeVar("T")

encode = msgspec.json.Encoder().encode


class ThoughtLine(Struct, frozen=True, array_like=True):
    """The state of a line of a session."""

    stage: str
    """The stage. Empty if neither a strategy nor a stage was named, so that any stage may come first."""
    number: int = 0
    """The number of its latest thought, or 0."""
    total: int = 0
    """The expected number of thoughts, by its latest thought."""
    thoughts: int = 0
    branch_from: int | None = None
    """The number of the thought from which a branch begins."""
    parent: str | None = None
    """The parent branch, or None for the main line."""
    score: float | None = None
    """The latest score on this line, from `data.score`."""
    merged: bool = False
    """Whether another line has merged its latest thought."""
    score_before: float | None = None
    """The score before the latest one."""
    predicted: str = ""
    """The prediction of the next observation, from `data.predict`."""
    passed_over: bool = False
    """Whether another branch was selected since its latest thought."""


class ClaimVerdict(Struct, frozen=True, array_like=True):
    """A reader's verdict on a claim in a session."""

    number: int | None
    """The thought with the claim, if known."""
    verdict: str
    """`confirmed`, `refuted` or `undecided`."""
    claim: str
    reason: str
    is_new: bool = False
    """Whether no reply has reported it yet."""


class Head(Struct, frozen=True, omit_defaults=True):
    """The state of a session: everything needed to judge the next call, except the existing numbers."""

    main: ThoughtLine
    branches: dict[str, ThoughtLine] = {}
    """The branches in order of creation."""
    latest: str | None = None
    """The branch of the latest thought, or None for the main line."""
    chosen: str | None = None
    """The branch that the main line merged or selected last. The main line continues and values that branch until it
    creates new branches."""
    thoughts: int = 0
    highest: int = 0
    """The highest number of a thought. A thought with a higher number is new."""
    ended: bool = False
    """Whether the latest thought said that it is the last."""
    directory: str = ""
    """The working directory in which the session began. Never exported."""
    guided: tuple[str, ...] = ()
    """The stages whose guidance was given in a reply."""
    asked: bool = False
    """Whether a reply has asked the questions before the end."""
    verdicts: tuple[ClaimVerdict, ...] = ()

    def line(self, branch: str | None) -> ThoughtLine:
        """Return the line with a name, or None for the main line."""
        return self.main if branch is None else self.branches[branch]

    @property
    def main_name(self) -> str:
        """The branch id of the main line; empty if a branch has that name."""
        return "" if MAIN in self.branches else MAIN

    @property
    def stage(self) -> str:
        """The stage of the latest thought."""
        return self.line(self.latest).stage

    @property
    def has_stage(self) -> bool:
        """Whether a strategy or a stage was named on any line."""
        return any(line.stage for line in (self.main, *self.branches.values()))


class RowsView:
    """A `SessionView` of a session that is not written yet."""

    def __init__(self, row: SessionRow | None = None, thoughts: Iterable[ThoughtRow] = ()) -> None:
        self.row = row
        self.rows: list[ThoughtRow] = []
        self._numbers: dict[int, list[ThoughtRow]] = {}
        for thought in thoughts:
            self.add(thought)

    def add(self, thought: ThoughtRow) -> None:
        """Add the latest thought."""
        self.rows.append(thought)
        self._numbers.setdefault(thought.number, []).append(thought)

    def with_number(self, number: int) -> list[ThoughtRow]:
        """See `SessionView`."""
        return self._numbers.get(number, [])

    def latest(self, count: int) -> list[ThoughtRow]:
        """See `SessionView`."""
        return self.rows[-count:] if count > 0 else []

    def other(self, session_id: str) -> SessionView:
        """See `SessionView`. No other session is visible here."""
        return RowsView()


class ThoughtRecord(Struct, frozen=True, omit_defaults=True):
    """The record of a thought besides its text, number and branch, with the members' names in documents."""

    stage: str = ""
    total_thoughts: int = 0
    next_thought_needed: bool = True
    at_ms: int = 0
    """UTC, milliseconds since 1970."""
    from_stage: str | None = None
    """The previous stage, if the thought moved its line."""
    is_revision: bool = False
    revises_thought: int | None = None
    branch_from_thought: int | None = None
    needs_more_thoughts: bool = False
    merge_branch: str | None = None
    data: dict[str, Any] | None = None
    score: float | None = None
    path: tuple[str, ...] = ()
    """The stages of a path; the last one is `stage`."""
    revises_seq: int | None = None
    """The `seq` of the revised thought, since numbers may repeat."""
    branch_from_seq: int | None = None
    """The `seq` of the thought from which its branch begins."""
    mark: int = 0
    """Identifies the call that submitted it, or 0."""

    @property
    def facts(self) -> dict[str, Any]:
        """The flattened data."""
        return flatten_data(self.data)

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages of the thought in order; empty without a named stage."""
        return self.path or ((self.stage,) if self.stage else ())


def flatten_data(data: Mapping[str, Any] | None) -> dict[str, Any]:
    """Flatten the data of a thought that is grouped by stage. The last value of a name counts."""
    parts = [part for part in (data or {}).values() if isinstance(part, dict)]
    return {name: value for part in (data or {}, *parts) for name, value in part.items()}


_heads = msgspec.json.Decoder(Head)
_records = msgspec.json.Decoder(ThoughtRecord)


def decode_head(row: SessionRow) -> Head:
    """Decode the state of a session.

    Raises:
        StoreError: `store_corrupt`: the state is unreadable.
    """
    return decode_stored(_heads, row.head, f"session {row.session_id}")


def decode_record(thought: ThoughtRow) -> ThoughtRecord:
    """Decode the record of a thought. Raises like `decode_head`."""
    return decode_stored(_records, thought.body, f"thought {thought.seq}")


def find_repeated(view: SessionView, head: Head, number: int, text: str, mark: int) -> ThoughtRow | None:
    """Return the thought that the same call submitted earlier, for a client that repeats a call."""
    there = view.with_number(number) if mark and number <= head.highest else ()
    return next((row for row in there if row.text == text and decode_record(row).mark == mark), None)


def decode_stored(decoder: msgspec.json.Decoder[T], body: bytes, subject: str) -> T:
    """Decode JSON from a store. Raises like `decode_head`."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"{subject} is damaged: {error}. Restore it from a backup"
        raise StoreError(message, code="store_corrupt") from error


# -- numbers


Search = Iterable[tuple[str | None, int | None]]
"""The lines to search for a number, in order, each with the highest valid number (None for any)."""


def ancestry(head: Head, branch: str | None, line: ThoughtLine | None = None) -> Search:
    """Return a line and its ancestors, each with the number of the thought where the branch begins.

    Args:
        line: The state of the branch, if it is not in `head` yet.
    """
    bound: int | None = None
    while True:
        yield branch, bound
        if branch is None:
            return
        line = line or head.branches[branch]
        branch, bound, line = line.parent, line.branch_from, None


def find_thought(
    view: SessionView,
    field: str,
    number: int,
    search: Search,
    seq: int | None = None,
) -> ThoughtRow:
    """Find the thought for a number.

    Args:
        seq: The `seq` of the thought, if recorded.

    Raises:
        UsageError: No thought of the session has the number; `exists` has the existing numbers.
    """
    there = view.with_number(number)[::-1]
    if not there:
        exists = spans(thought.number for thought in view.latest(sys.maxsize))
        has = f"it has: {exists}" if exists else "it has none yet"
        message = f"There is no thought {number} in this session; {has}."
        raise UsageError(message, field=field, number=number, exists=exists)
    on_record = [thought for thought in there if thought.seq == seq]
    lines = (branch for branch, bound in search if bound is None or number <= bound)
    nearest = (thought for branch in lines for thought in there if thought.branch == branch)
    return next(chain(on_record, nearest), there[0])


def spans(numbers: Iterable[int]) -> str:
    """Format numbers briefly: `1-5, 8`."""
    ordered = enumerate(sorted(set(numbers)))
    runs = [[number for _, number in run] for _, run in groupby(ordered, lambda pair: pair[1] - pair[0])]
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    if len(texts) > _SHOWN_SPANS:
        half = _SHOWN_SPANS // 2
        texts = [*texts[:half], "…", *texts[-half:]]
    return ", ".join(texts)


def show_lines(head: Head) -> str:
    """Describe the main line and the latest branches for an error."""
    lines = [
        f"branch {show_value(name)} at {line.stage or 'no stage'}" for name, line in head.branches.items()
    ]
    hidden = len(lines) - _SHOWN_LINES
    more = [f"{hidden} more"] if hidden > 0 else []
    return ", ".join([f"main line at {head.main.stage or 'no stage'}", *more, *lines[-_SHOWN_LINES:]])
