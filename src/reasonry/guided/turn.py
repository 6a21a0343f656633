"""A turn of guided thinking: applies a call to its session inside a transaction."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..core.strategy import Strategy
from ..errors import StoreError, TooLargeError, UsageError
from ..records import SessionChange, SessionRow, SessionView, ThoughtRow
from ..text import first_words
from .findings import before_the_end, consequences, false_claims, keep, left_open
from .lines import Head, RowsView, ThoughtLine, decode_record, encode, find_kept, spans
from .moves import shortest_way
from .session_settings import SessionSettings
from .thinking_tool import Notice, ThinkingCall
from .thought import Placed, settle_fields, submit, with_guidance_given
from .which_session import KnownSession, SessionChoice, SessionRequest

PURPOSE_CHARS = 100
_LOOKED_BACK = 64
"""The latest thoughts among which a repeated one is looked for."""
LEAST_ASKED = 3
"""The thoughts from which a session is asked about possible mistakes before its end."""
SHOWN_CHARS = 20_000
"""The default limit for thoughts shown in a reply, except in replies that show all by contract."""

Find = Callable[[str | None], Strategy[Any, Any]]
"""Finds a strategy by name or alias. None means the default strategy of sessions."""


class Taken(Struct):
    """The result of a turn: the session and the thought as written.

    Attributes:
        earlier: The state of the session before the turn.
        recalls: Whether the reply repeats everything the agent needs, for a connection that is new to the session.
        history: The thoughts shown in the reply, if any.
        before_end: The questions before the end, if due.
        left_open: The open points at the end.
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
    """A call with everything needed to decide it.

    Args:
        others: Unknown arguments, which may be fields of the thought's stage.
        lapses: Whether an expired session ends rather than continues.
        directory: The working directory of a new session.
        fault: The fault of the arguments, reported after the fate of the session.
        history: The default number of thoughts shown in the reply; None for all.
    """

    others: Mapping[str, Any]
    lapses: bool
    directory: str
    fault: UsageError | None = None
    now_ms: int
    settings: SessionSettings
    find: Find
    history: int | None

    def decide(self, view: SessionView) -> SessionChange:
        """Take the thought, into the session that is there or into a new one.

        Raises:
            UsageError: The call breaks a rule.
        """
        there = None if view.row is None else KnownSession(view.row, view, self._has_lapsed(view.row))
        choice = self.which_session(there, list(self._candidates(view)))
        try:
            if self.fault:
                raise self.fault
            return self._take(view, choice)
        except UsageError as error:
            lost = [notice.message for notice in choice.notices if notice.reason in ("expired", "unknown")]
            if not lost:
                raise
            about = f"{lost[0].partition(';')[0]}; this call would begin a new session."
            raise type(error)(f"{about} {error.message}", code=error.code, **error.details) from None

    def _take(self, view: SessionView, choice: SessionChoice) -> SessionChange:
        call = self.call
        if choice.session is None:
            strategy = self.find(call.strategy)
            purpose = first_words(call.thought, PURPOSE_CHARS)
            ttl_ms = int(self.settings.ttl_s * 1_000)
            row = SessionRow(
                choice.new_id, strategy.name, self.now_ms, self.now_ms, purpose=purpose, ttl_ms=ttl_ms
            )
            head, view = Head(ThoughtLine(""), directory=self.directory), RowsView()
        else:
            row, head, view = choice.session.row, choice.session.head, choice.session.view
            if (kept := find_kept(view, head, call.thought_number, call.thought, self.mark)) is not None:
                return SessionChange(value=self._keep_once(choice, choice.session, kept))
            strategy = self._strategy_of(row, head)
        call, dropped = settle_fields(strategy, call, self.others, self.settings.max_thought_chars)
        placed = submit(strategy, head, call, view, at_ms=self.now_ms, mark=self.mark)
        asks = ends_soon(strategy, head, placed)
        verdicts = tuple(replace(verdict, is_new=False) for verdict in head.verdicts)
        after_reply = replace(placed.head, asked=head.asked or asks, verdicts=verdicts)
        placed = replace(placed, head=with_guidance_given(strategy, after_reply))
        self._check_limits(row, head, placed)
        after = replace(
            row,
            strategy=strategy.name,
            used_at_ms=self.now_ms,
            status="active",
            thoughts=row.thoughts + 1,
            head=encode(placed.head),
        )
        thought = ThoughtRow(
            after.thoughts, call.thought_number, call.thought, placed.branch, encode(placed.record)
        )
        taken = Taken(strategy, after, thought, placed, head, choice, [*choice.notices])
        taken.notices += [*call_notices(taken, call, dropped, view), *placed_notices(taken)]
        self._complete(taken, view, asks=asks)
        elsewhere = choice.session is not None and row.session_id != self.target
        return SessionChange(
            after,
            thought,
            choice.delete,
            taken,
            archive_as=choice.archive_as,
            instead=row.session_id if elsewhere else None,
        )

    def _complete(self, taken: Taken, view: SessionView, *, asks: bool) -> None:
        """Read the earlier thoughts that the reply needs, and add the findings about them."""
        head, record, there = taken.placed.head, taken.placed.record, taken.earlier.thoughts
        seen = None if self.thinker is None or taken.choice.session is None else self.thinker.seen
        taken.recalls = seen is not None and taken.row.session_id not in seen
        # A reply shows no thoughts but those asked for, except on a connection that sees the session first.
        count = None if taken.recalls and self.history == 0 else self.history
        count = count if self.call.history is None else self.call.history
        is_end, revises = not record.next_thought_needed, record.revises_seq is not None
        needs_all = is_end or revises or asks or count is None
        rows = [*view.latest(there if needs_all or count is None else min(count, there)), taken.thought]
        if count != 0:
            chars = self.settings.max_history_chars or (None if self.history is None else SHOWN_CHARS)
            taken.history = cut_history(rows, count, chars)
        thoughts = keep(rows if is_end or revises or asks else ())
        if revises:
            # Only what this revision leaves, not what earlier ones left.
            taken.notices += [
                Notice(
                    "stands_on_revised",
                    f"{spans(found.numbers)} came after {found.revised} on its line. Say whether each still holds: "
                    "revise it, or name it in data.confirms.",
                )
                for found in consequences(head, thoughts)
                if found.revision == taken.thought.number
            ]
        if asks:
            taken.before_end = before_the_end(head, () if is_end else thoughts)
        if is_end:
            taken.left_open = left_open(head, taken.strategy, thoughts)

    def _keep_once(self, choice: SessionChoice, known: KnownSession, thought: ThoughtRow) -> Taken:
        """Return the result of the same call when it first arrived."""
        message = f"This is thought {thought.number} of session {known.id} already; nothing was added."
        row, head, notices = known.row, known.head, [Notice("already_kept", message)]
        placed = Placed(head, thought.branch, decode_record(thought))
        taken = Taken(self.find(row.strategy), row, thought, placed, head, choice, notices, recalls=True)
        if not placed.record.next_thought_needed:
            rows = known.view.latest(head.thoughts)[: thought.seq]
            taken.left_open = left_open(head, taken.strategy, keep(rows))
        return taken

    def _has_lapsed(self, row: SessionRow) -> bool:
        return self.lapses and is_over(row, self.settings, self.now_ms)

    def _candidates(self, view: SessionView) -> Iterator[KnownSession]:
        """Return the sessions that a call without a session id may continue."""
        for session_id in self.thinker.ids if self.thinker is not None and self.session_id is None else ():
            # One that is damaged must not stand in the way of the others.
            with contextlib.suppress(StoreError):
                seen = view if session_id == self.target else view.other(session_id)
                known = None if seen.row is None or seen.row.run_id else KnownSession(seen.row, seen)
                if known and known.head and not self._has_lapsed(known.row):
                    yield known

    def _strategy_of(self, row: SessionRow, head: Head) -> Strategy[Any, Any]:
        """Return the strategy of a session. A session without a strategy adopts the first named one."""
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


