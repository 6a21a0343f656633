"""Figures of a comparison: intervals, tests, fronts, standings."""

from math import comb
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reasonry.compare.standings import (
    Standing,
    Trial,
    cost_of,
    describe_differences,
    describe_gaps,
    pareto_front,
    sign_test,
    standings,
    wilson,
)


def trial(strategy: str, right: bool | None, **settings: Any) -> Trial:
    given: dict[str, Any] = {
        "item": "1",
        "run_id": "r",
        "status": "done",
        "reason": "success",
        "answer": "a",
        "any_right": right,
        "calls": 1,
        "rounds": 1,
        "tokens": 10,
        "usd": 0.1,
        "seconds": 1.0,
    }
    return Trial(strategy=strategy, right=right, **(given | settings))


@pytest.mark.parametrize(
    ("right", "runs", "low", "high"),
    [
        (0, 0, 0.0, 1.0),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (81, 263, 0.2553, 0.3662),
    ],
)
def test_the_interval_is_that_of_the_tables(right: int, runs: int, low: float, high: float) -> None:
    assert wilson(right, runs) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 500).flatmap(lambda runs: st.tuples(st.integers(0, runs), st.just(runs))))
def test_the_interval_holds_the_share_and_mirrors_itself(given: tuple[int, int]) -> None:
    right, runs = given
    low, high = wilson(right, runs)
    assert 0 <= low <= right / runs + 1e-12
    assert right / runs - 1e-12 <= high <= 1
    assert wilson(runs - right, runs) == pytest.approx((1 - high, 1 - low))


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_the_interval_covers_the_truth_about_as_often_as_it_says(share: float) -> None:
    runs = 60
    covered = 0.0
    for right in range(runs + 1):
        low, high = wilson(right, runs)
        if low <= share <= high:
            covered += comb(runs, right) * share**right * (1 - share) ** (runs - right)
    assert 0.92 <= covered <= 0.98


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_every_point_is_on_the_front_or_beaten_by_one_that_is(points: list[tuple[int, int]]) -> None:
    front = pareto_front(points)
    for at, (cost, gain) in enumerate(points):
        beaten = any(
            points[f][0] <= cost and points[f][1] >= gain and points[f] != (cost, gain) for f in front
        )
        assert (at in front) != beaten


def test_standings_are_means_over_all_runs() -> None:
    trials = [
        trial("a", True, calls=2, seconds=1.0),
        trial("a", False, calls=4, seconds=3.0, any_right=True, item="2"),
        trial("b", None, answer=None, usd=None, any_right=False),
    ]
    a, b = standings(trials, ["a", "b", "c"])
    assert (a.runs, a.right, a.accuracy, a.any_accuracy) == (2, 1, 0.5, 1.0)
    assert (a.calls, a.seconds, a.failed, a.unjudged) == (3.0, 2.0, 0, 0)
    assert (b.usd, b.accuracy, b.failed, b.unjudged) == (None, 0.0, 1, 1)


def test_the_front_by_dollars_needs_all_prices() -> None:
    known = [trial("a", True, usd=0.2), trial("b", False, usd=0.1), trial("c", False, usd=0.3)]
    assert [row.front for row in standings(known, "abc")] == [True, False, False]
    assert cost_of(standings(known, "abc")) == "usd"
    unknown = [*known, trial("d", False, usd=None)]
    rows = standings(unknown, "abcd")
    assert cost_of(rows) == "calls"
    assert [row.front for row in rows] == [True, False, False, False]


def test_what_was_right_nowhere_is_on_no_front_however_cheap() -> None:
    rows = standings([trial("a", False, calls=1, usd=0.0), trial("b", True, calls=9, usd=0.9)], "ab")
    assert [row.front for row in rows] == [False, True]
    none = standings([trial("a", False), trial("b", False)], "ab")
    assert not any(row.front for row in none)
    assert describe_differences([], none) == ["no answer was right, so there is no frontier"]


@pytest.mark.parametrize(
    ("won", "lost", "likely"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 0.0625),
        (6, 0, 0.03125),
        (9, 1, 0.021484),
        (8, 2, 0.109375),
        (3, 3, 1.0),
    ],
)
def test_the_sign_test_is_that_of_the_tables(won: int, lost: int, likely: float) -> None:
    assert sign_test(won, lost) == sign_test(lost, won) == pytest.approx(likely, abs=1e-6)


