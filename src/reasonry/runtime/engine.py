"""The engine: accepts runs, drives them, takes them up again.

A run is accepted by writing it down. Driving it is a loop: perform what the machine wants, write down what came of it,
fold it in. All that is known of a run is in its journal, so any process may go on where another one died.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.budget import Budget, check_budget
from ..core.events import Event, Stopped
from ..core.machine import Registry
from ..core.strategy import Strategy
from ..errors import ConflictError, ReasonryError
from . import journal
from .drive import Drive
from .ids import new_id
from .journal import CALLER, Begun, Crew, Entry, Folded, Resumed, Took
from .limits import limit_reached
from .observe import Observer, Unwatched
from .policy import Performers, Policy
from .ports import RunRow, SessionRow, Store, Use
from .result import Result, result_of, trace_of

LET_GO_S: Final = 3
"""How long a cancellation waits for the drive it ends."""

QUEUE_S: Final = 10
"""How long answers to a coached run wait for others that are being taken."""


class Order(Struct, frozen=True, kw_only=True):
    """What is asked of the engine.

    Args:
        crew: Who works on it, as a user would write it; what resume goes by.
        why: Why this strategy, where it was not the user who named it.
        session_id: The session the run writes, which then does not expire; empty: a new one.
    """

    strategy: Strategy[Any, Any]
    problem: str
    options: Struct
    budget: Budget = Budget()
    crew: Crew = Crew()
    why: str = ""
    session_id: str = ""


class Engine:
    """Runs strategies over one store.

    Args:
        strategies: The registry, by canonical name.
    """

    def __init__(self, store: Store, strategies: Registry, policy: Policy | None = None) -> None:
        self.store, self.strategies, self.policy = store, strategies, policy or Policy()

    # -- accepting

    async def accept(
        self, order: Order, copied: Sequence[Took] = (), forked: tuple[str, int] | None = None
    ) -> str:
        """Write a run down; nothing is asked yet.

        Args:
            copied: Events it starts with, when it is a fork of run `forked[0]` after its event number `forked[1]`.

        Returns:
            The run's id.

        Raises:
            UsageError: The budget is none.
        """
        check_budget(order.budget)
        run_id, now = new_id(), _now_ms()
        begun = Begun(
            order.strategy.name,
            order.problem,
            msgspec.to_builtins(order.options),
            order.budget,
            order.crew,
            now,
            *(forked or (None, None)),
            why=order.why,
        )
        run = Folded(begun, self.strategies)
        entries = _begun_with(run, copied)
        head = order.problem[: journal.HEAD_CHARS]
        session = SessionRow(
            order.session_id or new_id(),
            order.strategy.name,
            now,
            now,
            pinned=order.session_id != "",
            thoughts=len(run.thoughts),
            purpose=head,
            run_id=run_id,
        )
        row = RunRow(run_id, session.session_id, begun.strategy, order.crew.model, head, "active", now, now)
        lines = journal.Chain(run_id).lines([begun, *entries])
        await self.store.create_run(journal.row_after(row, run, _now_ms()), lines, session)
        return run_id

    # -- reading

    async def read(self, run_id: str) -> tuple[RunRow, Folded, journal.Chain]:
        """Fold a run from its journal.

        Raises:
            NotFoundError: There is no such run.
            StoreError: `store_corrupt`: its journal is damaged.
        """
        row = await self.store.run(run_id)
        entries, chain = journal.read(run_id, await self.store.lines(run_id))
        return row, journal.fold(entries, self.strategies), chain

    async def result(self, run_id: str) -> Result:
        """Return where a run stands."""
        row, run, _ = await self.read(run_id)
        return result_of(run_id, row.session_id, run)

    async def trace(self, run_id: str) -> dict[str, Any]:
        """Return all there is to see of a run."""
        row, run, _ = await self.read(run_id)
        return trace_of(run_id, row.session_id, run)

    async def replay(self, run_id: str) -> dict[str, Any]:
        """Walk a run's journal again, without a model, and compare what comes of it with what the run left behind.

        Returns:
            The result document, plus `replay`: {`identical`: bool or None for a run that has not ended, `events`:
            their number, `differs`: which of `events`, `path`, `thoughts` and `outcome` are not the same}.
        """
        row, run, _ = await self.read(run_id)
        differs = journal.differences(row, run) if run.ended else []
        identical = None if run.ended is None else not differs
        replay = {"identical": identical, "events": len(run.events), "differs": differs}
        return {**result_of(run_id, row.session_id, run).document(), "replay": replay}

    # -- driving

    async def drive(self, run_id: str, who: Performers, observer: Observer | None = None) -> Result:
        """Perform a run until it ends, or until this task is cancelled: then the run is recorded as cancelled.

        Raises:
            ConflictError: Somebody else drives it.
        """
        async with self._driving(run_id) as (row, run, chain):
            watch = observer or Unwatched()
            if run.snapshot.status == "active":
                watch.began(run_id, run)
                await Drive(self.store, row, run, chain, who, self.policy, watch).to_the_end()
                watch.ended(run_id, run)
            return result_of(run_id, row.session_id, run)

    async def reopen(self, run_id: str, budget: Budget | None = None, crew: Crew | None = None) -> bool:
        """Take a run up again, after a crash, a cancellation, a limit or a failure of the world.

        Args:
            budget: New limits; what was spent before counts against them.
            crew: New crew, if another one goes on.

        Returns:
            Whether there is anything to go on with: a run that came to its own end stays ended.
        """
        check_budget(budget or Budget())
        async with self._driving(run_id) as (row, run, chain):
            if run.snapshot.status == "active" and not (budget or crew):
                return True
            entry = Resumed(budget, crew)
            run.apply(entry)
            if run.snapshot.status != "active":
                return False
            row = replace(row, status="active", model=run.crew.model, reason=None, answer=None)
            await self.store.append(run_id, chain.lines([entry]), row, Use(len(run.thoughts), _now_ms()))
            return True

    async def resume(
        self,
        run_id: str,
        who: Performers,
        observer: Observer | None = None,
        *,
        budget: Budget | None = None,
        crew: Crew | None = None,
    ) -> Result:
        """Take a run up again and drive it to its end."""
        if await self.reopen(run_id, budget, crew):
            return await self.drive(run_id, who, observer)
        return await self.result(run_id)

    async def coach(
        self, run_id: str, who: Performers, answer: Callable[[Folded], Sequence[tuple[str, Event]]]
    ) -> tuple[RunRow, Folded]:
        """Take answers from outside, then perform all that is not a question.

        Args:
            answer: Given the run as it stands, returns (effect id, event) for what is answered.

        Raises:
            ConflictError: An answer is not waited for, or somebody drives the run. None of the answers is taken.
        """
        async with self._driving(run_id) as (row, run, chain):
            entries = _folded_in(run, answer(run))
            if entries:
                lines = chain.lines([*entries, *journal.closing(run)])
                row = journal.row_after(row, run, _now_ms())
                await self.store.append(run_id, lines, row, Use(len(run.thoughts), row.updated_at_ms))
                chain.written(lines)
            if run.snapshot.status == "active":
                await Drive(self.store, row, run, chain, who, self.policy, Unwatched(), True).to_the_end()
            return row, run

    async def cancel(self, run_id: str) -> Result:
        """Record a run as cancelled, and wait a moment until whoever drives it has noticed and stopped.

        Raises:
            ConflictError: It has ended already.
        """
        while True:
            row, run, chain = await self.read(run_id)
            if run.snapshot.status != "active":
                raise ConflictError(f"run {run_id} has ended already ({run.snapshot.status})", run_id=run_id)
            run.take(None, Stopped("cancelled", "cancelled by its user", at_ms=run.snapshot.at_ms))
            lines = chain.lines([run.events[-1], *journal.closing(run)])
            row = journal.row_after(row, run, _now_ms())
            try:
                await self.store.append(run_id, lines, row, Use(len(run.thoughts), row.updated_at_ms))
            except ConflictError:
                continue
            await self._let_go(run_id)
            return await self.result(run_id)

    async def _let_go(self, run_id: str) -> None:
        for _ in range(LET_GO_S * 20):
            try:
                async with self.store.drive(run_id):
                    return
            except ConflictError:
                await asyncio.sleep(0.05)

    async def fork(self, run_id: str, order: Order | None, at: int) -> str:
        """Start a new run from a point of another.

        Args:
            order: What is to be different: another crew, budget or options. None: nothing.
            at: How many of the run's events the new one starts with.

        Raises:
            ConflictError: The run has no such event, or its answers do not fit the new options.
        """
        _, run, _ = await self.read(run_id)
        events = [one for one in run.events if not isinstance(one.event, Stopped)]
        if not 0 <= at <= len(events):
            raise ConflictError(
                f"run {run_id} has events 0 to {len(events)}, not {at}", choices=[0, len(events)]
            )
        if order is None:
            options = msgspec.convert(run.begun.options, run.strategy.options)
            order = Order(
                strategy=run.strategy,
                problem=run.begun.problem,
                options=options,
                budget=run.budget,
                crew=run.crew,
            )
        try:
            return await self.accept(order, events[:at], (run_id, at))
        except ReasonryError as error:
            if not isinstance(error, ConflictError):
                raise
            raise ConflictError(
                f"the first {at} answers of run {run_id} do not fit the new options: {error.message}",
                run_id=run_id,
            ) from error

    @asynccontextmanager
    async def _driving(self, run_id: str) -> AsyncGenerator[tuple[RunRow, Folded, journal.Chain]]:
        async with AsyncExitStack() as held:
            await self._take_right(run_id, held)
            yield await self.read(run_id)

    async def _take_right(self, run_id: str, held: AsyncExitStack) -> None:
        """Take the right to drive a run; a coached run is held for moments only, so its callers queue up."""
        until = time.monotonic() + QUEUE_S
        while True:
            coached = (await self.store.run(run_id)).model == CALLER
            try:
                return await held.enter_async_context(self.store.drive(run_id))
            except ConflictError as error:
                if not coached:
                    raise
                if time.monotonic() >= until:
                    message = (
                        f"other answers to run {run_id} have been in work for {QUEUE_S} s; try again later"
                    )
                    raise ConflictError(message, retryable=True, **error.details) from error
            await asyncio.sleep(0.02)


def _begun_with(run: Folded, copied: Sequence[Took]) -> list[Entry]:
    """Fold events of another run in, taking the run up again where that one was."""
    entries: list[Entry] = []
    for entry in copied:
        if run.snapshot.status != "active":
            entries.append(Resumed())
            run.apply(entries[-1])
        entries.append(entry)
        run.apply(entry)
    return entries


def _folded_in(run: Folded, answers: Sequence[tuple[str, Event]]) -> list[Took]:
    """Fold answers in one by one, up to a limit: what comes after it is not taken, as if it had come later."""
    taken: list[Took] = []
    for effect_id, event in answers:
        if limit_reached(run):
            break
        taken.append(Took(effect_id, event))
        run.apply(taken[-1])
    return taken


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
