"""The machine: walks a strategy's table. Pure: no clock, no chance, no I/O.

Theory of operation. A run stands in a stage. Entering it, the machine calls `ask`. Wants the stage nothing, `absorb` is
called at once and the walk goes on; wants it something, the effects become `Pending` and the machine returns. Each
event settles one pending effect. When all of a stage's effects are settled, `absorb` gets the answers in the order
asked, so the order of arrival changes nothing.

Rule 1: everything that decides where a run goes happens here or in a strategy; a run is a fold over its events.
Rule 2: ids are counted, never drawn: `e4` is the fourth effect, `e4.2` its second try, `e4/e1` the first effect of the
        strategy that runs inside `e4`. So they do not depend on the order of arrival.
Rule 3: a reply that cannot be read is asked for again, with the reason, up to `Ask.retries` times; then the answer is
        a `Failed` with code `output_invalid`. Unread text never passes for a value.
Rule 4: a `Failed` that the stage does not hear ends the run, when the stage's other answers are in.
Rule 5: a stop loses nothing that came in. A stage that hears failures folds the answers that are there, the others as
        `Failed` with code `stopped`, and the best so far is that of the state it makes. The state itself stays, so that
        the run can go on as if it had never been stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import ConflictError, InvalidStrategyError, UsageError
from .effects import Ask, Effect, RunStrategy
from .events import STOPPED, Answered, Delivered, Event, Failed, Stopped
from .options import read_options
from .parse import Unreadable
from .settling import check_kind, delivered, finished, inside, later, read_reply, round_of, rung
from .snapshot import Pending, Snapshot, Status, Step, asked_again, wanted
from .strategy import Move, Outcome, Stage, Strategy, Thought, named

__all__ = ["Pending", "Registry", "Snapshot", "Status", "Step", "advance", "begin", "wanted"]

Registry = Mapping[str, Strategy[Any, Any]]

MAX_SILENT_MOVES = 1_000
"""Moves in a row without asking anybody; more is a loop."""


def begin(
    strategy: Strategy[Any, Any],
    problem: str,
    options: Struct | None = None,
    *,
    strategies: Registry | None = None,
) -> Step:
    """Start a run.

    Args:
        strategy: What to run.
        problem: What to run it on.
        options: The strategy's own options struct; its defaults if None.
        strategies: Where strategies that this one runs are looked up.

    Raises:
        InvalidStrategyError: The strategy is for guided use only.
    """
    if strategy.begin is None:
        raise InvalidStrategyError(f"strategy {strategy.name!r} is for guided use only")
    chosen = strategy.options() if options is None else options
    snapshot = Snapshot(
        strategy=strategy.name,
        problem=problem,
        options=msgspec.json.decode(msgspec.json.encode(chosen)),
        stage=strategy.first,
        state=strategy.begin(problem, chosen),
    )
    return _Walk(strategy, snapshot, strategies or {}).enter()


def advance(
    strategy: Strategy[Any, Any],
    snapshot: Snapshot,
    effect_id: str | None,
    event: Event,
    *,
    strategies: Registry | None = None,
) -> Step:
    """Take one event and go as far as it leads.

    Args:
        effect_id: The effect the event settles; None for `Stopped`.

    Raises:
        ConflictError: The run has ended, or the effect is not pending, or the event does not fit it. Nothing changed.
    """
    if snapshot.status != "active":
        raise ConflictError(f"the run has ended ({snapshot.status}); it takes no more events")
    walk = _Walk(strategy, snapshot, strategies or {})
    if isinstance(event, Stopped):
        return walk.stop(event)
    return walk.settle(effect_id or "", event)


class _Walk:
    """One call of `begin` or `advance`: a snapshot being replaced, and what it leaves behind."""

    def __init__(self, strategy: Strategy[Any, Any], snapshot: Snapshot, strategies: Registry) -> None:
        self.strategy = strategy
        self.now = snapshot
        self.strategies = strategies
        self.effects: list[Pending] = []
        self.edges: list[tuple[str, str]] = []
        self.thoughts: list[Thought] = []
        self.read = ""

    # -- entering stages

    def enter(self) -> Step:
        """Ask what the stage wants; pass through stages that want nothing."""
        for _ in range(MAX_SILENT_MOVES):
            stage = self.strategy.by_name[self.now.stage]
            if not stage.to:
                return self._close()
            effects = stage.ask(self.now.state) if stage.ask else ()
            if effects:
                self._open(stage, effects)
                if any(one.settled is None for one in self.now.pending):
                    return self._step()
                if not self._absorb(stage):
                    return self._step()
            elif not self._apply(stage, self._fold(stage, ())):
                return self._step()
        detail = f"stage {self.now.stage!r} went round without asking anybody"
        return self._fail("stage_loop", detail, "stage_loop")

    def _open(self, stage: Stage[Any], effects: Sequence[Effect]) -> None:
        pending: list[Pending] = []
        counter = self.now.counter
        for effect in effects:
            counter += 1
            if isinstance(effect, Ask) and effect.form is None and stage.form is not None:
                effect = replace(effect, form=stage.form)
            one = Pending(f"e{counter}", stage.name, effect, self.now.rounds + 1)
            pending.append(self._open_child(one) if isinstance(effect, RunStrategy) else one)
        self.now = replace(self.now, pending=tuple(pending), counter=counter)
        self.effects += wanted(self.now)

    def _open_child(self, one: Pending) -> Pending:
        assert isinstance(one.effect, RunStrategy)
        inner = named(one.effect.strategy, self.strategies)
        if inner is None:
            known = list(self.strategies)
            raise UsageError(f"There is no strategy {one.effect.strategy!r} to run inside.", choices=known)
        options = read_options(inner, one.effect.options)
        step = begin(inner, one.effect.problem, options, strategies=self.strategies)
        return self._with_child(one, later(step, self.now.rounds))

    # -- settling effects

    def settle(self, effect_id: str, event: Event) -> Step:
        """Book the event; fold and go on when it was the last the stage waited for."""
        own, _, inner = effect_id.partition("/")
        index = next((i for i, one in enumerate(self.now.pending) if one.id == own), None)
        if index is None or self.now.pending[index].settled is not None:
            waiting = [one.id for one in wanted(self.now)]
            raise ConflictError(f"effect {effect_id!r} is not pending", effect=effect_id, choices=waiting)
        one = self.now.pending[index]
        stage = self.strategy.by_name[self.now.stage]
        settled = self._settle_child(one, inner, event) if inner else self._settle_own(stage, one, event)
        pending = (*self.now.pending[:index], settled, *self.now.pending[index + 1 :])
        self.now = replace(self.now, pending=pending, at_ms=max(self.now.at_ms, event.at_ms))
        if any(each.settled is None for each in pending):
            return self._step()
        return self.enter() if self._absorb(stage) else self._step()

    def _settle_own(self, stage: Stage[Any], one: Pending, event: Event) -> Pending:
        check_kind(one, event)
        if not isinstance(event, Answered):
            return replace(one, settled=event)
        assert isinstance(one.effect, Ask)
        answered = replace(one, replies=(*one.replies, event))
        reading = read_reply(stage, self.now.state, one.effect, answered.replies)
        self.read = rung(reading, event)
        if not isinstance(reading, Unreadable):
            return replace(answered, settled=event)
        if answered.tries > one.effect.retries:
            texts = tuple(reply.text for reply in answered.replies)
            failure = Failed("output_invalid", reading.reason, at_ms=event.at_ms, replies=texts)
            return replace(answered, settled=failure)
        again = asked_again(answered, reading.reason)
        self.effects.append(again)
        return again

    def _settle_child(self, one: Pending, inner: str, event: Event) -> Pending:
        if one.child is None:
            raise ConflictError(f"effect {one.id!r} has no run inside", effect=f"{one.id}/{inner}")
        child = self.strategies[one.child.strategy]
        step = advance(child, one.child, inner, event, strategies=self.strategies)
        self.effects += [replace(each, id=f"{one.id}/{each.id}") for each in step.effects]
        self.read = step.read
        return self._with_child(one, step)

    def _with_child(self, one: Pending, step: Step) -> Pending:
        child = step.snapshot
        self.thoughts += [inside(one.id, each) for each in step.thoughts]
        if child.status == "active":
            return replace(one, child=child)
        outcome = child.outcome or Outcome()
        end = finished(outcome, child.status, child.at_ms, child.error)
        return replace(one, child=child, settled=end)

    # -- folding answers in

    def _absorb(self, stage: Stage[Any]) -> bool:
        answers = tuple(delivered(stage, self.now.state, one) for one in self.now.pending)
        rounds = max((round_of(one) for one in self.now.pending), default=self.now.rounds)
        self.now = replace(self.now, rounds=max(self.now.rounds, rounds))
        failure = next((answer for answer in answers if isinstance(answer, Failed)), None)
        if failure is not None and not stage.hears_failures:
            self._fail("error", failure.message, failure.code)
            return False
        return self._apply(stage, self._fold(stage, answers))

    def _fold(self, stage: Stage[Any], answers: tuple[Delivered, ...]) -> Move:
        assert stage.absorb is not None, "checked when the strategy was defined"
        return stage.absorb(self.now.state, answers)

    def _apply(self, stage: Stage[Any], move: Move) -> bool:
        self.thoughts += [replace(each, stage=each.stage or stage.name) for each in move.thoughts]
        self.now = replace(self.now, state=move.state, pending=())
        if move.failure is not None:
            self._fail(*move.failure)
            return False
        if move.to is not None:
            self.strategy.check_move(stage.name, move.to)
            self.edges.append((stage.name, move.to))
            self.now = replace(self.now, stage=move.to)
        return True

    # -- endings

    def _close(self) -> Step:
        outcome = self.strategy.outcome(self.now.state)
        status: Status = "failed" if outcome.answer is None else "done"
        self.now = replace(self.now, status=status, outcome=outcome, pending=())
        return self._step()

    def _fail(self, reason: str, detail: str, code: str | None = None) -> Step:
        outcome = self.strategy.outcome(self.now.state)
        outcome = replace(outcome, answer=None, reason=reason, detail=detail)
        self.now = replace(self.now, status="failed", outcome=outcome, error=code, pending=())
        return self._step()

    def stop(self, event: Stopped) -> Step:
        """End the run from outside: at a limit with the best so far as the answer, on cancelling without one."""
        cancelled = event.reason == "cancelled"
        rounds = max((round_of(one) for one in self.now.pending if one.settled or one.replies), default=0)
        outcome = replace(self._best_so_far(event), reason=event.reason, detail=event.detail)
        status: Status = "cancelled" if cancelled else "failed" if outcome.answer is None else "done"
        self.now = replace(
            self.now,
            status=status,
            outcome=replace(outcome, answer=None) if cancelled else outcome,
            pending=(),
            rounds=max(self.now.rounds, rounds),
            at_ms=max(self.now.at_ms, event.at_ms),
        )
        return self._step()

    def _best_so_far(self, event: Stopped) -> Outcome:
        plain = self.strategy.outcome(self.now.state)
        stage = self.strategy.by_name[self.now.stage]
        if not stage.hears_failures or all(
            one.settled is None and one.child is None for one in self.now.pending
        ):
            return plain
        answers = tuple(self._so_far(stage, one, event) for one in self.now.pending)
        counted = self.strategy.outcome(self._fold(stage, answers).state)
        return plain if counted.answer is None and plain.answer is not None else counted

    def _so_far(self, stage: Stage[Any], one: Pending, event: Stopped) -> Delivered:
        if one.settled is not None:
            return delivered(stage, self.now.state, one)
        if one.child is None:
            return Failed(STOPPED, event.detail or event.reason, at_ms=event.at_ms)
        child = _Walk(self.strategies[one.child.strategy], one.child, self.strategies)
        best = child._best_so_far(event)
        return finished(replace(best, reason=event.reason, detail=event.detail), "cancelled", event.at_ms)

    def _step(self) -> Step:
        return Step(self.now, tuple(self.effects), tuple(self.edges), tuple(self.thoughts), self.read)
