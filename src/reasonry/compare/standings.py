"""Comparing strategies: how sure an accuracy is, and which strategy is worth its price.

Rule 1: an accuracy is given with its interval; strategies whose intervals overlap are not told apart by it.
Rule 2: `right` is about the answer that was given; `any_right` about all that was found: the answer, the candidates of
        a search, the answers that were voted on.
Rule 3: a run without an answer, and an answer nobody could judge, count as not right.
Rule 4: what was right nowhere is not worth its price, however low: it is on no front.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from ..core.budget import Usage


class Trial(Struct, frozen=True, kw_only=True):
    """One run of one strategy on one problem.

    Attributes:
        right: None where the judge could not say.
        any_right: None where it was not looked at.
        usd: None where the price is not known.
    """

    item: str
    problem: str
    strategy: str
    run_id: str
    status: str
    reason: str
    answer: str | None
    right: bool | None
    any_right: bool | None
    calls: int
    rounds: int
    tokens: int
    usd: float | None
    seconds: float
    ran: str = ""
    """The strategy that ran, where `auto` chose it."""
    code: str | None = None
    """What the world did, where there is no answer, or no verdict, because of it."""
    detail: str = ""
    """Why the run ended so, for people."""

    @property
    def verdict(self) -> str:
        """What came of it, in a few words."""
        verdict = {True: "right", False: "wrong", None: "not judged"}[self.right]
        return f"no answer · {self.why_no_answer}" if self.answer is None else f"{verdict} · {self.answer}"

    @property
    def why_no_answer(self) -> str:
        """Why there is no answer: the reason the run ended for, and what is known about it."""
        reasons = [] if self.reason == "error" and (self.code or self.detail) else [self.reason]
        reasons += [self.code] if self.code and self.code != self.reason else []
        return ": ".join([", ".join(reasons), *([self.detail] if self.detail else [])]).removeprefix(": ")


class Standing(Struct, frozen=True, kw_only=True):
    """What a strategy did over all its runs; means are per run.

    Attributes:
        low: Lower end of the accuracy's 95 % interval.
        unjudged: Answers the judge could not say anything about; they count as not right.
        failed: Runs without an answer.
        any_accuracy: Part of the problems for which anything found was right; None where it was not looked at.
        front: Whether it was right at least once, and no other strategy is both at least as accurate and at least as
            cheap, and better in one.
    """

    strategy: str
    runs: int
    right: int
    accuracy: float
    low: float
    high: float
    any_accuracy: float | None
    unjudged: int
    failed: int
    calls: float
    rounds: float
    tokens: float
    usd: float | None
    seconds: float
    front_by_usd: bool | None = None
    front_by_calls: bool = False


class Report(Struct, frozen=True, kw_only=True):
    """What came of a comparison.

    Attributes:
        wanted: How many runs it takes.
        reused: How many of them were there before.
        spent: By this call alone, judging included, and what was cut off in flight.
    """

    standings: list[Standing]
    trials: list[Trial]
    wanted: int
    reused: int
    spent: Usage

    @property
    def complete(self) -> bool:
        """Whether every strategy has been run on every problem."""
        return len(self.trials) == self.wanted

    def document(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the report as one JSON document.

        Args:
            facts: What was compared; see `Comparison.facts`.
        """
        return {
            **facts,
            "complete": self.complete,
            "runs": {"wanted": self.wanted, "there": len(self.trials), "reused": self.reused},
            "spent": to_builtins(self.spent),
            "strategies": [to_builtins(standing) for standing in self.standings],
            "findings": describe_ties(self.standings),
            "trials": [{**to_builtins(trial), "why": trial.why_no_answer} for trial in self.trials],
        }


