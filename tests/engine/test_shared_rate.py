"""Rate limits over several processes: together no minute holds more than the limit, whatever becomes of a process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from reasonry.engine import shared_rate
from reasonry.engine.shared_rate import (
    GRACE_MS,
    LONGEST_SLICE_S,
    WINDOW_MS,
    Amount,
    Ceiling,
    SharedRate,
    Slot,
    take,
)
from reasonry.errors import StoreError
from reasonry.records import ShareDecision
from reasonry.stores import open_store
from reasonry.stores.memory import MemoryStore

pytestmark = pytest.mark.anyio

HOLDERS = st.integers(0, 2)
LIFE_MS = 2_000


class Holder:
    """What a process has of a slice, and what it has to give back."""

    def __init__(self) -> None:
        self.left, self.end, self.until_ms = Amount(0, 0), 0, 0
        self.back = dict[int, Amount]()


class SlicesLaw(RuleBasedStateMachine):
    """Holders take, use, settle, give back and die; their clock and the store's go alike."""

    @initialize(requests=st.integers(1, 30), tokens=st.integers(1, 300))
    def begin(self, requests: int, tokens: int) -> None:
        self.ceiling, self.now_ms = Ceiling(requests, tokens), 0
        self.slots: list[Slot] = []
        self.holders = [Holder(), Holder(), Holder()]
        self.sent: list[tuple[int, int]] = []

    @rule(ms=st.sampled_from([1, 100, 900, 1_999, 2_000, 7_000, 59_000, 61_000]))
    def pass_time(self, ms: int) -> None:
        self.now_ms += ms

    @rule(which=HOLDERS, tokens=st.integers(0, 40), calls=st.integers(1, 10))
    def take_slice(self, which: int, tokens: int, calls: int) -> None:
        holder = self.holders[which]
        if any(holder.left):
            there = holder.back.get(holder.end, Amount(0, 0))
            holder.back[holder.end] = Amount(
                there.requests + holder.left.requests, there.tokens + holder.left.tokens
            )
        first, wanted = Amount(1, tokens), Amount(calls, calls * tokens)
        self.slots, taken = take(self.slots, self.now_ms, self.ceiling, first, wanted, LIFE_MS, holder.back)
        assert len(self.slots) <= 1 + WINDOW_MS // 1_000 + LONGEST_SLICE_S
        holder.left, holder.back = Amount(0, 0), {}
        if taken.amount is None:
            assert taken.pause_ms > 0
        else:
            assert all(got >= need for got, need in zip(taken.amount, first, strict=True))
            assert all(
                got <= max(need, most) for got, need, most in zip(taken.amount, first, wanted, strict=True)
            )
            holder.left, holder.end, holder.until_ms = taken.amount, taken.end, self.now_ms + LIFE_MS

    @rule(which=HOLDERS, tokens=st.integers(0, 40))
    def send(self, which: int, tokens: int) -> None:
        holder = self.holders[which]
        if self.now_ms < holder.until_ms and holder.left.requests >= 1 and holder.left.tokens >= tokens:
            holder.left = Amount(holder.left.requests - 1, holder.left.tokens - tokens)
            self.sent.append((self.now_ms, tokens))

    @rule(which=HOLDERS)
    def die(self, which: int) -> None:
        self.holders[which] = Holder()

    @invariant()
    def no_minute_holds_more(self) -> None:
        if not hasattr(self, "sent"):
            return
        minute = [tokens for at_ms, tokens in self.sent if at_ms > self.now_ms - WINDOW_MS]
        assert len(minute) <= (self.ceiling.requests or 0)
        # One larger than the whole limit goes out alone.
        assert sum(minute) <= (self.ceiling.tokens or 0) or len([each for each in minute if each]) == 1


SlicesLaw.TestCase.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
test_no_minute_holds_more_than_the_limit = SlicesLaw.TestCase