def is_over(row: SessionRow, settings: SessionSettings, now_ms: int) -> bool:
    """Whether a session's time to live has run out."""
    ttl_ms = settings.ttl_s * 1_000 if row.ttl_ms is None else row.ttl_ms
    return not row.pinned and row.used_at_ms + ttl_ms < now_ms


def ends_soon(strategy: Strategy[Any, Any], earlier: Head, placed: Placed) -> bool:
    """Whether to ask the questions before the end: this thought or the next may be the last."""
    head, record = placed.head, placed.record
    if earlier.asked or head.thoughts < LEAST_ASKED + (not record.next_thought_needed):
        return False
    if not record.next_thought_needed or record.total_thoughts <= head.line(placed.branch).number + 1:
        return True
    stage = strategy.by_name.get(record.stage)
    return stage is not None and any(not strategy.by_name[name].to for name in stage.to)


# -- notices


def placed_notices(taken: Taken) -> Iterator[Notice]:
    """Yield the notices about an accepted thought: stages, predictions, findings of readers."""
    strategy, placed, earlier = taken.strategy, taken.placed, taken.earlier
    stages = placed.record.stages
    if stages and not earlier.thoughts and stages[0] != strategy.first:
        way = shortest_way(strategy, strategy.first, stages[0])
        skipped = [strategy.first, *(() if way is None else way[:-1])]
        yield Notice("stages_skipped", f"Begun at {stages[0]}; skipped: {', '.join(skipped)}.")
    if placed.expected:
        yield Notice("predicted", f'You expected: "{placed.expected}". Does what you observed fit?')
    for fault in false_claims(taken.thought.text, taken.row.purpose if earlier.thoughts else ""):
        yield Notice("arithmetic", f"{fault}.")
    new = [verdict for verdict in earlier.verdicts if verdict.is_new]
    for verdict in new:
        if verdict.verdict != "confirmed":
            about = "" if verdict.number is None else f"Thought {verdict.number}, "
            yield Notice(verdict.verdict, f'{about}"{verdict.claim}" is {verdict.verdict}: {verdict.reason}')
    if new and all(verdict.verdict == "confirmed" for verdict in new):
        yield Notice("confirmed", f"Fresh readers confirmed all {len(new)} claims.")