def wilson(right: int, runs: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the score interval of a proportion (Wilson 1927), which stays within 0 and 1 and is never empty.

    Args:
        z: Quantile of the normal distribution; the default is that of 95 %.
    """
    if runs == 0:
        return 0.0, 1.0
    share, spread = right / runs, z * z / runs
    middle = (share + spread / 2) / (1 + spread)
    half = z * sqrt(share * (1 - share) / runs + spread / (4 * runs)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def pareto_front(points: Sequence[tuple[float, float]]) -> set[int]:
    """Return the positions of the points (cost, gain) that no other point beats.

    One point beats another if it costs no more and gains no less, and one of both strictly.
    """
    return {
        at
        for at, (cost, gain) in enumerate(points)
        if not any(c <= cost and g >= gain and (c, g) != (cost, gain) for c, g in points)
    }


def standings(trials: Iterable[Trial], strategies: Sequence[str]) -> list[Standing]:
    """Return how the strategies stand, in the order given; one without runs is left out."""
    by_strategy: dict[str, list[Trial]] = {name: [] for name in strategies}
    for trial in trials:
        by_strategy[trial.strategy].append(trial)
    rows = [_standing(name, runs) for name, runs in by_strategy.items() if runs]
    # Where nothing costs dollars, calls tell what is cheap.
    priced = all(row.usd is not None for row in rows) and any(row.usd for row in rows)
    by_usd = _front(rows, [row.usd or 0.0 for row in rows]) if priced else set[int]()
    by_calls = _front(rows, [row.calls for row in rows])
    return [
        replace(row, front_by_usd=at in by_usd if priced else None, front_by_calls=at in by_calls)
        for at, row in enumerate(rows)
    ]


def _front(rows: Sequence[Standing], costs: Sequence[float]) -> set[int]:
    """Return the positions of the rows on the front; rule 4."""
    right = [at for at, row in enumerate(rows) if row.right]
    return {right[at] for at in pareto_front([(costs[at], rows[at].accuracy) for at in right])}


def describe_ties(rows: Sequence[Standing]) -> list[str]:
    """Return the strategies that the figures do not tell apart: equal rows, and accuracies whose intervals overlap."""
    sentences: list[str] = []
    by_price = all(row.front_by_usd is not None for row in rows)
    groups: dict[tuple[float, float], list[str]] = {}
    for row in rows:
        if row.front_by_usd if by_price else row.front_by_calls:
            cost = (row.usd or 0.0) if by_price else row.calls
            groups.setdefault((row.accuracy, cost), []).append(row.strategy)
    sentences += [
        f"{' and '.join(names)} tie: equally accurate and equally cheap"
        for names in groups.values()
        if len(names) > 1
    ]
    best = max(rows, key=lambda row: row.accuracy, default=None)
    if best is None or not best.right:
        return ["no answer was right, so there is no frontier"] if rows else []
    close = [row.strategy for row in rows if row is not best and row.right and row.high >= best.low]
    if close:
        count = f"{best.runs} problem{'' if best.runs == 1 else 's'}"
        names = f"{', '.join([best.strategy, *close[:-1]])} and {close[-1]}"
        sentences.append(f"{names} cannot be told apart with {count}")
    return sentences


def _standing(name: str, runs: Sequence[Trial]) -> Standing:
    right = sum(run.right is True for run in runs)
    low, high = wilson(right, len(runs))
    found = [run.any_right for run in runs]
    prices = [run.usd for run in runs]
    return Standing(
        strategy=name,
        runs=len(runs),
        right=right,
        accuracy=right / len(runs),
        low=low,
        high=high,
        any_accuracy=None if None in found else sum(map(bool, found)) / len(runs),
        unjudged=sum(run.right is None for run in runs),
        failed=sum(run.answer is None for run in runs),
        calls=_mean(run.calls for run in runs),
        rounds=_mean(run.rounds for run in runs),
        tokens=_mean(run.tokens for run in runs),
        usd=None if None in prices else _mean(price or 0.0 for price in prices),
        seconds=_mean(run.seconds for run in runs),
    )


def _mean(values: Iterable[float]) -> float:
    every = list(values)
    return sum(every) / len(every)
