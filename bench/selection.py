"""Selection: how often each rule finds the right one among planted drafts, and what it takes.

    uv run python bench/selection.py [--problems 150]

N drafts are planted for each problem; only problems with right and wrong drafts among them count. A judge rates from
1 to 10: 7 for a right draft and 5 for a wrong one, with a lasting bias N(0, 1) for each text, noise N(0, 1.5) for each
call, and 0.4 more for the draft shown first. That is a model of a judge: it ranks the rules, and says nothing of a
certain language model. `best_of_n` is played through the machine as it is; beside it are the published rules: V1-Infer
(arXiv:2603.04304) with as many comparisons, one listwise question, and the majority, which needs no judge. In the first
table of each size every draft is another text; in the second, right drafts agree, and wrong ones fall on five answers.
Target: pairs and knock-out are right as often as V1 at their calls and as the list, within 4 points, pairs in fewer
rounds than V1; drafts that agree take fewer calls, and leave no rule below the majority.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

sys.path.append(str(Path(__file__).parents[1]))

from reasonry.core.effects import Ask, Verify
from reasonry.core.events import Answered, Event, Verified
from reasonry.core.machine import Pending, advance, begin, open_effects
from reasonry.reading.vote import tally
from reasonry.strategies import STRATEGIES

PROBLEM = "Which answer is right?"


class Drafts(NamedTuple):
    """The drafts of one problem; the right ones begin with "right"."""

    number: int
    texts: tuple[str, ...]


class Took(NamedTuple):
    """What a rule chose, and what it took besides the drafts."""

    answer: str
    calls: int
    rounds: int


def planted(number: int, size: int, share: float, agree: bool) -> Drafts | None:
    """Return the drafts of a problem, if there are both kinds."""
    rng = random.Random(f"{number} {size} {share}")
    kinds = [rng.random() < share for _ in range(size)]
    if all(kinds) or not any(kinds):
        return None
    rivals = [rng.randrange(5) if agree else place for place in range(size)]
    texts = [
        "right" if kind and agree else f"right {'a' * (place + 1)}" if kind else f"wrong {'b' * (rival + 1)}"
        for place, (kind, rival) in enumerate(zip(kinds, rivals, strict=True))
    ]
    return Drafts(number, tuple(texts))


class Judge:
    """Rates drafts of one problem."""

    def __init__(self, number: int) -> None:
        self.number, self.calls = number, 0

    def rate(self, texts: Sequence[str]) -> list[int]:
        """Return the ratings of drafts that are shown together."""
        self.calls += 1
        rng = random.Random(f"call {self.number} {self.calls}")
        values: list[int] = []
        for place, text in enumerate(texts):
            lasting = random.Random(f"bias {self.number} {text}").gauss(0, 1)
            quality = (7 if text.startswith("right") else 5) + lasting + rng.gauss(0, 1.5)
            values.append(max(1, min(10, round(quality + (0.4 if place == 0 and len(texts) > 1 else 0)))))
        return values


class Mind:
    """Hands out the planted drafts, and rates."""

    def __init__(self, drafts: Drafts) -> None:
        self.drafts, self.judge = drafts, Judge(drafts.number)

    def answer(self, waiting: Pending) -> Event:
        effect = waiting.effect
        if isinstance(effect, Verify):
            return Verified("unknown")
        assert isinstance(effect, Ask)
        if "labels" not in effect.facts:
            place = int(waiting.id.partition("/")[0].removeprefix("e")) - 1
            return Answered(json.dumps({"answer": self.drafts.texts[place]}))
        texts = [self.drafts.texts[number - 1] for number in effect.facts["candidates"]]
        ratings = dict(zip(effect.facts["labels"], self.judge.rate(texts), strict=True))
        return Answered(json.dumps({"reason": "traced", "ratings": ratings}))


def best_of_n(drafts: Drafts, **options: Any) -> Took:
    """Play the strategy."""
    mind, strategy = Mind(drafts), STRATEGIES["best_of_n"]
    read = msgspec.convert({"n": len(drafts.texts), **options}, strategy.options)
    step = begin(strategy, PROBLEM, read, strategies=STRATEGIES)
    while waiting := open_effects(step.snapshot):
        step = advance(strategy, step.snapshot, waiting[0].id, mind.answer(waiting[0]), strategies=STRATEGIES)
    assert step.snapshot.conclusion is not None
    return Took(step.snapshot.conclusion.answer or "", mind.judge.calls, step.snapshot.rounds - 1)


def majority(drafts: Drafts) -> Took:
    """Take the answer with the most votes."""
    return Took(tally(drafts.texts)[0].answer, 0, 0)


def v1(drafts: Drafts, budget: int) -> Took:
    """V1-Infer: cover every draft twice, then compare neighbours in the ranking, as often as the budget allows."""
    judge, size, rounds = Judge(drafts.number), len(drafts.texts), 0
    won, weight, seen = [0.0] * size, [0.0] * size, dict[tuple[int, int], int]()

    def mean(at: int) -> float:
        return won[at] / weight[at] if weight[at] else 0.5

    def compare(first: int, second: int) -> None:
        one, other = judge.rate([drafts.texts[first], drafts.texts[second]])
        value, counts = (one > other) + (one == other) / 2, max(abs(one - other) / 9, 0.1)
        for at, part in ((first, value), (second, 1 - value)):
            won[at] += counts * part
            weight[at] += counts
        pair = (min(first, second), max(first, second))
        seen[pair] = seen.get(pair, 0) + 1

    while judge.calls < budget:
        rounds += 1
        free, pairs = set(range(size)), list[tuple[int, int]]()
        degree = [sum(at in pair for pair in seen) for at in range(size)]
        covering = min(degree) < 2
        while len(free) > 1 and len(pairs) + judge.calls < budget:
            options = [(a, b) for a in free for b in free if a < b]
            pairs.append(
                min(
                    options,
                    key=lambda pair: (
                        min(degree[pair[0]], degree[pair[1]]) if covering else 0,
                        abs(mean(pair[0]) - mean(pair[1])) + seen.get(pair, 0),
                    ),
                )
            )
            free -= set(pairs[-1])
        for pair in pairs:
            compare(*pair)
    return Took(drafts.texts[max(range(size), key=mean)], judge.calls, rounds)


Rule = Callable[[Drafts], Took]


def rows(size: int) -> dict[str, Rule]:
    """Return the rules that are compared for so many drafts."""
    return {
        "majority": majority,
        "best_of_n judge=list": lambda drafts: best_of_n(drafts, judge="list"),
        "best_of_n judge=points": lambda drafts: best_of_n(drafts, judge="points"),
        "best_of_n judge=pairs": lambda drafts: best_of_n(drafts, judge="pairs"),
        "V1, as many comparisons": lambda drafts: v1(drafts, best_of_n(drafts, judge="pairs").calls),
        "best_of_n judge=knockout": lambda drafts: best_of_n(drafts, judge="knockout"),
        "V1, 2N": lambda drafts: v1(drafts, 2 * size),
    }


def table(problems: int, size: int, share: float, agree: bool) -> dict[str, tuple[float, float, float]]:
    """Print a row for each rule: share right, calls of the judge and rounds, as means."""
    found = [drafts for number in range(problems) if (drafts := planted(number, size, share, agree))]
    print(f"\nN = {size}, {share:.0%} right, {'answers that agree' if agree else 'all texts differ'}")
    print(f"{'':<26} {'right':>6} {'calls':>6} {'rounds':>7}   ({len(found)} problems)")
    means: dict[str, tuple[float, float, float]] = {}
    for name, rule in rows(size).items():
        took = [rule(drafts) for drafts in found]
        right = statistics.mean(each.answer.startswith("right") for each in took)
        calls, rounds = (
            statistics.mean(each.calls for each in took),
            statistics.mean(each.rounds for each in took),
        )
        means[name] = (right, calls, rounds)
        print(f"{name:<26} {right:6.3f} {calls:6.1f} {rounds:7.1f}")
    return means


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=150)
    problems = parser.parse_args().problems
    good = True
    for size, share in ((5, 0.2), (8, 0.5)):
        differ, agree = table(problems, size, share, False), table(problems, size, share, True)
        pairs, v1_same = differ["best_of_n judge=pairs"], differ["V1, as many comparisons"]
        knockout, listed = differ["best_of_n judge=knockout"], differ["best_of_n judge=list"]
        good &= pairs[0] >= v1_same[0] - 0.04 and pairs[2] < v1_same[2]
        good &= min(pairs[0], knockout[0]) >= listed[0] - 0.04
        voted, judged = agree["majority"], agree["best_of_n judge=pairs"]
        good &= judged[1] < pairs[1] and judged[0] >= voted[0] - 0.04
    print("\ntarget met" if good else "\nTARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