def test_what_the_dead_have_taken_is_there_again_after_a_minute() -> None:
    ceiling, all_of_it = Ceiling(4, None), Amount(4, 0)
    slots, first = take([], 0, ceiling, Amount(1, 0), all_of_it, LIFE_MS)
    slots, second = take(slots, 10, ceiling, Amount(1, 0), all_of_it, LIFE_MS)
    slots, third = take(slots, 20, ceiling, Amount(1, 0), all_of_it, LIFE_MS)
    assert [each.amount and each.amount.requests for each in (first, second, third)] == [2, 1, 1]
    slots, none_left = take(slots, 30, ceiling, Amount(1, 0), all_of_it, LIFE_MS)
    assert none_left.amount is None
    free_ms = 30 + none_left.pause_ms
    assert WINDOW_MS + LIFE_MS <= free_ms <= WINDOW_MS + LIFE_MS + 2 * GRACE_MS
    slots, again = take(slots, free_ms + 1_000, ceiling, Amount(1, 0), all_of_it, LIFE_MS)
    assert again.amount == Amount(2, 0)


def test_after_another_start_of_the_computer_what_counts_is_over_within_its_minute() -> None:
    slots, taken = take([Slot(10**9, 5, 0)], 1_000, Ceiling(5, None), Amount(1, 0), Amount(1, 0), LIFE_MS)
    assert taken.amount is None
    assert taken.pause_ms <= WINDOW_MS + LONGEST_SLICE_S * 1_000 + 2 * GRACE_MS
    assert take(slots, 1_000 + taken.pause_ms, Ceiling(5, None), Amount(1, 0), Amount(1, 0), LIFE_MS)[
        1
    ].amount


# -- over a real store, with a minute of a third of a second


@pytest.fixture
def short_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("WINDOW_MS", 300),
        ("SLOT_MS", 20),
        ("GRACE_MS", 20),
        ("SLICE_S", 0.05),
        ("EVERY_S", 0.005),
    ):
        monkeypatch.setattr(shared_rate, name, value)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def parts(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[SharedRate]]:
    """Parts of two processes in a limit of 6 calls."""
    names = {"memory": "memory", "sqlite": f"sqlite:{tmp_path / 'store.db'}"}
    name = names.get(request.param) or request.getfixturevalue("postgres_url")
    first = open_store(name)
    second = first if name == "memory" else open_store(name)
    yield [SharedRate(store, "rate:x", Ceiling(6, None)) for store in (first, second)]
    await first.close()
    await second.close()


@pytest.mark.usefixtures("short_minute")
async def test_two_processes_keep_the_limit_together(parts: list[SharedRate]) -> None:
    went = dict[int, list[float]]({0: [], 1: []})

    async def call(which: int) -> None:
        await parts[which].wait(1)
        went[which].append(time.monotonic())

    await asyncio.gather(*(call(number % 2) for number in range(12)))
    both = sorted(went[0] + went[1])
    assert max(sum(start <= one < start + 0.29 for one in both) for start in both) <= 6
    assert min(map(len, went.values())) == 6


@pytest.mark.usefixtures("short_minute")
async def test_what_was_not_used_is_given_back(parts: list[SharedRate]) -> None:
    first, second = parts
    # Several that wait at once are given several; all but one of them give up.
    waiting = [asyncio.create_task(first.wait(1)) for _ in range(3)]
    await waiting[0]
    began = time.monotonic()
    await first.close()
    for _ in range(2):
        await asyncio.wait_for(second.wait(1), 5)
    assert time.monotonic() - began < 0.25
    await asyncio.gather(*waiting)


async def test_a_store_that_does_not_answer_lets_nothing_out_and_tells_all_who_wait() -> None:
    class Silent(MemoryStore):
        asked = 0

        async def share(self, name: str, decide: ShareDecision[object]) -> object:
            Silent.asked += 1
            await asyncio.sleep(0.05)
            raise StoreError("it does not answer", code="store_unavailable")

    part = SharedRate(Silent(), "rate:x", Ceiling(6, None))
    found = await asyncio.gather(*(part.wait(1) for _ in range(20)), return_exceptions=True)
    assert {type(each) for each in found} == {StoreError}
    assert Silent.asked == 1


async def test_the_store_is_asked_a_few_times_a_second_and_not_for_each_call() -> None:
    asked = 0

    class Counting(MemoryStore):
        async def share(self, name: str, decide: ShareDecision[object]) -> object:
            nonlocal asked
            asked += 1
            return await super().share(name, decide)

    part = SharedRate(Counting(), "rate:x", Ceiling(60_000, 10**9))
    for _ in range(300):
        sent = await part.wait(10)
        part.settle(sent, 12)
    assert asked <= 12
    await part.close()
