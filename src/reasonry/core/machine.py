"""The machine walks a strategy's table. It is pure: no clock, no random numbers, no I/O.

Theory of operation. A run is in one stage. The stage's body is a generator function of the state: it yields requests,
receives the answers, and returns a `Move`. The machine replays the body over the answers that the stage has received
(`Snapshot.rounds_had`). At the first request without answers, the effects of that request become `Pending`. Each event
settles one effect. When all effects are settled, the machine adds their answers and replays the body again. So only
data lives between two events. The state at the body's last yield is the yielded state.

Rule 1: only the machine and the strategies decide how a run proceeds. A run is a fold over its events.
Rule 2: ids are counted, not random: `e4` is the fourth effect, `e4.2` its second try, and `e4/e1` the first effect of
        the strategy that runs inside `e4`. So ids do not depend on the order in which answers arrive.
Rule 3: the caller's `Reader` reads each reply once, and the `Reading` is recorded with the reply. After an unreadable
        reply, the machine asks again and gives the reason, up to `Ask.retries` times. If no reply is readable, the
        answer is a `Failed` with the code `output_invalid`.
Rule 4: a yield ends when all answers to its request have arrived. If some answers are failures, the yield raises the
        first failure, in the order of the effects. With `give_failures`, the body receives failures as answers instead.
        A failure that the body does not catch ends the run.
Rule 5: the conclusion, the progress and the readers use the yielded state.
Rule 6: a stop loses no answer. Answers may have arrived that the body has not seen yet: of five drafts, three may have
        arrived and cost money. So the machine replays the body once more, with a failure (`stopped`) for each missing
        answer, up to the body's move or next request. The state reached there is the cut state. The run concludes from
        the cut state or, if the cut state has no answer, from the yielded state. The snapshot keeps the yielded state,
        because the failures behind the cut state never happened. So a resumed run still receives the missing drafts.
Rule 7: the event `Closing` closes a run when a limit leaves room for only one more question. A run closes its child
        runs first. If no child run can close, the machine passes the cut state to the strategy's `close`, which returns
        a move to the stage of the last question. This move is the only edge outside the table. If the run is in that
        stage already, its open question is the last question, so the run is not closed. But if that question waits for
        another try, the question fails and the run is closed. A closed run closes again only if this ends the run. If
        an answer is found after the closing, the run gives the answer, with the limit as the termination reason. If no
        answer is found, the run counts as stopped by the limit.
Rule 8: once the test `enough` of a request is true, missing answers are settled as in rule 6, and the body continues.
Rule 9: if a state has the field `calls_left`, the machine sets this field at the entry of a stage to the count of calls
        that are left. The count uses only the run's own events, so the run's questions do not depend on the order in
        which other runs receive answers. The count is not a promise.
Rule 10: each round of answers keeps a digest of its request. If the body requests something else in a replay, the
        machine raises `strategy_changed` at once. If a body fails, the run ends (`stage_error`) but keeps its answers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from ..errors import ConflictError, InvalidStrategyError, ReasonryError
from .bodies import Answers, Body, Conclusion, EffectFailed, Move, Request, Thought
from .effects import Ask, CallTool, RunStrategy, Verify
from .events import (
    STOPPED,
    UNREADABLE,
    Answered,
    Closing,
    Event,
    Failed,
    Finished,
    Reply,
    Stopped,
    ToolReturned,
    Verified,
)
from .options import read_options
from .pending import Pending, Round, Snapshot, Status, answers_in, next_try, open_effects, spent_on, walk_open
from .readings import Reading, is_last_try
from .registry import Registry, find_strategy, resolve
from .strategy import Stage, Strategy

POISONED = "poisoned"
"""The reason of a stop that ends a run which crashes its worker again and again."""

LAST_QUESTION = """This is the last question: nothing can be asked or looked up after it. Answer from what is known; \
where something is missing, give the likeliest answer, and say in the reasoning what is missing."""
"""The text that a closed run adds to its question, before the task."""

_STOPPED_AS: dict[str, Status] = {"cancelled": "cancelled", POISONED: "failed"}
"""Maps each stop reason that is not a limit to the status of the stopped run."""

MAX_SILENT_MOVES = 1_000
"""How many consecutive moves or yields may request no effect. More than this count as an endless loop."""

_KINDS: dict[type, tuple[type, ...]] = {
    Ask: (Answered, Failed),
    CallTool: (ToolReturned, Failed),
    Verify: (Verified, Failed),
    RunStrategy: (),
}
_encode = msgspec.json.Encoder().encode


class Step(Struct, frozen=True, gc=False):
    """The result of one event: the new snapshot, the effects to perform, and the edges and thoughts to record."""

    snapshot: Snapshot
    effects: tuple[Pending, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    thoughts: tuple[Thought, ...] = ()
    reading: Reading | None = None
    """The reading of the reply, if the event was a reply."""
    cancelled: tuple[str, ...] = ()
    """The ids of effects that are no longer needed."""


Reader = Callable[[Stage[Any], Any, Ask, Sequence[Answered]], Reading]
"""A function of the stage, its state, a question and the replies (oldest first). It reads the latest reply."""


def as_recorded(reading: Reading) -> Reader:
    """Return a reader that repeats `reading`. If the stage rejects its value, the reader raises `strategy_changed`."""

    def read(stage: Stage[Any], *_: Any) -> Reading:
        kind = stage.value_type
        if reading.refusal is not None or kind is None:
            return reading
        try:
            return replace(reading, value=msgspec.convert(reading.value, kind))
        except (msgspec.ValidationError, ValueError) as error:
            raise ConflictError(
                f"a recorded answer does not fit the current stage {stage.name!r}: {error}",
                code="strategy_changed",
                stage=stage.name,
            ) from error

    return read


# -- a stage, replayed over its answers


class Reached(Struct, gc=False):
    """How far a stage gets with its answers: to a move, a failure, or a request that still waits."""

    state: Any
    thoughts: tuple[Thought, ...] = ()
    request: Request | None = None
    move: Move | None = None
    failure: Failed | None = None


def run_stage(stage: Stage[Any], state: Any, rounds: Sequence[Round]) -> Reached:
    """Replay a stage's body with the answers in `rounds`. The result omits thoughts that are already recorded.

    Raises:
        ConflictError: `strategy_changed`: the body's request differs from the recorded request.
    """
    assert stage.run is not None, "checked when the strategy was defined"
    reached, used = Reached(state), 0
    try:
        script: Any = stage.run(state)
        # With a Struct class, a false `isinstance` takes five times as long as this test.
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
    """Send each round of answers to the body. Return how many rounds were used."""
    used = silent = 0
    try:
        requested = next(script)
        while True:
            reached.state = requested.state
            if requested.thoughts:
                reached.thoughts += requested.thoughts
            answers, lost = (), None
            if requested.effects:
                if used == len(rounds):
                    reached.request = requested
                    script.close()
                    break
                had, used = rounds[used], used + 1
                if crc32(_encode(requested.effects)) != had.asked:
                    raise _changed_error(stage)
                answers, reached.thoughts = had.answers, ()
                lost = None if requested.give_failures else _first_failure(answers)
            elif (silent := silent + 1) > MAX_SILENT_MOVES:
                message = f"stage {stage.name!r} yields without end and without an effect"
                reached.failure = Failed("stage_loop", message)
                break
            requested = script.send(answers) if lost is None else script.throw(EffectFailed(lost))
    except StopIteration as end:
        if not isinstance(end.value, Move):
            raise TypeError("the body returned no move") from None
        reached.move = end.value
    except EffectFailed as lost:
        reached.failure = lost.failure
    return used


def _first_failure(answers: Answers) -> Failed | None:
    for each in answers:
        if type(each) is Failed:
            return each
    return None


def _changed_error(stage: Stage[Any]) -> ConflictError:
    return ConflictError(
        f"stage {stage.name!r} does not make the request that was recorded",
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
    by: str = "writer",
    prompts: Mapping[str, str] | None = None,
    rounds: int = 0,
    calls_left: int | None = None,
) -> Step:
    """Start a run.

    Args:
        options: An instance of the strategy's options struct. Defaults to that struct's defaults.
        by: The role that answers questions to the writer.
        prompts: Maps `STRATEGY.STAGE` to the user's prompt for the questions of that stage; see `Ask.with_prompt`.
        rounds: How many rounds of model calls, each dependent on the round before, the parent run has had.
        calls_left: How many calls are left in the budget. None means that no limit is known.

    Raises:
        InvalidStrategyError: The strategy is for guided use only.
    """
    if strategy.state is None:
        raise InvalidStrategyError(f"strategy {strategy.name!r} is for guided use only")
    chosen = strategy.options() if options is None else options
    # Replace an alias of the inner strategy with its canonical name, which strategies compare with a default.
    over = getattr(chosen, "over", "")
    if over and (inner := find_strategy(over, strategies or {})):
        chosen = replace(chosen, over=inner.name)
    snapshot = Snapshot(
        strategy=strategy.name,
        problem=problem,
        options=msgspec.json.decode(_encode(chosen)),
        stage=strategy.first,
        state=strategy.first_state(problem, chosen),
        by=by,
        prompts=dict(prompts or {}),
        rounds=rounds,
        calls_left=calls_left,
    )
    run = _Execution(strategy, snapshot, strategies or {})
    run.state = run.entry = run.tell_calls_left(snapshot.state)
    return run.go_on()


def advance(
    strategy: Strategy[Any, Any],
    snapshot: Snapshot,
    effect_id: str | None,
    event: Event,
    *,
    read: Reader,
    strategies: Registry | None = None,
) -> Step:
    """Apply one event, and proceed to the next request or to the end of the run.

    Args:
        effect_id: The id of the effect that the event settles. None for `Stopped` and `Closing`.
        read: The reader for the reply. For a recorded answer, use `as_recorded`.

    Raises:
        ConflictError: The run has ended, the effect is not pending, or the event does not fit it. Nothing changed.
        ConflictError: `strategy_changed`: the record does not fit the current strategy.
    """
    if snapshot.status != "active":
        raise ConflictError(f"the run has ended ({snapshot.status}); it takes no more events")
    run = _Execution(strategy, snapshot, strategies or {})
    if type(event) is Closing:
        step = run.close(event)
        if step is None:
            raise ConflictError(f"the run cannot close from stage {snapshot.stage!r}")
        return step
    return run.stop(event) if type(event) is Stopped else run.settle(effect_id or "", event, read)


class _Execution:
    """The execution of one call of `begin` or `advance`."""

    effects: tuple[Pending, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    thoughts: tuple[Thought, ...] = ()
    cancelled: tuple[str, ...] = ()
    reading: Reading | None = None

    def __init__(self, strategy: Strategy[Any, Any], snapshot: Snapshot, strategies: Registry) -> None:
        self.strategy, self.before, self.strategies = strategy, snapshot, strategies
        self.stage = strategy.by_name[snapshot.stage]
        self.state = snapshot.state
        self.entry = snapshot.state if snapshot.entry is None else snapshot.entry
        self.had = snapshot.rounds_had
        self.pending, self.asked, self.has_enough = snapshot.pending, snapshot.asked, snapshot.has_enough
        self.counter, self.rounds, self.at_ms = snapshot.counter, snapshot.rounds, snapshot.at_ms
        self.closing, self.is_closed = snapshot.closing, snapshot.is_closed
        self.calls_left = snapshot.calls_left

    def go_on(self) -> Step:
        """Run stages until a request lacks answers, or until the run ends."""
        for _ in range(MAX_SILENT_MOVES):
            if self.stage.run is None:
                return self._end(self.strategy.conclude(self.state))
            reached = run_stage(self.stage, self.entry, self.had)
            if reached.thoughts:
                self.thoughts += _in_stage(reached.thoughts, self.stage)
            if reached.request is not None:
                if not self._open(reached.request):
                    return self._step()
            elif (lost := reached.failure) is not None:
                return self._fail(reached.state, "error", lost.message, lost.code)
            elif (end := self._follow(reached.move)) is not None:
                return end
        detail = f"stage {self.stage.name!r} loops without an effect"
        return self._fail(self.state, "stage_loop", detail, "stage_loop")

    def _follow(self, move: Move | None, *, is_way_out: bool = False) -> Step | None:
        """Apply a move. Return the last step if the move ends the run. Otherwise, return None."""
        assert move is not None
        stage, to = self.stage, move.to
        if move.thoughts:
            self.thoughts += _in_stage(move.thoughts, stage)
        if not stage.to:
            return self._end(replace(self.strategy.conclude(self.state), answer=move.state))
        if move.failure is not None:
            return self._fail(move.state, *move.failure)
        if to is not None:
            if not is_way_out:
                self.strategy.check_move(stage.name, to)
            self.stage = self.strategy.by_name[to]
        if to is not None or stage.repeats:
            self.edges += ((stage.name, self.stage.name),)
        self.state = self.entry = self.tell_calls_left(move.state)
        self.had = ()
        return None

    def tell_calls_left(self, state: Any) -> Any:
        """Set `calls_left` in a state that has this field."""
        if self.calls_left is None or not hasattr(state, "calls_left"):
            return state
        return replace(state, calls_left=max(0, self.calls_left))

    # -- asking

    def _open(self, requested: Request) -> bool:
        """Make the requested effects pending. Return whether the stage can continue at once."""
        stage, prompts = self.stage, self.before.prompts
        closing = f"c{self.closing.number}" if self.closing and self.is_closed else ""
        pending: list[Pending] = []
        has_children = False
        for number, effect in enumerate(requested.effects, self.counter + 1):
            if isinstance(effect, Ask):
                effect = replace(
                    effect,
                    form=effect.form or stage.form,
                    max_output_tokens=effect.max_output_tokens or stage.max_output_tokens,
                    by=self.before.by if effect.by == "writer" else effect.by,
                    retries=0 if closing else effect.retries,
                    wants_value=effect.wants_value or self.strategy.wants_value,
                )
                if prompts and (text := prompts.get(f"{self.strategy.name}.{stage.name}")):
                    effect = effect.with_prompt(text, self.before.problem)
                if closing:
                    effect = replace(effect, prompt=f"{effect.prompt}\n\n{LAST_QUESTION}")
            waiting = Pending(f"{closing}e{number}", stage.name, effect, self.rounds + 1)
            if type(effect) is RunStrategy:
                has_children, waiting = True, self._open_child(waiting, len(requested.effects))
            pending.append(waiting)
        self.state, self.pending = requested.state, tuple(pending)
        self.asked = crc32(_encode(requested.effects))
        self.has_enough = requested.enough is not None
        self.counter += len(pending)
        self.effects += tuple(walk_open(pending)) if has_children else self.pending
        return has_children and self._take()

    def _open_child(self, waiting: Pending, siblings: int) -> Pending:
        assert isinstance(waiting.effect, RunStrategy)
        inner = resolve(waiting.effect.strategy, self.strategies, code="strategy_unknown")
        step = begin(
            inner,
            waiting.effect.problem,
            read_options(inner, waiting.effect.options),
            strategies=self.strategies,
            by=self.before.by if waiting.effect.by == "writer" else waiting.effect.by,
            prompts=self.before.prompts,
            rounds=self.rounds,
            calls_left=None if self.calls_left is None else self.calls_left // siblings,
        )
        return self._with_child(waiting, step)

    # -- settling effects

    def settle(self, effect_id: str, event: Event, read: Reader) -> Step:
        """Settle one effect. If the stage now has enough answers, continue the stage."""
        own, _, inner = effect_id.partition("/")
        for place, waiting in enumerate(self.pending):
            if waiting.id == own and waiting.settled is None:
                before, after = self.pending[:place], self.pending[place + 1 :]
                break
        else:
            choices = [each.id for each in open_effects(self.before)]
            raise ConflictError(f"effect {effect_id!r} is not pending", effect=effect_id, choices=choices)
        if self.calls_left is not None and isinstance(event, (Answered, Failed)):
            self.calls_left -= event.usage.calls
        if inner:
            if waiting.child is None:
                raise ConflictError(f"effect {waiting.id!r} has no child run", effect=effect_id)
            child = self.strategies[waiting.child.strategy]
            step = advance(child, waiting.child, inner, event, read=read, strategies=self.strategies)
            self.reading, now = step.reading, self._take_child(waiting, step)
        elif isinstance(event, Answered) and isinstance(waiting.effect, Ask):
            now = self._settle_answer(waiting, waiting.effect, event, read)
        else:
            now = _settle_own(waiting, event)
        self.pending = (*before, now, *after)
        if event.at_ms > self.at_ms:
            self.at_ms = event.at_ms
        return self.go_on() if self._take() else self._step()

    def _settle_answer(self, waiting: Pending, ask: Ask, event: Answered, read: Reader) -> Pending:
        replies = (*waiting.replies, event)
        spent = spent_on(replies)
        reading = read(self.stage, self.state, ask, replies[waiting.before :])
        self.reading, refusal = reading, reading.refusal
        if refusal is None:
            reply = Reply(reading.value, event.text, reading.mode, len(replies), event.at_ms, spent)
            return replace(waiting, replies=replies, settled=reply)
        times_cut = sum(reply.truncated for reply in replies[waiting.before :])
        if times_cut > 1 or is_last_try(ask, replies[waiting.before :]):
            texts = tuple(reply.text for reply in replies)
            lost = Failed(UNREADABLE, refusal, event.at_ms, spent, replies=texts)
            return replace(waiting, replies=replies, settled=lost)
        re_ask = next_try(replace(waiting, replies=replies), reading)
        self.effects += (re_ask,)
        return re_ask

    def _take_child(self, waiting: Pending, step: Step) -> Pending:
        self.effects += tuple(replace(effect, id=f"{waiting.id}/{effect.id}") for effect in step.effects)
        self.cancelled += tuple(f"{waiting.id}/{effect_id}" for effect_id in step.cancelled)
        return self._with_child(waiting, step)

    def _with_child(self, waiting: Pending, step: Step) -> Pending:
        child = step.snapshot
        self.thoughts += tuple(_nest(waiting.id, thought) for thought in step.thoughts)
        if child.status == "active":
            return replace(waiting, child=child)
        end = _end_of(child.conclusion or Conclusion(), child.status, child.at_ms, child.error)
        return replace(waiting, child=child, settled=end)

    def _take(self) -> bool:
        """If enough answers have arrived, add them to the stage's rounds. Return whether they were added."""
        answers = answers_in(self.pending)
        if len(answers) < len(self.pending):
            if not (self.has_enough and answers):
                return False
            requested = run_stage(self.stage, self.entry, self.had).request
            so_far = tuple(waiting.settled for waiting in self.pending)
            if requested is None or requested.enough is None or not requested.enough(so_far):
                return False
            self.cancelled += tuple(waiting.id for waiting in walk_open(self.pending))
            cut = Stopped(STOPPED, "enough answers have arrived", self.at_ms)
            self.pending = tuple(self._cut(waiting, cut) for waiting in self.pending)
            answers = answers_in(self.pending)
        self.had = (*self.had, Round(self.asked, answers))
        for waiting in self.pending:
            if (last := waiting.last_round) > self.rounds:
                self.rounds = last
        return True

    # -- endings

    def _end(self, conclusion: Conclusion, status: Status | None = None, error: str | None = None) -> Step:
        # If the last question fails, for whatever reason, the run counts as stopped by the limit.
        if self.closing is not None and status != "cancelled" and (error is None or self.is_closed):
            conclusion, error = _conclude_closed(conclusion, self.closing), None
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
        """End the run from outside, with the best result so far."""
        self.closing = None
        status = _STOPPED_AS.get(event.reason)
        best = self._best_so_far(event)
        certainty = "proved" if best.certainty == "proved" else "best_so_far"
        found = replace(best, reason=event.reason, detail=event.detail, certainty=certainty)
        for waiting in self.pending:
            if waiting.settled or waiting.replies:
                self.rounds = max(self.rounds, waiting.last_round)
        self.at_ms = max(self.at_ms, event.at_ms)
        return self._end(found, status, POISONED if event.reason == POISONED else None)

    def _best_so_far(self, event: Stopped | Closing) -> Conclusion:
        plain, counted = self.strategy.conclude(self.state), self.strategy.conclude(self._state_if_cut(event))
        return plain if counted.answer is None and plain.answer is not None else counted

    def _state_if_cut(self, event: Stopped | Closing) -> Any:
        """Return the cut state: the state that the stage reaches if missing answers count as failures."""
        pending = self.pending
        if not self.stage.to or all(waiting.settled is None and waiting.child is None for waiting in pending):
            return self.state
        answers = answers_in([self._cut(waiting, event) for waiting in pending])
        reached = run_stage(self.stage, self.entry, (*self.had, Round(self.asked, answers)))
        return reached.move.state if reached.move else reached.state

    # -- closing

    def close(self, event: Closing) -> Step | None:
        """Close each child run that can close. If none can, close this run. If this run cannot either, return None."""
        self.closing, self.at_ms = event, max(self.at_ms, event.at_ms)
        open_before = self.pending
        for place, waiting in enumerate(open_before):
            if waiting.settled is None and waiting.child is not None:
                inside = _Execution(self.strategies[waiting.child.strategy], waiting.child, self.strategies)
                if (step := inside.close(event)) is not None:
                    now = self._take_child(waiting, step)
                    self.pending = (*self.pending[:place], now, *self.pending[place + 1 :])
        if self.pending is not open_before:
            return self.go_on() if self._take() else self._step()
        way = self.strategy.close(self._state_if_cut(event)) if self.stage.to else None
        is_last = way is not None and way.to == self.stage.name
        is_lost = any(waiting.tries and waiting.settled is None for waiting in open_before)
        if way is None or (is_last and not is_lost):
            return None
        was_closed, self.is_closed = self.is_closed, True
        self.cancelled += tuple(waiting.id for waiting in walk_open(open_before))
        if is_last:
            self.pending = tuple(self._cut(waiting, event) for waiting in open_before)
            self._take()
            return self.go_on()
        self.pending, self.asked, self.has_enough = (), 0, False
        step = self._follow(way, is_way_out=True) or self.go_on()
        return None if was_closed and step.snapshot.status == "active" else step

    def _cut(self, waiting: Pending, event: Stopped | Closing) -> Pending:
        """Settle an effect that is no longer needed. A child run gives its best result so far; other effects fail."""
        if waiting.settled is not None:
            return waiting
        if waiting.child is None:
            code = UNREADABLE if self.is_closed and waiting.tries else STOPPED
            spent, texts = spent_on(waiting.replies), tuple(reply.text for reply in waiting.replies)
            lost = Failed(code, event.detail or event.reason, event.at_ms, spent, replies=texts)
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
            closing=self.closing,
            is_closed=self.is_closed,
            calls_left=self.calls_left,
        )
        return Step(now, self.effects, self.edges, self.thoughts, self.reading, self.cancelled)


