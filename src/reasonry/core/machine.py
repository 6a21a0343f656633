"""The machine: walks a strategy's table. Pure: no clock, no chance, no I/O.

Theory of operation. A run stands in a stage, whose body is a generator function of the state: it yields a request, is
sent the answers and returns a `Move`. The machine runs the body over the answers the stage has had
(`Snapshot.rounds_had`); where it requests something nobody has answered yet, the effects become `Pending`. Each event
settles one; when all are settled, their answers join the others and the body is run again. So nothing lives between two
events but data.

Rule 1: everything that decides where a run goes happens here or in a strategy; a run is a fold over its events.
Rule 2: ids are counted, never drawn: `e4` is the fourth effect, `e4.2` its second try, `e4/e1` the first effect of the
        strategy that runs inside `e4`. So they do not depend on the order of arrival.
Rule 3: a reply is read once, and its `Reading` is recorded with it. A reply that cannot be read is asked for again,
        with the reason, up to `Ask.retries` times; then the answer is a `Failed` with code `output_invalid`.
Rule 4: a failure is raised at the yield when the yield's other answers are in, the first in the order asked, unless the
        request has `give_failures`. Uncaught it ends the run.
Rule 5: conclusion, progress, readers and stops see the state of the last yield.
Rule 6: a stop loses nothing that came in: the body is run once more, with `Failed(stopped)` for what is missing of its
        last request, up to its move or next request, and the best so far is that of the state it reaches. The
        snapshot's own state stays, so that the run can go on as if it had never been stopped.
Rule 7: where a request has `enough` and it holds, what is missing is settled as in a stop, and the body goes on.
Rule 8: with the answers a digest of what was asked is kept: a body that asks something else when it is run again is
        found at once (`strategy_changed`). A body that raises ends the run with `stage_error`; its answers are kept.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import ConflictError, InvalidStrategyError, ReasonryError, UsageError
from .answer_form import form_stage
from .budget import NOTHING
from .effects import Ask, CallTool, Effect, RunStrategy, Verify
from .events import (
    STOPPED,
    Answered,
    Delivered,
    Event,
    Failed,
    Finished,
    Reply,
    Stopped,
    ToolReturned,
    Verified,
)
from .options import read_options
from .registry import Registry, find_strategy, strategy_names
from .reply_reading import Reading, ask_again, convert_reading, read_reply
from .strategy import Answers, Conclusion, EffectFailed, Move, Request, Stage, Strategy, Thought

Status = Literal["active", "done", "failed", "cancelled"]

SET_ASIDE = "set_aside"
"""Why a run was stopped that whoever drove it did not survive."""

_STOPPED_AS: dict[str, Status] = {"cancelled": "cancelled", SET_ASIDE: "failed"}
"""The status of a run that was stopped for a reason other than a limit."""

MAX_SILENT_MOVES = 1_000
"""Moves, or yields, in a row without asking anybody; more is a loop."""

_KINDS: dict[type, tuple[type, ...]] = {
    Ask: (Answered, Failed),
    CallTool: (ToolReturned, Failed),
    Verify: (Verified, Failed),
    RunStrategy: (),
}
_encode = msgspec.json.Encoder().encode


class Pending(Struct, frozen=True, omit_defaults=True):
    """An effect to perform, or one already settled that waits for its siblings."""

    id: str
    stage: str
    effect: Effect
    round: int
    """1 for effects that wait for no model call, n + 1 for those that wait for one of round n."""
    replies: tuple[Answered, ...] = ()
    """What was answered so far; more than one after a re-ask."""
    before: int = 0
    """Of the replies, those that came before the run was taken up again: they use up no try."""
    settled: Delivered | None = None
    """What the stage gets for it."""
    child: Snapshot | None = None
    """The run inside this one, for `RunStrategy`."""

    @property
    def tries(self) -> int:
        """How many of its tries the question has used up."""
        return len(self.replies) - self.before

    @property
    def last_round(self) -> int:
        """The round of questions it stands in; what is no question adds none."""
        if self.child is not None:
            return max([self.child.rounds, *(inner.last_round for inner in self.child.pending)])
        return self.round if isinstance(self.effect, Ask) else self.round - 1


class Round(Struct, frozen=True, array_like=True):
    """The answers to one request, with a digest of what it asked."""

    asked: int
    answers: Answers


class Snapshot(Struct, frozen=True, omit_defaults=True):
    """A run between two answers: all there is to know of it."""

    strategy: str
    problem: str
    options: dict[str, Any]
    stage: str
    state: Any
    """As of the last yield, or of the stage's entry before the first one."""
    status: Status = "active"
    pending: tuple[Pending, ...] = ()
    counter: int = 0
    rounds: int = 0
    """Dependent rounds of model calls so far."""
    at_ms: int = 0
    conclusion: Conclusion | None = None
    """Set when the run has ended."""
    error: str | None = None
    """The code of the failure that ended the run."""
    entry: Any = None
    """The state at the stage's entry, where it is not `state`."""
    rounds_had: tuple[Round, ...] = ()
    """What this stage has been answered since its entry, yield by yield."""
    asked: int = 0
    """Digest of what is pending."""
    has_enough: bool = False
    """Whether the request that is pending has a test `enough`."""
    form: dict[str, Any] | None = None
    """JSON schema of the answer, where the run's caller named one; see `answer_form`."""


