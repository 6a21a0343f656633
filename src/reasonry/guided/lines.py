"""The state of a session with its main line and branches, and a search for thoughts by number.

The agent numbers its thoughts, and several thoughts may have the same number. The search for a revised thought begins
on the line of the new thought. Next come this line's ancestors, up to where the child branch begins, then all lines.
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
"""The name of the main line, unless a branch has this name. The empty text always names the main line."""
_SHOWN_SPANS = 20
_SHOWN_LINES = 8

T = TypeVar("T")

encode = msgspec.json.Encoder().encode


class ThoughtLine(Struct, frozen=True, array_like=True):
    """The state of one line of a session. A line is the main line or a branch."""

    stage: str
    """The current stage. Empty until a call names a strategy or a stage. After an empty stage, any stage is legal."""
    number: int = 0
    """The number of the line's latest thought, or 0 before the first thought."""
    total: int = 0
    """The total number of thoughts, as the line's latest thought estimates it."""
    thoughts: int = 0
    branch_from: int | None = None
    """The number of the thought from which this branch begins, if any."""
    parent: str | None = None
    """The name of the parent branch, or None if the parent is the main line."""
    score: float | None = None
    """The line's latest score, from `data.score` or from a branch that the line merged."""
    merged: bool = False
    """Whether another line has merged this line since this line's latest thought."""
    score_before: float | None = None
    """The line's previous score, which `score` replaced."""
    predicted: str = ""
    """The prediction of the next observation, from `data.predict`."""
    passed_over: bool = False
    """Whether the agent has selected another branch since this line's latest thought."""


class ClaimVerdict(Struct, frozen=True, array_like=True):
    """The verdict of an independent reader on a claim in a session."""

    number: int | None
    """The number of the thought that makes the claim, if known."""
    verdict: str
    """`confirmed`, `refuted` or `undecided`."""
    claim: str
    reason: str
    is_new: bool = False
    """Whether no reply to the agent has reported this verdict yet."""


class Head(Struct, frozen=True, omit_defaults=True):
    """The state of a session, as needed to check the next call."""

    main: ThoughtLine
    branches: dict[str, ThoughtLine] = {}
    """The branches by name, in order of creation."""
    latest: str | None = None
    """The branch of the latest thought, or None for the main line."""
    chosen: str | None = None
    """The branch that the main line merged or selected last. Until the main line creates new branches, it continues
    this branch and shares its score with this branch."""
    thoughts: int = 0
    highest: int = 0
    """The highest number of a thought. A thought with a higher number is new."""
    ended: bool = False
    """Whether the agent said that the latest thought is the last thought."""
    directory: str = ""
    """The working directory in which the session began. It is never exported."""
    guided: tuple[str, ...] = ()
    """The stages whose guidance a reply has already given to the agent."""
    asked: bool = False
    """Whether a reply has already asked the agent about open points and mistakes. A session asks only once."""
    verdicts: tuple[ClaimVerdict, ...] = ()

    def line(self, branch: str | None) -> ThoughtLine:
        """Return the branch with this name. The name None stands for the main line."""
        return self.main if branch is None else self.branches[branch]

    @property
    def main_name(self) -> str:
        """The name of the main line: `main`, or the empty text if a branch is named `main`."""
        return "" if MAIN in self.branches else MAIN

    @property
    def stage(self) -> str:
        """The stage of the latest thought."""
        return self.line(self.latest).stage

    @property
    def has_stage(self) -> bool:
        """Whether any line has a stage."""
        return any(line.stage for line in (self.main, *self.branches.values()))


class RowsView:
    """A `SessionView` over rows in memory, without a store."""

    def __init__(self, row: SessionRow | None = None, thoughts: Iterable[ThoughtRow] = ()) -> None:
        self.row = row
        self.rows: list[ThoughtRow] = []
        self._numbers: dict[int, list[ThoughtRow]] = {}
        for thought in thoughts:
            self.add(thought)

    def add(self, thought: ThoughtRow) -> None:
        """Add a thought after all earlier thoughts."""
        self.rows.append(thought)
        self._numbers.setdefault(thought.number, []).append(thought)

    def with_number(self, number: int) -> list[ThoughtRow]:
        """See `SessionView`."""
        return self._numbers.get(number, [])

    def latest(self, count: int) -> list[ThoughtRow]:
        """See `SessionView`."""
        return self.rows[-count:] if count > 0 else []

    def find_text(self, text: str, count: int) -> int | None:
        """See `SessionView`."""
        return next((row.number for row in self.latest(count) if row.text == text), None)

    def other(self, session_id: str) -> SessionView:
        """See `SessionView`. No other session is visible here."""
        return RowsView()