def _in_stage(thoughts: Sequence[Thought], stage: Stage[Any]) -> tuple[Thought, ...]:
    return tuple([each if each.stage else replace(each, stage=stage.name) for each in thoughts])


def _conclude_closed(conclusion: Conclusion, closing: Closing) -> Conclusion:
    certainty = "best_so_far" if conclusion.answer is None else conclusion.certainty
    detail = conclusion.detail if conclusion.answer is None else ""
    detail = "; ".join(filter(None, (closing.detail, detail)))
    return replace(conclusion, reason=closing.reason, detail=detail, certainty=certainty)


def _settle_own(waiting: Pending, event: Event) -> Pending:
    kinds = _KINDS[type(waiting.effect)]
    if not isinstance(event, kinds):
        detail = f"effect {waiting.id!r} cannot be settled by {type(event).__name__}"
        raise ConflictError(detail, effect=waiting.id, choices=[kind.__name__ for kind in kinds])
    assert not isinstance(event, Answered | Stopped | Closing)
    if isinstance(event, Failed) and waiting.replies:
        event = replace(event, usage=event.usage + spent_on(waiting.replies))
    return replace(waiting, settled=event)


# -- child runs


def _end_of(conclusion: Conclusion, status: Any, at_ms: int, code: str | None = None) -> Finished:
    return Finished(**asdict(conclusion), status=status, at_ms=at_ms, code=code)


def _nest(effect_id: str, thought: Thought) -> Thought:
    """Put a child run's thought on a branch of the parent run. The name of the branch begins with `effect_id`."""
    if thought.branch is None:
        return replace(thought, branch=effect_id)
    leaves = effect_id if thought.leaves is None else f"{effect_id}/{thought.leaves}"
    return replace(thought, branch=f"{effect_id}/{thought.branch}", leaves=leaves)


def last_questions(
    strategy: Strategy[Any, Any], snapshot: Snapshot, strategies: Registry
) -> tuple[Ask, ...] | None:
    """Return the questions that a run would ask if it were closed now. If it cannot close, return None."""
    step = (
        _Execution(strategy, snapshot, strategies).close(Closing("")) if snapshot.status == "active" else None
    )
    return step and tuple(each.effect for each in step.effects if isinstance(each.effect, Ask))
