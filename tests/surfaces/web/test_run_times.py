"""How long a run takes at best: laws over rounds of questions, and over any."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from reasonry.surfaces.web.page import PageCall, PagePath
from reasonry.surfaces.web.run_page import critical_path

ROUNDS = some.lists(some.lists(some.integers(1, 500), min_size=1, max_size=12), min_size=1, max_size=8)


def path_of(*spans: tuple[str, int, int]) -> PagePath | None:
    calls = [
        PageCall(
            id=name,
            node="",
            kind="tool",
            name="",
            stage="",
            text="",
            result=None,
            error=None,
            begun_at_ms=begun,
            ended_at_ms=ended,
        )
        for name, begun, ended in spans
    ]
    return critical_path([], calls)


@given(ROUNDS, some.sampled_from([0, 7]))
def test_at_best_a_run_takes_the_slowest_of_each_round(rounds: list[list[int]], pause_ms: int) -> None:
    spans, now = list[tuple[str, int, int]](), 0
    for number, latencies in enumerate(rounds):
        spans += [(f"{number}.{place}", now, now + latency) for place, latency in enumerate(latencies)]
        now += max(latencies) + pause_ms
    path = path_of(*spans)
    assert path is not None
    assert path.ms == sum(map(max, rounds))
    taken = [rounds[int(name.split(".")[0])][int(name.split(".")[1])] for name in path.effects]
    assert taken == [max(latencies) for latencies in rounds]


@given(some.lists(some.tuples(some.integers(0, 900), some.integers(0, 900)), max_size=30))
def test_it_is_never_longer_than_the_run(spans: list[tuple[int, int]]) -> None:
    path = path_of(*((str(number), at, at + took) for number, (at, took) in enumerate(spans)))
    assert (path is None) == (not spans)
    if path is not None:
        assert 0 <= path.ms <= max(at + took for at, took in spans)
        assert len({*path.effects}) == len(path.effects)


def test_chains_beside_one_another_wait_for_their_own_questions_alone() -> None:
    slow = [("a1", 0, 100), ("a2", 100, 200)]
    fast = [("b1", 0, 40), ("b2", 40, 70), ("b3", 70, 90)]
    assert path_of(*slow, *fast) == PagePath(ms=200, effects=["a1", "a2"])