class ThoughtRecord(Struct, frozen=True, omit_defaults=True):
    """The record of a thought, except its text, number and branch. Documents use the same member names."""

    stage: str = ""
    total_thoughts: int = 0
    next_thought_needed: bool = True
    at_ms: int = 0
    """UTC, milliseconds since 1970."""
    from_stage: str | None = None
    """The stage from which the thought moved. None if the thought stayed, or if its line had no stage before."""
    is_revision: bool = False
    revises_thought: int | None = None
    branch_from_thought: int | None = None
    needs_more_thoughts: bool = False
    merge_branch: str | None = None
    data: dict[str, Any] | None = None
    score: float | None = None
    path: tuple[str, ...] = ()
    """All stages that the call named, in order; the last is `stage`. Empty if the call named fewer than two stages."""
    revises_seq: int | None = None
    """The `seq` of the revised thought, since numbers may repeat."""
    branch_from_seq: int | None = None
    """The `seq` of the thought from which this thought's branch begins."""
    mark: int = 0
    """A checksum of the call that submitted the thought. It identifies a repetition of the call. 0 means none."""

    @property
    def facts(self) -> dict[str, Any]:
        """The data of the thought, flattened by `flatten_data`."""
        return flatten_data(self.data)

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages of the thought in order. Empty if the thought has no stage."""
        return self.path or ((self.stage,) if self.stage else ())


def flatten_data(data: Mapping[str, Any] | None) -> dict[str, Any]:
    """Flatten data that may be grouped by stage. If a name has several values, the last counts."""
    parts = [part for part in (data or {}).values() if isinstance(part, dict)]
    return {name: value for part in (data or {}, *parts) for name, value in part.items()}


_heads = msgspec.json.Decoder(Head)
_records = msgspec.json.Decoder(ThoughtRecord)


def decode_head(row: SessionRow) -> Head:
    """Decode the state of a session, or raise StoreError (`store_corrupt`)."""
    return decode_stored(_heads, row.head, f"session {row.session_id}")


def decode_record(thought: ThoughtRow) -> ThoughtRecord:
    """Decode the record of a thought. The errors are as in `decode_head`."""
    return decode_stored(_records, thought.body, f"thought {thought.seq}")


def find_repeated(view: SessionView, head: Head, number: int, text: str, mark: int) -> ThoughtRow | None:
    """Return the thought of an identical earlier call. None if there is none."""
    there = view.with_number(number) if mark and number <= head.highest else ()
    return next((row for row in there if row.text == text and decode_record(row).mark == mark), None)


def decode_stored(decoder: msgspec.json.Decoder[T], body: bytes, subject: str) -> T:
    """Decode JSON from a store. The errors are as in `decode_head`."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"{subject} is damaged: {error}. Restore it from a backup"
        raise StoreError(message, code="store_corrupt") from error


# -- numbers


Search = Iterable[tuple[str | None, int | None]]
"""The lines to search for a number, in order. Each pair has a line and the highest number that counts (None: any)."""


def ancestry(head: Head, branch: str | None, line: ThoughtLine | None = None) -> Search:
    """Yield (`branch`, None), then each ancestor with the number of the thought where the path to `branch` leaves it.

    Args:
        line: The state of the branch, if `head` does not have the branch yet.
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
    """Find a thought by its number. If several thoughts have the number, `seq` and then `search` decide.

    Args:
        seq: The `seq` of the thought, if an export recorded it.

    Raises:
        UsageError: No thought of the session has the number; `exists` lists the existing numbers.
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
    """Describe the main line and the latest branches for an error message."""
    lines = [
        f"branch {show_value(name)} at {line.stage or 'no stage'}" for name, line in head.branches.items()
    ]
    hidden = len(lines) - _SHOWN_LINES
    more = [f"{hidden} more"] if hidden > 0 else []
    return ", ".join([f"main line at {head.main.stage or 'no stage'}", *more, *lines[-_SHOWN_LINES:]])
