"""The lines of a session: where each stands, what the numbers on it mean, and where a thought on it may go.

Rule 1: numbers are the thinker's own and may repeat on every line. One is looked up on the caller's line, then on the
        lines it left, up to the thought it left where the numbers tell, then anywhere.
Rule 2: a thought may continue from where its own line stands, from where the branch it merges stands, or from the stage
        of the session's latest thought. To name such a stage itself is to stay.
Rule 3: every further step of a path is an edge of the table.
Rule 4: a refusal says where the lines stand and, if there is one, which arguments would be accepted in its place.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from ..core.strategy import Strategy
from ..errors import IllegalTransitionError, StoreError, UsageError
from ..reading.names import closest_names
from ..records import SessionRow, SessionView, ThoughtRow
from .thinking_tool import ThinkingCall

MAX_PATH = 32
"""Stages that one call may name."""
MAIN = "main"
"""Means the main line, like the empty text, where no branch has this name."""
_SHOWN_SPANS = 20
_SHOWN_LINES = 8
_SHOWN_NAME_CHARS = 40

Table = Strategy[Any, Any]
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


class Recorded(NamedTuple):
    """The `seq` of the thoughts that a call refers to, where they are on record: in a session that is imported."""

    branch_from: int | None = None
    revises: int | None = None


NOT_RECORDED = Recorded()


class RowsView:
    """A session that is not written yet, as the rules see any: a `SessionView`."""

    def __init__(self, row: SessionRow | None = None) -> None:
        self.row = row
        self.rows: list[ThoughtRow] = []
        self._numbers: dict[int, list[ThoughtRow]] = {}

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
    """What is kept of a thought besides its text, number and branch."""

    stage: str = ""
    total: int = 0
    next_needed: bool = True
    at_ms: int = 0
    """UTC, milliseconds since 1970."""
    came_from: str | None = None
    """The stage before, where the thought moved its line."""
    is_revision: bool = False
    revises: int | None = None
    branch_from: int | None = None
    needs_more: bool = False
    merges: str | None = None
    data: dict[str, Any] | None = None
    score: float | None = None
    path: tuple[str, ...] = ()
    """The stages, where one call named several; the last is `stage`."""
    revises_seq: int | None = None
    """`seq` of the thought it revises: numbers may repeat."""
    branch_from_seq: int | None = None
    """`seq` of the thought that it left, where it begins a branch."""

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages the thought is in, in order; none where no stage was named."""
        return self.path or ((self.stage,) if self.stage else ())


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
            f"{field}: there is no thought {number} in this session; {has}.",
            field=field,
            number=number,
            exists=exists,
        )
    on_record = next((thought for thought in there if thought.seq == seq), None)
    if on_record is not None:
        return on_record
    for branch, bound in search:
        if bound is None or number <= bound:
            found = next((thought for thought in there if thought.branch == branch), None)
            if found is not None:
                return found
    return there[0]


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


# -- moves


class Walk(NamedTuple):
    """The stages a thought goes through, and the stage it came from where the first of them is a move."""

    stages: tuple[str, ...]
    came_from: str | None


def stages_named(call: ThinkingCall) -> tuple[str, ...]:
    """Return the stages that a call names, in order; none if it names none."""
    if call.stage is None:
        return ()
    return (call.stage,) if isinstance(call.stage, str) else tuple(call.stage)


def check_path_length(stages: Sequence[str]) -> None:
    """Check that a call does not name too many stages."""
    if len(stages) > MAX_PATH:
        raise UsageError(
            f"stage names {len(stages):,} stages; one call may name {MAX_PATH}", field="stage", limit=MAX_PATH
        )


def walk(
    strategy: Table, bases: Sequence[str], stages: Sequence[str], also: Sequence[str] = ()
) -> Walk | None:
    """Return the walk along the table from one of `bases`, else of `also`; None if a step of it is no edge.

    A base that is no stage of the table leads anywhere: a line in no stage has no place to come from.
    """
    table = strategy.by_name
    first = stages[0]
    if first not in table or any(to not in table[start].to for start, to in pairwise(stages)):
        return None
    for group in (bases, also):
        if any(base == first or base not in table for base in group):
            return Walk(tuple(stages), None)
        came_from = next((base for base in group if first in table[base].to), None)
        if came_from is not None:
            return Walk(tuple(stages), came_from)
    return None


def distance(strategy: Table, stage: str) -> int:
    """Return how many edges a stage is from the first; -1 for no stage of the table."""
    if stage == strategy.first:
        return 0
    return len(shortest_way(strategy, strategy.first, stage) or ()) or -1


