"""A turn of guided thinking: apply a call of an agent to its session, inside a transaction of the store."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..core.strategy import Strategy
from ..errors import StoreError, TooLargeError, UsageError
from ..puzzles.equations import false_equations
from ..records import SessionChange, SessionRow, SessionView, ThoughtRow
from ..text import shorten
from .fields import settle_fields
from .lines import Head, RowsView, ThoughtLine, decode_record, encode, find_repeated, spans
from .placement import Placed, shortest_path, submit, with_guidance_given
from .session_choice import KnownSession, SessionChoice, SessionRequest
from .session_review import RecordedThought, before_the_end, consequences, left_open, with_records
from .session_settings import SessionSettings
from .thinking_tool import Notice, ThinkingCall

PURPOSE_CHARS = 100
_LOOKED_BACK = 64
"""How many of the latest thoughts to search for the text of the new thought."""
LEAST_ASKED = 3
"""How many thoughts a session must have before a reply asks the agent about possible mistakes."""
_MAX_EQUATIONS = 3
SHOWN_CHARS = 20_000
"""The most characters of thoughts in a reply by default. If replies show all thoughts by default, there is no limit."""

Find = Callable[[str | None], Strategy[Any, Any]]
"""A function that finds a strategy by name or alias. The name None means the default strategy of sessions."""


class TurnResult(Struct):
    """The result of a turn: the session and the thought as stored, and the facts for the reply.

    Attributes:
        earlier: The state of the session before the turn.
        recalls: Whether the reply repeats all that the agent needs, because the agent may not have the earlier replies.
        history: The thoughts shown in the reply, if any.
        before_end: The open points and the question that the agent gets before the end, if they are due.
        left_open: The open points of the session, if this thought ends the session.
    """

    strategy: Strategy[Any, Any]
    row: SessionRow
    thought: ThoughtRow
    placed: Placed
    earlier: Head
    choice: SessionChoice
    notices: list[Notice]
    recalls: bool = False
    history: Sequence[ThoughtRow] | None = None
    before_end: str = ""
    left_open: str = ""


class ThinkingTurn(SessionRequest, frozen=True, kw_only=True):
    """A call of an agent, and everything needed to accept or refuse the call.

    Args:
        others: Unknown arguments, which may be fields of the thought's stage.
        deletes_expired: Whether expired sessions are deleted. Otherwise a call may still continue an expired session.
        directory: The working directory of a new session.
        fault: The fault in the arguments, if any. A turn raises the fault after it has chosen the session.
        history: How many thoughts the reply shows by default. None means all.
    """

    others: Mapping[str, Any]
    deletes_expired: bool
    directory: str
    fault: UsageError | None = None
    now_ms: int
    settings: SessionSettings
    find: Find
    history: int | None

    def decide(self, view: SessionView) -> SessionChange:
        """Add the thought to an existing session or to a new one. If the call is not acceptable, raise UsageError."""
        there = None if view.row is None else KnownSession(view.row, view, self._is_gone(view.row))
        choice = self.choose_session(there, list(self._candidates(view)))
        try:
            if self.fault:
                raise self.fault
            return self._take(view, choice)
        except UsageError as error:
            lost = [notice.message for notice in choice.notices if notice.reason in ("expired", "unknown")]
            if not lost:
                raise
            fate = f"{lost[0].partition(';')[0]}; this call would begin a new session."
            raise type(error)(f"{fate} {error.message}", code=error.code, **error.details) from None

    def _take(self, view: SessionView, choice: SessionChoice) -> SessionChange:
        known = choice.session or self._new_session(choice)
        row, head, view = known.row, known.head, known.view
        repeated = find_repeated(view, head, self.call.thought_number, self.call.thought, self.mark)
        if repeated is not None:
            return SessionChange(value=self._repeat(choice, known, repeated))
        strategy = self._strategy_of(row, head)
        call, dropped = settle_fields(strategy, self.call, self.others, self.settings.max_thought_chars)
        placed = submit(strategy, head, call, view, at_ms=self.now_ms, mark=self.mark)
        self._check_limits(row, head, placed)
        asks = ends_soon(strategy, head, placed)
        verdicts = tuple(replace(verdict, is_new=False) for verdict in head.verdicts)
        after_reply = replace(placed.head, asked=head.asked or asks, verdicts=verdicts)
        placed = replace(placed, head=with_guidance_given(strategy, after_reply))
        seq, body = row.thoughts + 1, encode(placed.record)
        thought = ThoughtRow(seq, call.thought_number, call.thought, placed.branch, body)
        after = replace(
            row,
            strategy=strategy.name,
            used_at_ms=self.now_ms,
            status="active",
            thoughts=seq,
            head=encode(placed.head),
        )
        result = TurnResult(strategy, after, thought, placed, head, choice, [*choice.notices])
        result.notices += [*call_notices(result, call, dropped, view), *placed_notices(result)]
        self._review(result, view, asks=asks)
        instead = row.session_id if choice.session and row.session_id != self.target else None
        return SessionChange(after, thought, choice.delete, result, choice.archive_as, instead)

    def _new_session(self, choice: SessionChoice) -> KnownSession:
        row = SessionRow(
            choice.new_id,
            self.find(self.call.strategy).name,
            self.now_ms,
            self.now_ms,
            purpose=shorten(self.call.thought, PURPOSE_CHARS, one_line=True),
            head=encode(Head(ThoughtLine(""), directory=self.directory)),
            ttl_ms=int(self.settings.ttl_s * 1_000),
        )
        return KnownSession(row, RowsView())

    def _review(self, result: TurnResult, view: SessionView, *, asks: bool) -> None:
        """Add to `result` the earlier thoughts and the open points that the reply shows."""
        head, record, there = result.placed.head, result.placed.record, result.earlier.thoughts
        seen = None if result.choice.session is None else self.thinker.seen
        result.recalls = seen is not None and result.row.session_id not in seen
        # A reply shows only the requested thoughts, unless the connection sees this session for the first time.
        count = None if result.recalls and self.history == 0 else self.history
        count = count if self.call.history is None else self.call.history
        is_end, revises = not record.next_thought_needed, record.revises_seq is not None
        needs_all = is_end or revises or asks
        rows = [*view.latest(there if needs_all or count is None else min(count, there)), result.thought]
        if count != 0:
            chars = self.settings.max_history_chars or (None if self.history is None else SHOWN_CHARS)
            result.history = cut_history(rows, count, chars)
        thoughts = with_records(rows if needs_all else ())
        if revises:
            result.notices += revision_notices(head, thoughts)
        if asks:
            result.before_end = before_the_end(head, () if is_end else thoughts)
        if is_end:
            result.left_open = left_open(head, result.strategy, thoughts)

    def _repeat(self, choice: SessionChoice, known: KnownSession, thought: ThoughtRow) -> TurnResult:
        """Return the result for a call that repeats an earlier call. Nothing is added to the session."""
        message = f"This is thought {thought.number} of session {known.id} already; nothing was added."
        row, head, notices = known.row, known.head, [Notice("already_kept", message)]
        strategy, placed = self.find(row.strategy), Placed(head, thought.branch, decode_record(thought))
        result = TurnResult(strategy, row, thought, placed, head, choice, notices, recalls=True)
        if not placed.record.next_thought_needed:
            rows = known.view.latest(head.thoughts)[: thought.seq]
            result.left_open = left_open(head, strategy, with_records(rows))
        return result

    def _is_gone(self, row: SessionRow) -> bool:
        return self.deletes_expired and self.settings.has_expired(row, self.now_ms)

    def _candidates(self, view: SessionView) -> Iterator[KnownSession]:
        """Yield the sessions that a call without a session id may continue."""
        for session_id in self.thinker.ids if self.session_id is None else ():
            # A damaged session must not block the others.
            with contextlib.suppress(StoreError):
                seen = view if session_id == self.target else view.other(session_id)
                known = None if seen.row is None or seen.row.run_id else KnownSession(seen.row, seen)
                if known and known.head and not self._is_gone(known.row):
                    yield known

    def _strategy_of(self, row: SessionRow, head: Head) -> Strategy[Any, Any]:
        """Return the strategy of a session. A session without a strategy adopts the first strategy named in a call."""
        strategy = self.find(row.strategy)
        if self.call.strategy is None:
            return strategy
        wanted = self.find(self.call.strategy)
        if wanted.name == row.strategy or not head.has_stage:
            return wanted
        raise UsageError(
            f"session {row.session_id} thinks by {row.strategy}, and a session keeps its strategy; for {wanted.name} "
            "begin a new one: thought number 1, without a session id",
            field="strategy",
            choices=[row.strategy],
        )

    def _check_limits(self, row: SessionRow, head: Head, placed: Placed) -> None:
        limit = self.settings.max_thoughts
        if row.thoughts >= limit:
            raise TooLargeError(
                f"session {row.session_id} has {row.thoughts:,} thoughts; the limit is {limit:,}. "
                "Begin a new session.",
                limit=limit,
            )
        limit = self.settings.max_branches
        if len(placed.head.branches) > max(limit, len(head.branches)):
            raise TooLargeError(
                f"session {row.session_id} has {len(head.branches):,} branches; the limit is {limit:,}. "
                "Continue one of them, or begin a new session.",
                field="branch_id",
                limit=limit,
            )


def ends_soon(strategy: Strategy[Any, Any], earlier: Head, placed: Placed) -> bool:
    """Whether to ask about open points and mistakes now: the session may end soon, and no reply has asked before."""
    head, record = placed.head, placed.record
    if earlier.asked or head.thoughts < LEAST_ASKED + (not record.next_thought_needed):
        return False
    if not record.next_thought_needed or record.total_thoughts <= head.line(placed.branch).number + 1:
        return True
    stage = strategy.by_name.get(record.stage)
    return stage is not None and any(not strategy.by_name[name].to for name in stage.to)


# -- notices


def placed_notices(result: TurnResult) -> Iterator[Notice]:
    """Yield the notices about an accepted thought, for example about a false equation."""
    strategy, placed, earlier = result.strategy, result.placed, result.earlier
    stages = placed.record.stages
    if stages and not earlier.thoughts and stages[0] != strategy.first:
        way = shortest_path(strategy, strategy.first, stages[0])
        skipped = [strategy.first, *(() if way is None else way[:-1])]
        yield Notice("stages_skipped", f"Begun at {stages[0]}; skipped: {', '.join(skipped)}.")
    if placed.expected:
        yield Notice("predicted", f'You expected: "{placed.expected}". Does what you observed fit?')
    about = result.row.purpose if earlier.thoughts else ""
    for fault in false_equations(result.thought.text, about=about)[:_MAX_EQUATIONS]:
        yield Notice("arithmetic", f"{fault}.")
    new = [verdict for verdict in earlier.verdicts if verdict.is_new]
    for verdict in new:
        if verdict.verdict != "confirmed":
            where = "" if verdict.number is None else f"Thought {verdict.number}, "
            yield Notice(verdict.verdict, f'{where}"{verdict.claim}" is {verdict.verdict}: {verdict.reason}')
    if new and all(verdict.verdict == "confirmed" for verdict in new):
        yield Notice("confirmed", f"Fresh readers confirmed all {len(new)} claims.")


def call_notices(
    result: TurnResult, call: ThinkingCall, dropped: Sequence[str], view: SessionView
) -> Iterator[Notice]:
    """Yield the notices about parts of a call that may not mean what the agent intended.

    Args:
        dropped: A sentence for each dropped argument.
    """
    number, head, branch = call.thought_number, result.earlier, result.placed.branch
    if not call.thought.strip() and not call.data:
        yield Notice("empty_thought", "The thought is empty; it was kept as it is.")
    for sentence in dropped:
        yield Notice("unknown_argument", sentence)
    if not head.thoughts:
        return
    same = view.find_text(call.thought, _LOOKED_BACK) if call.thought.strip() and not call.data else None
    if same is not None:
        yield Notice("repeats", f"This is thought {same} again, word for word. What would be new?")
    half, is_odd = divmod(head.thoughts + 1, 2)
    there = [] if is_odd else view.with_number(1)
    if there and decode_record(there[0]).total_thoughts == half:
        message = f"{2 * half} thoughts, and the first estimate was {half}: what would settle it?"
        yield Notice("over_estimate", message)
    line = head.main if branch is None else head.branches.get(branch)
    latest = result.placed.record.branch_from_thought or 0 if line is None else line.number
    if number > 1 and latest not in (number, number - 1) and not view.with_number(number - 1):
        message = f"Taken as thought {number}, though no thought here has number {number - 1}."
        yield Notice("number_gap", f"{message} The latest on this line is {latest}.")


def revision_notices(head: Head, thoughts: Sequence[RecordedThought]) -> Iterator[Notice]:
    """Yield a notice if the latest thought is a revision and unchecked thoughts followed the revised thought."""
    for found in consequences(head, thoughts):
        if found.revision == thoughts[-1].row.number:
            yield Notice(
                "stands_on_revised",
                f"{spans(found.numbers)} came after {found.revised} on its line. Say whether each still holds: "
                "revise it, or name it in data.confirms.",
            )


# -- history


def cut_history(thoughts: Sequence[ThoughtRow], count: int | None, chars: int | None) -> Sequence[ThoughtRow]:
    """Return the latest thoughts, at most `count` thoughts with at most `chars` characters. None means no limit.

    The limit `chars` never excludes the very latest thought.
    """
    latest = thoughts if count is None else thoughts[max(len(thoughts) - count, 0) :]
    if chars is None:
        return latest
    sizes = accumulate(len(thought.text) for thought in reversed(latest))
    return latest[-max(sum(size <= chars for size in sizes), 1) :]
