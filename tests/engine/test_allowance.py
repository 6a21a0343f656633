"""The dollars of a day over several processes: together they pass the limit by one call at most."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.core.budget import Refusal, Usage
from reasonry.engine import allowance
from reasonry.engine.allowance import LOST_MS, Allowance, Reserved
from reasonry.records import ShareDecision
from reasonry.stores.memory import MemoryStore

pytestmark = pytest.mark.anyio


class ClockedStore(MemoryStore):
    """A store whose time stands still until it is set."""

    clock_ms = 1

    async def share(self, name: str, decide: ShareDecision[object]) -> object:
        return await super().share(name, lambda value, _: decide(value, self.clock_ms))


async def nothing_since(at_ms: int) -> float:
    return 0.0


async def waited(pause: Awaitable[None]) -> None:
    await pause


def processes(store: MemoryStore, usd: float, count: int) -> list[Allowance]:
    return [Allowance(usd, lambda: 0, nothing_since, store, "ann") for _ in range(count)]


COSTS = st.lists(st.tuples(st.integers(0, 2), st.floats(0.1, 2.0), st.booleans()), max_size=60)


@settings(max_examples=50)
@given(st.floats(0.5, 20.0), COSTS)
def test_the_limit_is_passed_by_one_call_at_most(limit: float, steps: list[tuple[int, float, bool]]) -> None:
    """Processes begin calls and end them in any order; no call takes over twice the dearest one before it."""

    async def check() -> None:
        parts, in_flight = processes(ClockedStore(), limit, 3), list[tuple[Allowance, Reserved]]()
        spent = dearest = 0.0
        for which, factor, ends in steps:
            if ends and in_flight:
                part, reserved = in_flight.pop(which % len(in_flight))
                usd = (reserved.usd or limit / 9) * factor
                part.settle(reserved, [Usage(usd=usd)])
                await part.close()
                spent, dearest = spent + usd, max(dearest, usd)
            else:
                outcome = await parts[which]._reserve(1)
                if isinstance(outcome, Reserved):
                    in_flight.append((parts[which], outcome))
        assert spent <= limit + dearest + 1e-6

    asyncio.run(check())


async def test_what_a_dead_process_had_set_aside_counts_as_spent_and_holds_nobody_up_for_long() -> None:
    store = ClockedStore()
    dead, other = processes(store, 1.0, 2)
    first = await dead.take(1, waited)
    assert isinstance(first, Reserved)
    dead.settle(first, [Usage(usd=0.2)])
    await dead.close()
    lost = [await dead._reserve(1) for _ in range(3)]
    # Each may turn out twice as dear: one of them has to wait already.
    assert [isinstance(each, Reserved) for each in lost] == [True, True, False]
    refused = await other._reserve(1)
    assert isinstance(refused, Refusal)
    assert refused.wait
    store.clock_ms += LOST_MS
    assert isinstance(await other._reserve(1), Reserved)
    # What comes back late is booked all the same, and nothing twice.
    assert isinstance(lost[0], Reserved)
    dead.settle(lost[0], [Usage(usd=0.3)])
    await dead.close()
    refusal = await other._reserve(1)
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.wait) == ("max_usd_a_day", True)


async def test_four_processes_at_once_spend_the_limit_and_no_more() -> None:
    store, calls = MemoryStore(), 0

    async def spend(part: Allowance) -> None:
        nonlocal calls
        while True:
            reserved = await part.take(1, waited)
            if isinstance(reserved, Refusal):
                assert reserved.reason == "max_usd_a_day"
                return
            await asyncio.sleep(0.005)
            part.settle(reserved, [Usage(usd=0.02)])
            calls += 1

    parts = processes(store, 4.0, 4)
    await asyncio.gather(*(spend(part) for part in parts for _ in range(4)))
    assert 200 <= calls <= 201
    for part in parts:
        await part.close()


async def test_one_who_gives_up_leaves_nothing_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowance, "WAIT_S", 0.01)
    (part,) = processes(MemoryStore(), 1.0, 1)
    gives_up = asyncio.create_task(part.take(1, waited))
    await asyncio.sleep(0)
    gives_up.cancel()
    await asyncio.gather(gives_up, return_exceptions=True)
    # Nothing is known of what a call takes: one goes at a time.
    assert isinstance(await asyncio.wait_for(part.take(1, waited), 1), Reserved)
    await part.close()
