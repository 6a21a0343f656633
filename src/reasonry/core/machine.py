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

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal
from zlib import crc32

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from ..errors import ConflictError, InvalidStrategyError, ReasonryError
from .answer_form import form_stage
from .bodies import Answers, Body, Conclusion, EffectFailed, Move, Request, Thought
from .budget import Usage
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
from .prompts import with_prompt
from .registry import Registry, find_strategy, resolve
from .reply_reading import Reading, ask_again, convert_reading, is_last_try, read_reply
from .strategy import Stage, Strategy

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
    checks_form: bool = False
    """Whether the verifier is asked about the answer in that form."""
    by: str = "writer"
    """Who answers what is asked of the writer; of a run inside another, as its effect says."""
    prompts: dict[str, str] = {}
    """Questions of stages in place of the strategy's own; see `prompts`. Runs inside this one have them too."""


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
    """Run a stage's body over its answers, as far as they lead; thoughts of answered yields were recorded before.

    Raises:
        ConflictError: `strategy_changed`: the body asks something else than what was answered.
    """
    assert stage.run is not None, "checked when the strategy was defined"
    reached, used = Reached(state), 0
    try:
        script: Any = stage.run(state)
        # For a Struct, `isinstance` takes five times as long where it is False.
        if type(script) is Move:
            reached.move = script
        else:
            used = _run_body(stage, script, reached, rounds)
    except ReasonryError:
        raise
    except Exception as error:
        message = f"stage {stage.name!r} raised {type(error).__name__}: {error}"
        reached.failure = Failed("stage_error", message[:1000])
        return reached
    if used < len(rounds):
        raise _changed_error(stage)
    return reached


def _run_body(stage: Stage[Any], script: Body, reached: Reached, rounds: Sequence[Round]) -> int:
    """Send the answers of each round in; return the number of rounds that were asked for."""
    used = silent = 0
    try:
        requested = next(script)
        while True:
            reached.state = requested.state
            if requested.thoughts:
                reached.thoughts += requested.thoughts
            answers: Answers = ()
            if requested.effects:
                if used == len(rounds):
                    reached.request = requested
                    script.close()
                    break
                had, used = rounds[used], used + 1
                if crc32(_encode(requested.effects)) != had.asked:
                    raise _changed_error(stage)
                answers, reached.thoughts = had.answers, ()
            elif (silent := silent + 1) > MAX_SILENT_MOVES:
                message = f"stage {stage.name!r} yields without end and asks nobody"
                reached.failure = Failed("stage_loop", message)
                break
            failures = () if requested.give_failures else [each for each in answers if type(each) is Failed]
            lost = failures[0] if failures else None
            requested = script.send(answers) if lost is None else script.throw(EffectFailed(lost))
    except StopIteration as end:
        if not isinstance(end.value, Move):
            raise TypeError("the body returned no move") from None
        reached.move = end.value
    except EffectFailed as lost:
        reached.failure = lost.failure
    return used


def _changed_error(stage: Stage[Any]) -> ConflictError:
    return ConflictError(
        f"stage {stage.name!r} asks something else than it did when the run was recorded",
        code="strategy_changed",
        stage=stage.name,
    )


# -- runs