class RefusedMove(NamedTuple):
    """A call whose stages do not follow, and all that a way out of it is looked for with.

    Attributes:
        branch: The line of the thought.
        bases: The stages it might have continued from; the first is the line's own.
    """

    strategy: Table
    head: Head
    call: ThinkingCall
    branch: str | None
    bases: Sequence[str]
    stages: Sequence[str]
    view: SessionView

    def error(self) -> IllegalTransitionError:
        """Return the error that says which step is no edge, where the lines stand, and what would be accepted."""
        start, to, legal = self._broken_step()
        following = ", ".join(legal) if legal else "none: it is the last stage"
        message = (
            f"Invalid transition from {start} to {to}{self._unknown(to)}. Legal next stages: {following}."
        )
        if self.head.branches:
            message += (
                f" Where the lines stand: {show_lines(self.head)}; the latest thought at {self.head.stage}."
            )
        instead = next(self._ways_out(), {})
        if instead:
            message += f" This would be accepted: {show_arguments(instead)}{self._required_data(instead)}."
        elif to in self.strategy.by_name:
            message += " Leave `stage` out to stay, or begin a new session."
        details: dict[str, Any] = {"instead": instead} if instead else {}
        return IllegalTransitionError(message, stage=start, choices=legal, **details)

    def _unknown(self, stage: str) -> str:
        """Return what to say of a stage that the table has not; nothing where it has."""
        table = self.strategy.by_name
        if stage in table:
            return ""
        meant = " or ".join(closest_names(stage, table))
        return f": {self.strategy.name} has no such stage{f' (did you mean {meant}?)' if meant else ''}"

    def _broken_step(self) -> tuple[str, str, list[str]]:
        """Return a stage, the stage that cannot follow it, and those that can."""
        table = self.strategy.by_name
        for start, to in pairwise(self.stages):
            if start in table and to not in table[start].to:
                return start, to, list(table[start].to)
        legal = [to for base in self.bases if base in table for to in table[base].to]
        known = list(dict.fromkeys(legal)) if self.bases[0] in table else list(table)
        return self.bases[0] or "no stage", self.stages[0], known

    def _ways_out(self) -> Iterator[dict[str, Any]]:
        """Yield the arguments to change in the call so that it is accepted, the smallest change first."""
        if any(stage not in self.strategy.by_name for stage in self.stages):
            return
        for branch in self._other_lines():
            if walk(self.strategy, [self.head.line(branch).stage], self.stages) is not None:
                yield {"branchId": branch or ""}
        paths = filter(None, map(self._path, dict.fromkeys(self.bases)))
        if path := min(paths, key=len, default=None):
            yield {"stage": path}
        for thought in reversed(self.view.latest(self.head.thoughts)):
            path = self._path(decode_record(thought).stage)
            if path and thought_left(self.head, self.view, thought.number).seq == thought.seq:
                alone: dict[str, Any] = {} if self._names_new_branch() else {"branchId": None}
                stage = path[0] if len(path) == 1 else path
                yield {**alone, "branchFromThought": thought.number, "stage": stage}

    def _other_lines(self) -> Iterator[str | None]:
        """Return the other lines the thought could be on, the latest first, and last the main line."""
        if self.call.branch_from_thought is None or not self._names_new_branch():
            excluded = (self.branch, self.call.merge_branch)
            yield from (name for name in reversed(self.head.branches) if name not in excluded)
            if self.branch is not None:
                yield None

    def _names_new_branch(self) -> bool:
        return self.branch is not None and self.branch not in self.head.branches

    def _path(self, start: str) -> list[str] | None:
        """Return the stages named, and between them those that the table has, as one path from `start`."""
        first, *others = self.stages
        path = [start] if first == start else shortest_way(self.strategy, start, first)
        for to in others:
            between = shortest_way(self.strategy, path[-1], to) if path else None
            path = None if path is None or between is None else [*path, *between]
        return path if path is not None and len(path) <= MAX_PATH else None

    def _required_data(self, instead: Mapping[str, Any]) -> str:
        """Return which required fields the path demands."""
        path = instead.get("stage")
        if not isinstance(path, list):
            return ""
        fields = [
            f"{name}.{field.name}"
            for name in dict.fromkeys(path)
            for field in self.strategy.by_name[name].fields
            if field.required
        ]
        return f", with {', '.join(fields)} in data" if fields else ""


def thought_left(head: Head, view: SessionView, number: int, seq: int | None = None) -> ThoughtRow:
    """Return the thought that a new branch leaves: looked up from the main line outwards to the latest thought's line.

    Raises:
        UsageError: There is none.
    """
    lines = [branch for branch, _ in ancestry(head, head.latest)]
    search = [(branch, None) for branch in reversed(lines)]
    return find_thought(view, "branchFromThought", number, search, seq)


def show_arguments(arguments: Mapping[str, Any]) -> str:
    """Return arguments of a call as an error shows them."""
    texts = [
        f"no {name}" if value is None else f"{name}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
    ]
    return ", ".join(texts)


def shortest_way(strategy: Table, start: str, to: str) -> list[str] | None:
    """Return the stages from `start`, which is left out, to `to`; None if no way leads there."""
    table = strategy.by_name
    before: dict[str, str] = {}
    waiting = [start] if start in table else []
    for here in waiting:
        for following in table[here].to:
            if following not in before:
                before[following] = here
                waiting.append(following)
    if to not in before:
        return None
    path = [to]
    while before[path[0]] != start:
        path.insert(0, before[path[0]])
    return path