class Step(Struct, frozen=True):
    """One answer taken: the new snapshot, what to perform now, and what happened on the way."""

    snapshot: Snapshot
    effects: tuple[Pending, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    thoughts: tuple[Thought, ...] = ()
    reading: Reading | None = None
    """Of the reply just taken, if it was one."""
    cancelled: tuple[str, ...] = ()
    """Effects nobody waits for any more: what came in is enough."""


# -- a stage, run over the answers it has had


class Reached(Struct):
    """How far a stage's answers lead: to a move, to an uncaught failure, or to a request nobody has answered yet."""

    state: Any
    thoughts: tuple[Thought, ...] = ()
    request: Request | None = None
    move: Move | None = None
    failure: Failed | None = None


def run_stage(stage: Stage[Any], state: Any, rounds: Sequence[Round]) -> Reached:
    """Run a stage's body over its answers, as far as they lead.

    Raises:
        ConflictError: `strategy_changed`: the body asks something else than what was answered.
    """
    assert stage.run is not None, "checked when the strategy was defined"
    reached, left = Reached(state), iter(rounds)
    try:
        script = stage.run(state)
        if isinstance(script, Move):
            reached.move = script
        else:
            _run_body(stage.name, script, reached, left)
    except ReasonryError:
        raise
    except Exception as error:
        message = f"stage {stage.name!r} raised {type(error).__name__}: {error}"
        reached.failure = Failed("stage_error", message[:1000])
        return reached
    _check_same(stage.name, next(left, None), None)
    return reached


def _run_body(name: str, script: Any, reached: Reached, rounds: Iterator[Round]) -> None:
    """Send the answers of each round in; thoughts of yields that have been answered were recorded before."""
    silent = 0
    try:
        requested: Request = next(script)
        while True:
            reached.state = requested.state
            reached.thoughts += requested.thoughts
            answers: Answers = ()
            if requested.effects:
                had = next(rounds, None)
                if had is None:
                    reached.request = requested
                    script.close()
                    return
                _check_same(name, had, requested)
                answers, reached.thoughts = had.answers, ()
            elif (silent := silent + 1) > MAX_SILENT_MOVES:
                reached.failure = Failed("stage_loop", f"stage {name!r} yields without end and asks nobody")
                return
            lost = None if requested.give_failures else _first_failure(answers)
            requested = script.send(answers) if lost is None else script.throw(EffectFailed(lost, answers))
    except StopIteration as end:
        if not isinstance(end.value, Move):
            raise TypeError("the body returned no move") from None
        reached.move = end.value
    except EffectFailed as lost:
        reached.failure = lost.failure


def _first_failure(answers: Answers) -> Failed | None:
    return next((answer for answer in answers if isinstance(answer, Failed)), None)


def _check_same(name: str, had: Round | None, requested: Request | None) -> None:
    """Check that what was answered is what is requested; None: nothing."""
    if had is not None and (requested is None or _digest(requested.effects) != had.asked):
        raise ConflictError(
            f"stage {name!r} asks something else than it did when the run was recorded",
            code="strategy_changed",
            stage=name,
        )


def _digest(effects: tuple[Effect, ...]) -> int:
    return zlib.crc32(_encode(effects))


# -- runs


def begin(
    strategy: Strategy[Any, Any],
    problem: str,
    options: Struct | None = None,
    *,
    strategies: Registry | None = None,
    form: dict[str, Any] | None = None,
) -> Step:
    """Start a run.

    Args:
        strategy: What to run.
        problem: What to run it on.
        options: The strategy's own options struct; its defaults if None.
        strategies: Where strategies that this one runs are looked up.
        form: JSON schema of the answer; see `answer_form`.

    Raises:
        InvalidStrategyError: The strategy is for guided use only.
    """
    if strategy.begin is None:
        raise InvalidStrategyError(f"strategy {strategy.name!r} is for guided use only")
    chosen = strategy.options() if options is None else options
    snapshot = Snapshot(
        strategy=strategy.name,
        problem=problem,
        options=msgspec.json.decode(_encode(chosen)),
        stage=strategy.first,
        state=strategy.begin(problem, chosen),
        form=form,
    )
    return _Execution(strategy, snapshot, strategies or {}).go_on()


def advance(
    strategy: Strategy[Any, Any],
    snapshot: Snapshot,
    effect_id: str | None,
    event: Event,
    *,
    strategies: Registry | None = None,
    reading: Reading | None = None,
) -> Step:
    """Take one event and go as far as it leads.

    Args:
        effect_id: The effect the event settles; None for `Stopped`.
        reading: How an answer was read when it was recorded; None: it is read now.

    Raises:
        ConflictError: The run has ended, or the effect is not pending, or the event does not fit it. Nothing changed.
        ConflictError: `strategy_changed`: what was recorded does not fit the strategy as it is today.
    """
    if snapshot.status != "active":
        raise ConflictError(f"the run has ended ({snapshot.status}); it takes no more events")
    run = _Execution(strategy, snapshot, strategies or {})
    return run.stop(event) if isinstance(event, Stopped) else run.settle(effect_id or "", event, reading)


def refusal_of(
    strategy: Strategy[Any, Any],
    snapshot: Snapshot,
    effect_id: str,
    answered: Answered,
    *,
    strategies: Registry | None = None,
) -> str | None:
    """Return why an answer to an open question cannot be read; None where it can. Nothing is taken.

    It is read as `advance` reads a last try: what a reader only doubts is no reason to refuse it.
    """
    own, _, inner = effect_id.partition("/")
    waiting = next(waiting for waiting in snapshot.pending if waiting.id == own)
    if waiting.child is not None:
        child = (strategies or {})[waiting.child.strategy]
        return refusal_of(child, waiting.child, inner, answered, strategies=strategies)
    assert isinstance(waiting.effect, Ask), "only questions are answered"
    last_try = replace(waiting.effect, retries=len(waiting.replies))
    stage, replies = stage_of(strategy, snapshot), (*waiting.replies, answered)
    return read_reply(stage, snapshot.state, last_try, replies).refusal


def stage_of(strategy: Strategy[Any, Any], snapshot: Snapshot) -> Stage[Any]:
    """Return the stage a run stands in; the last one asks for the answer in the form that is wanted."""
    stage = strategy.by_name[snapshot.stage]
    if stage.to or snapshot.form is None:
        return stage
    return form_stage(strategy, stage, snapshot.problem, snapshot.form)


class _Execution:
    """One call of `begin` or `advance`: a snapshot being replaced, and what it leaves behind."""

    def __init__(self, strategy: Strategy[Any, Any], snapshot: Snapshot, strategies: Registry) -> None:
        self.strategy = strategy
        self.now = snapshot
        self.strategies = strategies
        self.effects: list[Pending] = []
        self.edges: list[tuple[str, str]] = []
        self.thoughts: list[Thought] = []
        self.cancelled: list[str] = []
        self.reading: Reading | None = None

    def _reach(self, stage: Stage[Any], *more: Round) -> Reached:
        now = self.now
        entry = now.state if now.entry is None else now.entry
        return run_stage(stage, entry, (*now.rounds_had, *more))

    def go_on(self) -> Step:
        """Run stages as far as their answers lead."""
        for _ in range(MAX_SILENT_MOVES):
            stage = stage_of(self.strategy, self.now)
            if stage.run is None:
                return self._end(self.strategy.conclude(self.now.state))
            reached = self._reach(stage)
            self._record(stage, reached.thoughts)
            if reached.request is not None:
                has_answers = self._open(stage, reached.request)
                if not (has_answers and self._take_answers()):
                    return self._step()
            elif reached.failure is not None:
                lost = reached.failure
                return self._fail(reached.state, "error", lost.message, lost.code)
            else:
                move = reached.move
                assert move is not None
                self._record(stage, move.thoughts)
                if not stage.to:
                    return self._end(replace(self.strategy.conclude(self.now.state), answer=move.state))
                if move.failure is not None:
                    return self._fail(move.state, *move.failure)
                self._follow(stage, move)
        detail = f"stage {self.now.stage!r} went round without asking anybody"
        return self._fail(self.now.state, "stage_loop", detail, "stage_loop")

    def _record(self, stage: Stage[Any], thoughts: Sequence[Thought]) -> None:
        for thought in thoughts:
            self.thoughts.append(thought if thought.stage else replace(thought, stage=stage.name))

    def _follow(self, stage: Stage[Any], move: Move) -> None:
        if move.to is not None:
            self.strategy.check_move(stage.name, move.to)
            self.edges.append((stage.name, move.to))
        elif stage.repeats:
            self.edges.append((stage.name, stage.name))
        to = move.to or stage.name
        self.now = replace(self.now, state=move.state, stage=to, rounds_had=(), entry=None, pending=())

    # -- asking

    def _open(self, stage: Stage[Any], requested: Request) -> bool:
        """Make effects pending; return whether some are answered already, by runs inside that asked nobody."""
        now, has_children = self.now, False
        pending: list[Pending] = []
        for number, effect in enumerate(requested.effects, now.counter + 1):
            if isinstance(effect, Ask):
                limit = effect.max_output_tokens or stage.max_output_tokens
                effect = replace(effect, form=effect.form or stage.form, max_output_tokens=limit)
            waiting = Pending(f"e{number}", stage.name, effect, now.rounds + 1)
            if isinstance(effect, RunStrategy):
                has_children, waiting = True, self._open_child(waiting)
            pending.append(waiting)
        entry = now.state if now.entry is None and requested.state is not now.state else now.entry
        self.now = replace(
            now,
            state=requested.state,
            entry=entry,
            pending=tuple(pending),
            counter=now.counter + len(pending),
            asked=_digest(requested.effects),
            has_enough=requested.enough is not None,
        )
        self.effects += open_effects(self.now) if has_children else pending
        return has_children

    def _open_child(self, waiting: Pending) -> Pending:
        assert isinstance(waiting.effect, RunStrategy)
        inner = find_strategy(waiting.effect.strategy, self.strategies)
        if inner is None:
            raise UsageError(
                f"There is no strategy {waiting.effect.strategy!r} to run inside.",
                code="strategy_unknown",
                choices=strategy_names(self.strategies),
            )
        options = read_options(inner, waiting.effect.options)
        step = begin(inner, waiting.effect.problem, options, strategies=self.strategies)
        return self._with_child(
            waiting, replace(step, snapshot=_shift_rounds(step.snapshot, self.now.rounds))
        )

    # -- settling effects

    def settle(self, effect_id: str, event: Event, reading: Reading | None) -> Step:
        """Book the event; go on when it was the last the stage waited for."""
        own, _, inner = effect_id.partition("/")
        ids = [waiting.id for waiting in self.now.pending]
        index = ids.index(own) if own in ids else None
        if index is None or self.now.pending[index].settled is not None:
            choices = [waiting.id for waiting in open_effects(self.now)]
            raise ConflictError(f"effect {effect_id!r} is not pending", effect=effect_id, choices=choices)
        waiting = self.now.pending[index]
        if inner:
            settled = self._settle_child(waiting, inner, event, reading)
        else:
            settled = self._settle_own(waiting, event, reading)
        pending = (*self.now.pending[:index], settled, *self.now.pending[index + 1 :])
        self.now = replace(self.now, pending=pending, at_ms=max(self.now.at_ms, event.at_ms))
        return self.go_on() if self._take_answers() else self._step()

    def _settle_own(self, waiting: Pending, event: Event, reading: Reading | None) -> Pending:
        kinds = _KINDS[type(waiting.effect)]
        if not isinstance(event, kinds):
            detail = f"effect {waiting.id!r} cannot be settled by {type(event).__name__}"
            raise ConflictError(detail, effect=waiting.id, choices=[kind.__name__ for kind in kinds])
        if isinstance(event, Answered):
            return self._settle_answer(waiting, event, reading)
        assert not isinstance(event, Stopped)
        if isinstance(event, Failed) and waiting.replies:
            spent = sum((reply.usage for reply in waiting.replies), NOTHING)
            return replace(waiting, settled=replace(event, usage=event.usage + spent))
        return replace(waiting, settled=event)

    def _settle_answer(self, waiting: Pending, event: Answered, recorded: Reading | None) -> Pending:
        assert isinstance(waiting.effect, Ask)
        replies = (*waiting.replies, event)
        stage = stage_of(self.strategy, self.now)
        if recorded is None:
            reading = read_reply(stage, self.now.state, waiting.effect, replies)
        else:
            reading = convert_reading(stage, recorded)
        self.reading = reading
        tries = len(replies)
        spent = event.usage if tries == 1 else sum((reply.usage for reply in replies), NOTHING)
        if reading.refusal is None:
            reply = Reply(reading.value, event.text, reading.mode, tries, event.at_ms, spent)
            return replace(waiting, replies=replies, settled=reply)
        answered = replace(waiting, replies=replies)
        times_cut = sum(reply.truncated for reply in replies[waiting.before :])
        if answered.tries > waiting.effect.retries or times_cut > 1:
            texts = tuple(reply.text for reply in replies)
            failure = Failed("output_invalid", reading.refusal, event.at_ms, spent, replies=texts)
            return replace(answered, settled=failure)
        re_ask = next_try(answered, reading.refusal)
        self.effects.append(re_ask)
        return re_ask

    def _settle_child(self, waiting: Pending, inner: str, event: Event, reading: Reading | None) -> Pending:
        if waiting.child is None:
            raise ConflictError(f"effect {waiting.id!r} has no run inside", effect=f"{waiting.id}/{inner}")
        child = self.strategies[waiting.child.strategy]
        step = advance(child, waiting.child, inner, event, strategies=self.strategies, reading=reading)
        self.effects += [replace(effect, id=f"{waiting.id}/{effect.id}") for effect in step.effects]
        self.cancelled += [f"{waiting.id}/{effect_id}" for effect_id in step.cancelled]
        self.reading = step.reading
        return self._with_child(waiting, step)

    def _with_child(self, waiting: Pending, step: Step) -> Pending:
        child = step.snapshot
        self.thoughts += [_nest(waiting.id, thought) for thought in step.thoughts]
        if child.status == "active":
            return replace(waiting, child=child)
        end = _end_of(child.conclusion or Conclusion(), child.status, child.at_ms, child.error)
        return replace(waiting, child=child, settled=end)

    def _take_answers(self) -> bool:
        """Move the answers over if the stage can go on: all of them are there, or what is there is enough."""
        now, pending = self.now, self.now.pending
        answers = _answers_in(pending)
        if len(answers) < len(pending):
            if not answers or not self._is_enough():
                return False
            self.cancelled += [waiting.id for waiting in open_effects(now)]
            cut = Stopped(STOPPED, "what came in is enough", now.at_ms)
            pending = tuple(self._cut(waiting, cut) for waiting in pending)
            answers = _answers_in(pending)
        had = (*now.rounds_had, Round(now.asked, answers))
        rounds = max([now.rounds, *[waiting.last_round for waiting in pending]])
        self.now = replace(now, rounds_had=had, pending=(), rounds=rounds, asked=0, has_enough=False)
        return True

    def _is_enough(self) -> bool:
        if not self.now.has_enough:
            return False
        requested = self._reach(stage_of(self.strategy, self.now)).request
        if requested is None or requested.enough is None:
            return False
        return requested.enough(tuple(waiting.settled for waiting in self.now.pending))

    # -- endings

    def _end(
        self, conclusion: Conclusion, status: Status | None = None, error: str | None = None, **more: Any
    ) -> Step:
        self.now = replace(
            self.now,
            status=status or ("failed" if conclusion.answer is None else "done"),
            conclusion=conclusion,
            error=error,
            pending=(),
            rounds_had=(),
            entry=None,
            asked=0,
            has_enough=False,
            **more,
        )
        return self._step()

    def _fail(self, state: Any, reason: str, detail: str, code: str | None = None) -> Step:
        conclusion = replace(self.strategy.conclude(state), answer=None, reason=reason, detail=detail)
        return self._end(conclusion, "failed", code, state=state)

    def stop(self, event: Stopped) -> Step:
        """End the run from outside: at a limit with the best so far as the answer, otherwise without one."""
        status = _STOPPED_AS.get(event.reason)
        rounds = [waiting.last_round for waiting in self.now.pending if waiting.settled or waiting.replies]
        best = self._best_so_far(event)
        standing = "proved" if best.standing == "proved" else "best_so_far"
        conclusion = replace(best, reason=event.reason, detail=event.detail, standing=standing)
        return self._end(
            replace(conclusion, answer=None) if status else conclusion,
            status,
            SET_ASIDE if event.reason == SET_ASIDE else None,
            rounds=max([self.now.rounds, *rounds]),
            at_ms=max(self.now.at_ms, event.at_ms),
        )

    def _best_so_far(self, event: Stopped) -> Conclusion:
        now = self.now
        plain = self.strategy.conclude(now.state)
        stage = stage_of(self.strategy, now)
        if not stage.to or all(waiting.settled is None and waiting.child is None for waiting in now.pending):
            return plain
        answers = _answers_in([self._cut(waiting, event) for waiting in now.pending])
        reached = self._reach(stage, Round(now.asked, answers))
        counted = self.strategy.conclude(reached.move.state if reached.move else reached.state)
        return plain if counted.answer is None and plain.answer is not None else counted

    def _cut(self, waiting: Pending, event: Stopped) -> Pending:
        """Settle an effect nobody waits for any longer; of a run inside, its best so far counts."""
        if waiting.settled is not None:
            return waiting
        if waiting.child is None:
            lost = Failed(STOPPED, event.detail or event.reason, at_ms=event.at_ms)
            return replace(waiting, settled=lost)
        child = _Execution(self.strategies[waiting.child.strategy], waiting.child, self.strategies)
        best = replace(child._best_so_far(event), reason=event.reason, detail=event.detail)
        return replace(waiting, settled=_end_of(best, "cancelled", event.at_ms))

    def _step(self) -> Step:
        return Step(
            self.now,
            tuple(self.effects),
            tuple(self.edges),
            tuple(self.thoughts),
            self.reading,
            tuple(self.cancelled),
        )


# -- runs inside a run


def _end_of(conclusion: Conclusion, status: Any, at_ms: int, code: str | None = None) -> Finished:
    """Return the end of a run inside a run as the outer stage gets it."""
    return Finished(
        conclusion.answer,
        status,
        conclusion.reason,
        conclusion.detail,
        conclusion.document,
        at_ms,
        short=conclusion.short,
        code=code,
        proved=conclusion.standing == "proved",
    )


def _shift_rounds(run: Snapshot, rounds: int) -> Snapshot:
    """Shift the rounds of a run that starts inside another, after that one's first `rounds` rounds."""
    pending = tuple(
        replace(
            waiting,
            round=waiting.round + rounds,
            child=waiting.child and _shift_rounds(waiting.child, rounds),
        )
        for waiting in run.pending
    )
    return replace(run, rounds=run.rounds + rounds, pending=pending)


def _nest(effect_id: str, thought: Thought) -> Thought:
    """Put a thought of the run inside an effect on that effect's own branch, which leaves the main line."""
    if thought.branch is None:
        return replace(thought, branch=effect_id)
    leaves = effect_id if thought.leaves is None else f"{effect_id}/{thought.leaves}"
    return replace(thought, branch=f"{effect_id}/{thought.branch}", leaves=leaves)


# -- what is waited for


def _answers_in(pending: Sequence[Pending]) -> Answers:
    return tuple([waiting.settled for waiting in pending if waiting.settled is not None])


def open_effects(snapshot: Snapshot) -> tuple[Pending, ...]:
    """Return the effects a run waits for, those of runs inside it included, with the ids to answer them by."""
    return tuple(_walk_open(snapshot, "")) if snapshot.status == "active" else ()


def _walk_open(snapshot: Snapshot, prefix: str) -> Iterator[Pending]:
    for waiting in snapshot.pending:
        if waiting.settled is not None:
            continue
        if waiting.child is not None:
            yield from _walk_open(waiting.child, f"{prefix}{waiting.id}/")
        else:
            yield replace(waiting, id=prefix + waiting.id) if prefix else waiting


def without_failures(snapshot: Snapshot, last: str = "") -> Snapshot:
    """Return the snapshot with every effect that failed waiting to be performed once more.

    A question whose replies could not be read is asked again, with the reason and as many tries as at first; runs
    inside this one included.

    Args:
        last: The question whose reply ended the run, if it was one; it is about to be taken once more.
    """
    own, _, inner = last.partition("/")
    pending = tuple(_once_more(waiting, inner, waiting.id == own) for waiting in snapshot.pending)
    return replace(snapshot, pending=pending)


def _once_more(waiting: Pending, inner: str, is_last: bool) -> Pending:
    if waiting.settled is None and waiting.child is not None:
        return replace(waiting, child=without_failures(waiting.child, inner if is_last else ""))
    if isinstance(waiting.settled, Failed):
        unreadable = isinstance(waiting.effect, Ask) and waiting.settled.code == "output_invalid"
        reopened = next_try(waiting, waiting.settled.message) if unreadable else waiting
        return replace(reopened, settled=None, before=len(waiting.replies))
    return (
        replace(waiting, before=len(waiting.replies) + 1) if is_last and waiting.settled is None else waiting
    )


def next_try(waiting: Pending, reason: str) -> Pending:
    """Return a question whose latest reply cannot be read as it is asked next."""
    assert isinstance(waiting.effect, Ask)
    return replace(
        waiting,
        id=f"{waiting.id.partition('.')[0]}.{len(waiting.replies) + 1}",
        effect=ask_again(waiting.effect, waiting.replies[-1], reason),
        round=waiting.round + 1,
    )