def begin(
    strategy: Strategy[Any, Any],
    problem: str,
    options: Struct | None = None,
    *,
    strategies: Registry | None = None,
    form: dict[str, Any] | None = None,
    checks_form: bool = False,
    by: str = "writer",
    prompts: Mapping[str, str] | None = None,
    rounds: int = 0,
) -> Step:
    """Start a run.

    Args:
        strategy: What to run.
        problem: What to run it on.
        options: The strategy's own options struct; its defaults if None.
        strategies: Where strategies that this one runs are looked up.
        form: JSON schema of the answer; see `answer_form`.
        checks_form: Whether the verifier is asked about the answer in that form.
        by: Who answers what is asked of the writer.
        prompts: Questions of stages in place of the strategy's own; see `prompts`.
        rounds: Dependent rounds of model calls before it, of the run that it is inside.

    Raises:
        InvalidStrategyError: The strategy is for guided use only.
    """
    if strategy.state is None:
        raise InvalidStrategyError(f"strategy {strategy.name!r} is for guided use only")
    chosen = strategy.options() if options is None else options
    # Of the strategy inside, whatever name it was given, its own stands: strategies compare it with a default.
    over = getattr(chosen, "over", "")
    if over and (inner := find_strategy(over, strategies or {})):
        chosen = replace(chosen, over=inner.name)
    snapshot = Snapshot(
        strategy=strategy.name,
        problem=problem,
        options=msgspec.json.decode(_encode(chosen)),
        stage=strategy.first,
        state=strategy.first_state(problem, chosen),
        form=form,
        checks_form=checks_form,
        by=by,
        prompts=dict(prompts or {}),
        rounds=rounds,
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
    return run.stop(event) if type(event) is Stopped else run.settle(effect_id or "", event, reading)


def stage_of(strategy: Strategy[Any, Any], snapshot: Snapshot, name: str = "") -> Stage[Any]:
    """Return the stage a run stands in, or another; the last one asks for the answer in the form that is wanted."""
    stage = strategy.by_name[name or snapshot.stage]
    if snapshot.form is None or stage.to:
        return stage
    return form_stage(strategy, stage, snapshot.problem, snapshot.form, snapshot.checks_form)


class _Execution:
    """One call of `begin` or `advance`: where it has got to from a snapshot, and what it leaves behind."""

    effects: tuple[Pending, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    thoughts: tuple[Thought, ...] = ()
    cancelled: tuple[str, ...] = ()
    reading: Reading | None = None

    def __init__(self, strategy: Strategy[Any, Any], snapshot: Snapshot, strategies: Registry) -> None:
        self.strategy, self.before, self.strategies = strategy, snapshot, strategies
        self.stage = stage_of(strategy, snapshot)
        self.state = snapshot.state
        self.entry = snapshot.state if snapshot.entry is None else snapshot.entry
        self.had = snapshot.rounds_had
        self.pending, self.asked, self.has_enough = snapshot.pending, snapshot.asked, snapshot.has_enough
        self.counter, self.rounds, self.at_ms = snapshot.counter, snapshot.rounds, snapshot.at_ms

    def go_on(self) -> Step:
        """Run stages as far as their answers lead."""
        for _ in range(MAX_SILENT_MOVES):
            if self.stage.run is None:
                return self._end(self.strategy.conclude(self.state))
            reached = run_stage(self.stage, self.entry, self.had)
            if reached.thoughts:
                self._record(reached.thoughts)
            if reached.request is not None:
                if not self._open(reached.request):
                    return self._step()
            elif (lost := reached.failure) is not None:
                return self._fail(reached.state, "error", lost.message, lost.code)
            elif (end := self._follow(reached.move)) is not None:
                return end
        detail = f"stage {self.stage.name!r} went round without asking anybody"
        return self._fail(self.state, "stage_loop", detail, "stage_loop")

    def _record(self, thoughts: Sequence[Thought]) -> None:
        stage = self.stage.name
        self.thoughts += tuple(each if each.stage else replace(each, stage=stage) for each in thoughts)

    def _follow(self, move: Move | None) -> Step | None:
        """Take a move; return the last step where it ends the run."""
        assert move is not None
        stage, to = self.stage, move.to
        if move.thoughts:
            self._record(move.thoughts)
        if not stage.to:
            return self._end(replace(self.strategy.conclude(self.state), answer=move.state))
        if move.failure is not None:
            return self._fail(move.state, *move.failure)
        if to is not None:
            self.strategy.check_move(stage.name, to)
            self.stage = stage_of(self.strategy, self.before, to)
        if to is not None or stage.repeats:
            self.edges += ((stage.name, self.stage.name),)
        self.state = self.entry = move.state
        self.had = ()
        return None

    # -- asking

    def _open(self, requested: Request) -> bool:
        """Make effects pending; return whether the stage goes on at once, since runs inside ended and asked nobody."""
        stage, prompts = self.stage, self.before.prompts
        pending: list[Pending] = []
        for number, effect in enumerate(requested.effects, self.counter + 1):
            if isinstance(effect, Ask):
                limit = effect.max_output_tokens or stage.max_output_tokens
                by = self.before.by if effect.by == "writer" else effect.by
                effect = replace(effect, form=effect.form or stage.form, max_output_tokens=limit, by=by)
                if prompts and (text := prompts.get(f"{self.strategy.name}.{stage.name}")):
                    effect = with_prompt(effect, text, self.before.problem)
            waiting = Pending(f"e{number}", stage.name, effect, self.rounds + 1)
            if type(effect) is RunStrategy:
                waiting = self._open_child(waiting)
            pending.append(waiting)
        self.state, self.pending = requested.state, tuple(pending)
        self.asked = crc32(_encode(requested.effects))
        self.has_enough = requested.enough is not None
        self.counter += len(pending)
        self.effects += tuple(_walk_open(pending))
        return self._take()

    def _open_child(self, waiting: Pending) -> Pending:
        assert isinstance(waiting.effect, RunStrategy)
        inner = resolve(waiting.effect.strategy, self.strategies, code="strategy_unknown")
        by = self.before.by if waiting.effect.by == "writer" else waiting.effect.by
        step = begin(
            inner,
            waiting.effect.problem,
            read_options(inner, waiting.effect.options),
            strategies=self.strategies,
            by=by,
            prompts=self.before.prompts,
            rounds=self.rounds,
        )
        return self._with_child(waiting, step)

    # -- settling effects

    def settle(self, effect_id: str, event: Event, reading: Reading | None) -> Step:
        """Book the event; go on when it was the last the stage waited for."""
        own, _, inner = effect_id.partition("/")
        place, waiting = self._find_open(own, effect_id)
        if inner:
            now = self._settle_child(waiting, inner, event, reading)
        elif isinstance(event, Answered) and isinstance(waiting.effect, Ask):
            now = self._settle_answer(waiting, waiting.effect, event, reading)
        else:
            now = _settle_own(waiting, event)
        self.pending = (*self.pending[:place], now, *self.pending[place + 1 :])
        if event.at_ms > self.at_ms:
            self.at_ms = event.at_ms
        return self.go_on() if self._take() else self._step()

    def _find_open(self, own: str, effect_id: str) -> tuple[int, Pending]:
        for place, waiting in enumerate(self.pending):
            if waiting.id == own and waiting.settled is None:
                return place, waiting
        choices = [waiting.id for waiting in open_effects(self.before)]
        raise ConflictError(f"effect {effect_id!r} is not pending", effect=effect_id, choices=choices)

    def _settle_answer(
        self, waiting: Pending, ask: Ask, event: Answered, recorded: Reading | None
    ) -> Pending:
        replies = (*waiting.replies, event)
        answered, spent = replace(waiting, replies=replies), _spent(replies)
        if recorded is None:
            reading = read_reply(self.stage, self.state, ask, replies[waiting.before :])
        else:
            reading = convert_reading(self.stage, recorded)
        self.reading, refusal = reading, reading.refusal
        if refusal is None:
            reply = Reply(reading.value, event.text, reading.mode, len(replies), event.at_ms, spent)
            return replace(answered, settled=reply)
        times_cut = sum(reply.truncated for reply in replies[waiting.before :])
        if times_cut > 1 or is_last_try(ask, replies[waiting.before :]):
            texts = tuple(reply.text for reply in replies)
            lost = Failed("output_invalid", refusal, event.at_ms, spent, replies=texts)
            return replace(answered, settled=lost)
        re_ask = next_try(answered, reading)
        self.effects += (re_ask,)
        return re_ask

    def _settle_child(self, waiting: Pending, inner: str, event: Event, reading: Reading | None) -> Pending:
        if waiting.child is None:
            raise ConflictError(f"effect {waiting.id!r} has no run inside", effect=f"{waiting.id}/{inner}")
        child = self.strategies[waiting.child.strategy]
        step = advance(child, waiting.child, inner, event, strategies=self.strategies, reading=reading)
        self.effects += tuple(replace(effect, id=f"{waiting.id}/{effect.id}") for effect in step.effects)
        self.cancelled += tuple(f"{waiting.id}/{effect_id}" for effect_id in step.cancelled)
        self.reading = step.reading
        return self._with_child(waiting, step)

    def _with_child(self, waiting: Pending, step: Step) -> Pending:
        child = step.snapshot
        self.thoughts += tuple(_nest(waiting.id, thought) for thought in step.thoughts)
        if child.status == "active":
            return replace(waiting, child=child)
        end = _end_of(child.conclusion or Conclusion(), child.status, child.at_ms, child.error)
        return replace(waiting, child=child, settled=end)

    def _take(self) -> bool:
        """Take the answers over if the stage can go on: all of them are there, or what is there is enough."""
        answers = _answers_in(self.pending)
        if len(answers) < len(self.pending):
            if not (self.has_enough and answers):
                return False
            requested = run_stage(self.stage, self.entry, self.had).request
            so_far = tuple(waiting.settled for waiting in self.pending)
            if requested is None or requested.enough is None or not requested.enough(so_far):
                return False
            self.cancelled += tuple(waiting.id for waiting in _walk_open(self.pending))
            cut = Stopped(STOPPED, "what came in is enough", self.at_ms)
            self.pending = tuple(self._cut(waiting, cut) for waiting in self.pending)
            answers = _answers_in(self.pending)
        self.had = (*self.had, Round(self.asked, answers))
        for waiting in self.pending:
            if (last := waiting.last_round) > self.rounds:
                self.rounds = last
        return True

    # -- endings

    def _end(self, conclusion: Conclusion, status: Status | None = None, error: str | None = None) -> Step:
        status = status or ("failed" if conclusion.answer is None else "done")
        self.entry, self.pending, self.had, self.asked, self.has_enough = self.state, (), (), 0, False
        last = self._step()
        ended = replace(last.snapshot, status=status, conclusion=conclusion, error=error)
        return replace(last, snapshot=ended)

    def _fail(self, state: Any, reason: str, detail: str, code: str | None = None) -> Step:
        self.state = state
        found = replace(self.strategy.conclude(state), answer=None, short=None, reason=reason, detail=detail)
        return self._end(found, "failed", code)

    def stop(self, event: Stopped) -> Step:
        """End the run from outside, with the best so far."""
        status = _STOPPED_AS.get(event.reason)
        best = self._best_so_far(event)
        certainty = "proved" if best.certainty == "proved" else "best_so_far"
        found = replace(best, reason=event.reason, detail=event.detail, certainty=certainty)
        for waiting in self.pending:
            if waiting.settled or waiting.replies:
                self.rounds = max(self.rounds, waiting.last_round)
        self.at_ms = max(self.at_ms, event.at_ms)
        return self._end(found, status, SET_ASIDE if event.reason == SET_ASIDE else None)

    def _best_so_far(self, event: Stopped) -> Conclusion:
        plain, pending = self.strategy.conclude(self.state), self.pending
        if not self.stage.to or all(waiting.settled is None and waiting.child is None for waiting in pending):
            return plain
        answers = _answers_in([self._cut(waiting, event) for waiting in pending])
        reached = run_stage(self.stage, self.entry, (*self.had, Round(self.asked, answers)))
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
        now = replace(
            self.before,
            stage=self.stage.name,
            state=self.state,
            entry=None if self.entry is self.state else self.entry,
            pending=self.pending,
            rounds_had=self.had,
            asked=self.asked,
            has_enough=self.has_enough,
            counter=self.counter,
            rounds=self.rounds,
            at_ms=self.at_ms,
        )
        return Step(now, self.effects, self.edges, self.thoughts, self.reading, self.cancelled)


def _settle_own(waiting: Pending, event: Event) -> Pending:
    """Settle an effect by what is no answer to a question."""
    kinds = _KINDS[type(waiting.effect)]
    if not isinstance(event, kinds):
        detail = f"effect {waiting.id!r} cannot be settled by {type(event).__name__}"
        raise ConflictError(detail, effect=waiting.id, choices=[kind.__name__ for kind in kinds])
    assert not isinstance(event, Answered | Stopped)
    if isinstance(event, Failed) and waiting.replies:
        event = replace(event, usage=event.usage + _spent(waiting.replies))
    return replace(waiting, settled=event)


# -- runs inside a run


def _end_of(conclusion: Conclusion, status: Any, at_ms: int, code: str | None = None) -> Finished:
    """Return the end of a run inside a run as the outer stage gets it."""
    return Finished(**asdict(conclusion), status=status, at_ms=at_ms, code=code)


def _nest(effect_id: str, thought: Thought) -> Thought:
    """Put a thought of the run inside an effect on that effect's own branch, which leaves the main line."""
    if thought.branch is None:
        return replace(thought, branch=effect_id)
    leaves = effect_id if thought.leaves is None else f"{effect_id}/{thought.leaves}"
    return replace(thought, branch=f"{effect_id}/{thought.branch}", leaves=leaves)


# -- what is waited for


def _answers_in(pending: Sequence[Pending]) -> Answers:
    return tuple([waiting.settled for waiting in pending if waiting.settled is not None])


def _spent(replies: Sequence[Answered]) -> Usage:
    return sum((reply.usage for reply in replies[1:]), replies[0].usage)


def open_effects(snapshot: Snapshot) -> tuple[Pending, ...]:
    """Return the effects a run waits for, those of runs inside it included, with the ids to answer them by."""
    return tuple(_walk_open(snapshot.pending)) if snapshot.status == "active" else ()


def _walk_open(pending: Sequence[Pending], prefix: str = "") -> Iterator[Pending]:
    for waiting in pending:
        if waiting.settled is not None:
            continue
        if waiting.child is not None:
            yield from _walk_open(waiting.child.pending, f"{prefix}{waiting.id}/")
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
        reopened = next_try(waiting, Reading(refusal=waiting.settled.message)) if unreadable else waiting
        return replace(reopened, settled=None, before=len(waiting.replies))
    return (
        replace(waiting, before=len(waiting.replies) + 1) if is_last and waiting.settled is None else waiting
    )


def next_try(waiting: Pending, reading: Reading) -> Pending:
    """Return a question whose latest reply cannot be read as it is asked next."""
    assert isinstance(waiting.effect, Ask)
    return replace(
        waiting,
        id=f"{waiting.id.partition('.')[0]}.{len(waiting.replies) + 1}",
        effect=ask_again(waiting.effect, waiting.replies[-1], reading),
        round=waiting.round + 1,
    )
