"""How long a run takes at best: laws over rounds of questions, however many are performed at once."""

from __future__ import annotations

import heapq

import pytest
from hypothesis import given
from hypothesis import strategies as some

from reasonry.app.wiring import App
from reasonry.engine.policy import Performers, Policy
from reasonry.surfaces.web.find_page import page_of_run
from reasonry.surfaces.web.run_times import Timed, critical_path

from ...engine.playing import STRATEGIES, CountingModel
from ...supervisor.test_watching import order

ROUNDS = some.lists(some.lists(some.integers(1, 500), min_size=1, max_size=12), min_size=1, max_size=8)


def performed(rounds: list[list[int]], places: int, pause_ms: int = 0) -> list[Timed]:
    """Return what a run records that has so many places, waits for each whole round, and rests after it."""
    effects: list[Timed] = []
    now = 0
    for number, latencies in enumerate(rounds):
        free = [now] * places
        settled: list[int] = []
        for place, latency in enumerate(latencies):
            settled.append(heapq.heappop(free) + latency)
            heapq.heappush(free, settled[-1])
            effects.append(Timed(f"{number}.{place}", now, settled[-1]))
        now = max(settled) + pause_ms
    return effects


@given(ROUNDS, some.integers(1, 4), some.sampled_from([0, 7]))
def test_at_best_a_run_takes_the_slowest_of_each_round(
    rounds: list[list[int]], places: int, pause_ms: int
) -> None:
    path = critical_path(performed(rounds, places, pause_ms), places)
    assert path is not None
    assert path.ms == sum(map(max, rounds))
    taken = [rounds[int(name.split(".")[0])][int(name.split(".")[1])] for name in path.effects]
    assert taken == [max(latencies) for latencies in rounds]


@given(some.lists(some.tuples(some.integers(0, 900), some.integers(0, 900)), max_size=30))
def test_it_is_never_longer_than_the_run(spans: list[tuple[int, int]]) -> None:
    effects = [Timed(str(number), at, at + took) for number, (at, took) in enumerate(spans)]
    path = critical_path(effects)
    assert (path is None) == (not effects)
    if path is not None:
        assert 0 <= path.ms <= max(effect.settled_at_ms for effect in effects)
        assert len({*path.effects}) == len(path.effects)


def test_chains_beside_one_another_wait_for_their_own_questions_alone() -> None:
    slow = [Timed("a1", 0, 100), Timed("a2", 100, 200)]
    fast = [Timed("b1", 0, 40), Timed("b2", 40, 70), Timed("b3", 70, 90)]
    path = critical_path([*slow, *fast])
    assert path is not None
    assert (path.ms, path.effects) == (200, ["a1", "a2"])


@pytest.mark.anyio
async def test_a_page_knows_how_many_questions_the_engine_asks_at_once() -> None:
    async with App("memory", Policy(max_concurrency=1), environ={}, strategies=STRATEGIES) as app:
        model = CountingModel(latency_s=0.05)
        run_id = await app.engine.accept(order(steps=1, width=4))
        await app.engine.drive(run_id, Performers(model))
        page = await page_of_run(app, await app.store.run(run_id))
    assert page.critical_path is not None
    assert page.critical_path.ms < 0.75 * (page.duration_ms or 0)