def call_notices(
    taken: Taken, call: ThinkingCall, dropped: Sequence[str], view: SessionView
) -> Iterator[Notice]:
    """Yield the notices about parts of a call that may not mean what the agent intended.

    Args:
        dropped: A sentence for each dropped argument.
    """
    number, head, branch = call.thought_number, taken.earlier, taken.placed.branch
    if not call.thought.strip() and not call.data:
        yield Notice("empty_thought", "The thought is empty; it was kept as it is.")
    for sentence in dropped:
        yield Notice("unknown_argument", sentence)
    if not head.thoughts:
        return
    same = next((row for row in view.latest(_LOOKED_BACK) if row.text == call.thought), None)
    if same is not None and call.thought.strip() and not call.data:
        yield Notice("repeats", f"This is thought {same.number} again, word for word. What would be new?")
    first = decode_record(there[0]).total_thoughts if (there := view.with_number(1)) else 0
    if head.thoughts + 1 == 2 * first:
        message = f"{2 * first} thoughts, and the first estimate was {first}: what would settle it?"
        yield Notice("over_estimate", message)
    line = head.main if branch is None else head.branches.get(branch)
    latest = taken.placed.record.branch_from_thought or 0 if line is None else line.number
    if number == latest and not call.is_revision and call.revises_thought is None:
        message = f"This line has a thought {number} already; both are kept. The next is {number + 1}."
        yield Notice("number_repeated", message)
    elif number > 1 and latest not in (number, number - 1) and not view.with_number(number - 1):
        message = f"Taken as thought {number}, though no thought here has number {number - 1}."
        yield Notice("number_gap", f"{message} The latest on this line is {latest}.")


# -- history


def cut_history(thoughts: Sequence[ThoughtRow], count: int | None, chars: int | None) -> Sequence[ThoughtRow]:
    """Return the latest thoughts within the limits. The very latest is always included.

    Args:
        count: The most thoughts; None for any number, as for the characters.
    """
    latest = thoughts if count is None else thoughts[max(len(thoughts) - count, 0) :]
    if chars is None:
        return latest
    sizes = accumulate(len(thought.text) for thought in reversed(latest))
    return latest[-max(sum(size <= chars for size in sizes), 1) :]
