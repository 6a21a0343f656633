"""The dollars of a day over several processes: together they pass the limit by one call at most."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from reasonry.core.budget import HEADROOM, Refusal, Usage
from reasonry.engine.allowance import Allowance
from reasonry.engine.shared_day import HOLD_MS, Day, Share, Wish, hold
from reasonry.records import ShareDecision
from reasonry.stores.memory import MemoryStore

pytestmark = pytest.mark.anyio

NOTHING_HELD = Share(0.0, is_enough=False)
HOLDERS = st.integers(0, 2)


class Process:
    """What a process knows: what it holds, until when, what is in flight and what it has not told."""

    def __init__(self, name: str) -> None:
        self.name, self.share, self.until_ms = name, NOTHING_HELD, 0
        self.calls: list[float] = []
        """What each call in flight is expected to take."""
        self.settled = 0.0
        self.largest: float | None = None


class DaysLaw(RuleBasedStateMachine):
    """Processes ask, call, settle, keep what they hold, and die; no call takes over twice its estimate."""

    @initialize(limit=st.floats(0.5, 20.0))
    def begin(self, limit: float) -> None:
        self.limit, self.now_ms, self.spent, self.dearest = limit, 0, 0.0, 0.0
        self.day, self.names = Day(), iter(range(10**6))
        self.processes = [self.new_process() for _ in range(3)]

    def new_process(self) -> Process:
        return Process(f"{next(self.names)}")

    def exchange(self, process: Process, samples: int) -> None:
        wish = Wish(
            holder=process.name,
            number=0,
            limit=self.limit,
            known=0.0,
            settled=process.settled,
            largest=process.largest,
            reserved=sum(process.calls),
            ahead=0.0,
            in_flight=len(process.calls),
            samples=samples,
        )
        self.day, process.share = hold(self.day, self.now_ms, wish)
        process.settled, process.largest = 0.0, self.day.largest
        process.until_ms = self.now_ms + HOLD_MS

    @rule(ms=st.sampled_from([1, 2_000, 11_000]))
    def pass_time(self, ms: int) -> None:
        for process in self.processes:
            if process.calls:
                # Whoever has something in flight says so in time.
                self.exchange(process, 0)
        self.now_ms += ms
        for process in self.processes:
            if process.calls and ms > HOLD_MS:
                self.exchange(process, 0)

    @rule(which=HOLDERS)
    def call(self, which: int) -> None:
        process = self.processes[which]
        self.exchange(process, 1)
        if process.share.is_enough:
            assert self.now_ms < process.until_ms
            if not process.share.is_alone:
                needed = HEADROOM * (sum(process.calls) + (process.largest or 0.0))
                assert needed <= process.share.usd + 1e-9
            process.calls.append(process.largest or 0.0)

    @rule(which=HOLDERS, factor=st.floats(0.1, 2.0))
    def settle(self, which: int, factor: float) -> None:
        process = self.processes[which]
        if process.calls:
            expected = process.calls.pop()
            usd = expected * factor if expected else factor
            self.spent, process.settled = self.spent + usd, process.settled + usd
            self.dearest = max(self.dearest, usd)
            process.largest = max(process.largest or 0.0, usd)

    @rule(which=HOLDERS)
    def die(self, which: int) -> None:
        # What it had told stays spent; what it had not is read from the runs, which is left out here.
        self.exchange(self.processes[which], 0)
        self.processes[which] = self.new_process()
        self.now_ms += HOLD_MS + 1
        for process in self.processes:
            if process.calls:
                self.exchange(process, 0)

    @invariant()
    def the_limit_is_passed_by_one_call_at_most(self) -> None:
        if hasattr(self, "spent"):
            assert self.spent <= self.limit + self.dearest + 1e-6


DaysLaw.TestCase.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
test_the_limit_is_passed_by_one_call_at_most = DaysLaw.TestCase


def wish(holder: str, samples: int = 1, **more: float) -> Wish:
    about = {"limit": 1.0, "known": 0.0, "settled": 0.0, "reserved": 0.0, "ahead": 0.0, **more}
    return Wish(holder=holder, number=1, largest=0.1, in_flight=0, samples=samples, **about)  # pyright: ignore


def test_what_a_dead_process_holds_is_there_again_soon_and_what_it_spent_is_not() -> None:
    day, share = hold(Day(1, spent=0.2, largest=0.1), 0, wish("dead", settled=0.2, ahead=9.0))
    assert (share.is_enough, day.spent) == (True, 0.4)
    day, refused = hold(day, HOLD_MS - 1, wish("other", samples=3))
    assert not refused.is_enough
    day, enough = hold(day, HOLD_MS, wish("other", samples=3))
    assert (enough.is_enough, day.spent, set(day.held)) == (True, 0.4, {"other"})


async def nothing_since(at_ms: int) -> float:
    return 0.0


async def waited(pause: Awaitable[None]) -> None:
    await pause


async def test_four_processes_at_once_spend_the_limit_and_no_more_and_ask_a_few_times_a_second() -> None:
    asked = 0

    class Counting(MemoryStore):
        async def share(self, name: str, decide: ShareDecision[object]) -> object:
            nonlocal asked
            asked += 1
            return await super().share(name, decide)

    store, calls = Counting(), 0
    parts = [Allowance(10.0, lambda: 0, nothing_since, store, "ann") for _ in range(4)]

    async def spend(part: Allowance) -> None:
        nonlocal calls
        while True:
            estimate = await part.take(1, waited)
            if isinstance(estimate, Refusal):
                assert estimate.reason == "max_usd_a_day"
                return
            await asyncio.sleep(0.005)
            part.settle(estimate, [Usage(usd=0.02)])
            calls += 1

    await asyncio.gather(*(spend(part) for part in parts for _ in range(4)))
    assert 500 <= calls <= 501
    assert asked < 0.5 * calls
    for part in parts:
        await part.close()


async def test_one_who_gives_up_leaves_nothing_set_aside() -> None:
    part = Allowance(1.0, lambda: 0, nothing_since, MemoryStore(), "ann")
    gives_up = asyncio.create_task(part.take(1, waited))
    await asyncio.sleep(0)
    gives_up.cancel()
    await asyncio.gather(gives_up, return_exceptions=True)
    # Nothing is known of what a call takes: one goes at a time.
    assert isinstance(await asyncio.wait_for(part.take(1, waited), 1), Usage)
    await part.close()