def outcomes(**of: str) -> list[Trial]:
    """Return the trials of strategies on the same problems, a `+` where one is right."""
    return [
        trial(name, mark == "+", item=str(at)) for name, marks in of.items() for at, mark in enumerate(marks)
    ]


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        # The intervals overlap, and six problems that only one solved tell them apart all the same.
        (
            "+" * 16,
            "+" * 10 + "-" * 6,
            "a is better than b: of 16 problems it alone is right on 6, the other alone on 0",
        ),
        ("+" * 16, "+" * 11 + "-" * 5, "a and b cannot be told apart with 16 problems"),
        # As many right answers as above, but on other problems.
        (
            "+" * 13 + "-" * 3,
            "-" * 3 + "+" * 7 + "-" * 3 + "+" * 3,
            "a and b cannot be told apart with 16 problems",
        ),
        ("+", "-", "a and b cannot be told apart with 1 problem"),
    ],
)
def test_strategies_are_told_apart_by_the_problems_that_one_alone_solves(a: str, b: str, said: str) -> None:
    trials = outcomes(a=a, b=b)
    assert describe_differences(trials, standings(trials, "ab")) == [said]


def test_all_that_the_best_is_not_told_apart_from_are_named_together_and_only_shared_problems_count() -> None:
    trials = outcomes(a="+" * 9, b="+" * 8 + "-", c="+" * 7 + "--", d="-" * 9, e="-" * 5)
    assert describe_differences(trials, standings(trials, "abcde")) == [
        "a is better than d: of 9 problems it alone is right on 9, the other alone on 0",
        "a, b, c and e cannot be told apart with 9 problems",
    ]


def test_why_there_is_no_answer_is_the_code_and_what_is_known() -> None:
    refused = replace(trial("a", False), reason="error", code="provider_auth", detail="the key is not valid")
    assert refused.why_no_answer == "provider_auth: the key is not valid"
    assert replace(refused, code=None, detail="").why_no_answer == "error"
    assert replace(refused, reason="max_calls", code=None, detail="").why_no_answer == "max_calls"


def row_of(trials: list[Trial], name: str) -> Standing:
    strategies = dict.fromkeys(each.strategy for each in trials)
    return next(row for row in standings(trials, [*strategies]) if row.strategy == name)


@pytest.mark.parametrize(
    ("direct", "other", "cost", "verdict"),
    [
        ("0000000000", "1111110000", "+60 for 3.5× tokens", "helps this model"),
        ("1111110000", "0000000000", "-60 for 3.5× tokens", "harms this model"),
        ("0000000000", "1111100000", "+50 for 3.5× tokens", "may help this model"),
        ("1111100000", "1111100000", "+0 for 3.5× tokens", "does not help this model"),
    ],
)
def test_a_row_says_what_its_gain_over_the_plain_question_costs(
    direct: str, other: str, cost: str, verdict: str
) -> None:
    pairs = [("direct", direct, 10), ("other", other, 35)]
    trials = [
        trial(name, mark == "1", item=str(at), tokens=tokens)
        for name, marks, tokens in pairs
        for at, mark in enumerate(marks)
    ]
    assert row_of(trials, "direct").gain is None
    gain = row_of(trials, "other").gain
    assert gain is not None
    assert (gain.cost, gain.verdict) == (cost, verdict)
    assert row_of(trials[10:], "other").gain is None


def test_the_seconds_are_those_of_runs_that_had_the_time_to_themselves() -> None:
    def timed(strategy: str, began_at_ms: int, seconds: float) -> Trial:
        name = f"{strategy}{began_at_ms}"
        return trial(strategy, True, item=name, run_id=name, began_at_ms=began_at_ms, seconds=seconds)

    trials = [timed("a", 0, 9.0), timed("b", 1_000, 1.0), timed("c", 8_999, 1.0), timed("d", 9_999, 2.0)]
    assert [row.seconds for row in standings(trials, "abcd")] == [None, None, None, 2.0]
    # Two strategies may share a run.
    same = [trials[3], replace(trials[3], strategy="e")]
    assert [row.seconds for row in standings(same, "de")] == [2.0, 2.0]


def test_first_replies_out_of_form_are_counted_beside_the_table() -> None:
    trials = [
        trial("a", True, item="1", samples=5, asked_again=2, unread=2),
        trial("a", True, item="2", samples=3),
        trial("b", True, samples=1),
    ]
    gaps = [*describe_gaps(trials, standings(trials, "ab"))]
    assert gaps == ["a: 2 of 6 first replies were out of form"]
