"""Answers that come in while the store is away are kept, and written down when it is back."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from reasonry.core.budget import Budget
from reasonry.engine import open_run
from reasonry.engine.engine import Engine
from reasonry.errors import ConflictError, StoreError
from reasonry.records import Line
from reasonry.stores.sqlite import MemoryStore

from .playing import LOOP, STRATEGIES, CountingModel, Loops
from .running import accept, driven, order_of

pytestmark = pytest.mark.anyio


class AwayStore(MemoryStore):
    """Is away now and then.

    Attributes:
        away: How many writes more it refuses.
        unacknowledged: How many writes more it does and does not acknowledge.
        refused: How many it has refused.
    """

    def __init__(self) -> None:
        super().__init__()
        self.away, self.unacknowledged, self.refused = 0, 0, 0

    def _check(self) -> None:
        if self.away:
            self.away, self.refused = self.away - 1, self.refused + 1
            raise StoreError("the store is away", retryable=True)

    async def append(self, run_id: str, lines: Sequence[Line], *more: Any, **named: Any) -> None:
        self._check()
        await super().append(run_id, lines, *more, **named)
        if self.unacknowledged:
            self.unacknowledged -= 1
            self.away = 2
            raise StoreError("the last write was not acknowledged", retryable=True)


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_run, "RETRY_S", 0.001)


async def begun(store: AwayStore, budget: Budget | None = None) -> tuple[Engine, str]:
    engine = Engine(store, STRATEGIES)
    order = order_of(LOOP, "p", Loops(steps=3, width=4), budget=budget or Budget())
    return engine, await accept(engine, order)


@pytest.mark.parametrize("budget", [Budget(), Budget(calls=50)], ids=["no limit", "each call written down"])
@pytest.mark.parametrize(("fault", "times"), [("away", 9), ("unacknowledged", 3)])
async def test_no_call_is_made_again(fault: str, times: int, budget: Budget) -> None:
    store, model = AwayStore(), CountingModel()
    async with driven(*await begun(store, budget), model) as (_, driving):
        setattr(store, fault, times)
        result = await driving
    assert (result.outcome, result.usage.calls, model.calls) == ("answered", 12, 12)
    assert store.refused >= 4


async def test_a_limit_of_seconds_that_passes_meanwhile_ends_the_run_with_what_came_in() -> None:
    store, model = AwayStore(), CountingModel()
    async with driven(*await begun(store, Budget(seconds=0.2)), model) as (_, driving):
        store.away = 1_000_000
        # Long after the limit it is not given up.
        assert await asyncio.wait([driving], timeout=0.5) == (set(), {driving})
        store.away = 0
        result = await driving
    assert (result.termination.reason, result.usage.calls, model.calls) == ("max_seconds", 4, 4)


@pytest.mark.parametrize("how", ["cancelled", "cut"])
async def test_a_process_that_ends_does_not_wait_for_it(how: str) -> None:
    store = AwayStore()
    async with driven(*await begun(store), CountingModel()) as (control, driving):
        store.away = 1_000_000
        while not store.refused:
            await asyncio.sleep(0)
        if how == "cut":
            control.drain(cut=True)
        else:
            driving.cancel()
        (ended,) = await asyncio.gather(driving, return_exceptions=True)
        store.away = 0
    assert isinstance(ended, StoreError | asyncio.CancelledError)


async def test_where_another_has_taken_the_run_over_its_answers_count() -> None:
    class LostStore(AwayStore):
        async def append(self, run_id: str, *_: Any, **__: Any) -> None:
            self._check()
            raise ConflictError("taken over", code="lease_lost", run_id=run_id)

    store = LostStore()
    async with driven(*await begun(store), CountingModel()) as (_, driving):
        store.away = 3
        (ended,) = await asyncio.gather(driving, return_exceptions=True)
    assert isinstance(ended, ConflictError)
    assert (ended.code, store.refused) == ("lease_lost", 3)
