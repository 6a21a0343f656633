"""The dollars of a day: the runs of an owner pass the limit by one call at most in each process."""

import asyncio
from collections.abc import Awaitable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.core.budget import Refusal
from reasonry.core.effects import Ask
from reasonry.core.events import NOTHING, Usage
from reasonry.engine.budget_guard import LOOK_EVERY_MS, Allowance, BudgetExhausted, Pause
from reasonry.engine.ports import Question
from reasonry.records import DAY_MS, UsageTotal

pytestmark = pytest.mark.anyio


class World:
    """A clock, and what the store says was spent."""

    now_ms = 5 * DAY_MS
    recorded = 0.0

    async def usage_since(self, at_ms: int) -> UsageTotal:
        assert at_ms == self.now_ms // DAY_MS * DAY_MS
        return UsageTotal(usd=self.recorded)

    def allowance(self, usd: float) -> Allowance:
        return Allowance(usd, self.usage_since, lambda: self.now_ms)


async def pause(waiting: Awaitable[bool]) -> bool:
    return await asyncio.wait_for(waiting, 0.01)


async def take(part: Allowance, pause: Pause) -> Usage | Refusal:
    try:
        return await part.reserve(Question("e1", "stage", Ask("?")), 1, pause)
    except BudgetExhausted as exhausted:
        return exhausted.refusal


COSTS = st.lists(st.tuples(st.integers(0, 2), st.floats(0.1, 2.0), st.booleans()), max_size=60)


@settings(max_examples=50)
@given(st.floats(0.5, 20.0), COSTS)
async def test_the_limit_is_passed_by_one_call_at_most(
    limit: float, steps: list[tuple[int, float, bool]]
) -> None:
    """Calls begin and end in any order; no call takes over twice the dearest one before it."""
    part, in_flight = World().allowance(limit), list[Usage]()
    spent = dearest = 0.0
    for which, factor, ends in steps:
        if ends and in_flight:
            reserved = in_flight.pop(which % len(in_flight))
            usd = (reserved.usd or limit / 9) * factor
            part.settle(reserved, [Usage(usd=usd)])
            spent, dearest = spent + usd, max(dearest, usd)
            continue
        try:
            outcome = await take(part, pause)
        except TimeoutError:
            continue
        if isinstance(outcome, Usage):
            in_flight.append(outcome)
    assert spent <= limit + dearest + 1e-6


async def test_many_at_once_spend_the_limit_and_no_more() -> None:
    part, calls = World().allowance(4.0), 0

    async def wait(waiting: Awaitable[bool]) -> bool:
        return await waiting

    async def spend() -> None:
        nonlocal calls
        while True:
            reserved = await take(part, wait)
            if isinstance(reserved, Refusal):
                assert reserved.reason == "max_usd_a_day"
                return
            await asyncio.sleep(0.001)
            part.settle(reserved, [Usage(usd=0.02)])
            calls += 1

    await asyncio.gather(*(spend() for _ in range(16)))
    assert 200 <= calls <= 201


async def test_what_other_processes_have_recorded_counts_and_a_day_begins_anew() -> None:
    world = World()
    part = world.allowance(1.0)
    first = await take(part, pause)
    assert isinstance(first, Usage)
    part.settle(first, [Usage(usd=0.2)])
    world.recorded, world.now_ms = 1.5, world.now_ms + LOOK_EVERY_MS
    refusal = await take(part, pause)
    assert isinstance(refusal, Refusal)
    assert "reached the limit of 1 US dollars a day (1.5 spent)" in refusal.detail
    assert part.refusal() == refusal
    world.recorded, world.now_ms = 0.0, world.now_ms + DAY_MS
    assert isinstance(await take(part, pause), Usage)


async def test_one_who_gives_up_leaves_nothing_set_aside() -> None:
    part = World().allowance(1.0)
    # Nothing is known of what a call takes: one goes at a time.
    first = await take(part, pause)
    assert isinstance(first, Usage)
    with pytest.raises(TimeoutError):
        await take(part, pause)
    part.settle(first, [NOTHING])
    assert isinstance(await take(part, pause), Usage)
