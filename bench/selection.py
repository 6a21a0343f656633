"""Selection: how often each rule finds the right one among N drafts, at how many calls and in how many rounds.

    uv run python bench/selection.py [--problems 150] [--puzzles 100] [--growth 0 0.5]

Planted drafts: a draft is one call. A judge rates from 1 to 10: 7 for a right draft and 5 for a wrong one, with a
lasting bias N(0, 1) for each text, noise N(0, 1.5) for each call, and 0.4 more for the draft shown first. In the first
table of each size every draft is another text; in the second, right drafts agree, and wrong ones fall on five answers.
The noisy brain of `brains.py`: a draft is a walk to 24 that takes the best of the moves proposed, twelve calls in which
it slips once in five times, and so does its judge, which rates 8 for a right answer and 3 for a wrong one, or the other
way round. Only problems with right and wrong drafts among them count.

Nobody knows how a judge's error grows with the number of texts in a question, and this decides between lists and pairs.
So every table is there for each growth g: the noise is (texts / 2) ** g times that over two texts (a slip likewise, as
the tail of a normal distribution). With 0 a judge errs as little over eight texts as over two, which favours lists;
with 0.5 a question tells as much whatever the number of texts; with 1 a long list tells less than a pair. All are
models of a judge: they rank the rules, and say nothing of a certain language model.

`best_of_n` and `council` are played through the machine as they are. Beside them are the published rules, each with as
many calls as `best_of_n` by default took for the same problem, drafts included: V1-Infer (arXiv:2603.04304), one
listwise question put again and again in other orders (arXiv:2311.17311), and the majority of so many more drafts.
`right` has its 95 % interval; of two rows, `won` and `lost` say more: the problems that only this row, or only the
default, got right.
Target, with 0 and 0.5: in every table the default is right no less often than V1, which compares pairs, the lists and
the majority of the N but for chance (McNemar, 95 %); if all texts differ, in fewer rounds than V1. Drafts that agree
take fewer calls. The majority of more drafts does not choose among the N: it is told where it is better, and this is
`self_consistency`.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import msgspec

sys.path.append(str(Path(__file__).parents[1]))

from brains import noisy_player
from game24 import DEPTH, SAMPLES, TARGET, WIDTH, problem, puzzles
from loopback import ChatRequest

from reasonry.blocks.reply import read_reply
from reasonry.core.effects import Ask, Verify
from reasonry.core.events import Answered, Event, Verified
from reasonry.core.machine import Pending, Step, advance, begin, open_effects
from reasonry.puzzles.steps import follow
from reasonry.puzzles.term import Puzzle
from reasonry.reading.vote import tally
from reasonry.strategies import STRATEGIES
from tests.servers.game24 import check

PROBLEM = "Which answer is right?"
MORE = 40
"""Further drafts of a problem, for a majority at equal calls."""
CALLS_A_WALK = DEPTH * (1 + SAMPLES)


class Drafts(NamedTuple):
    """The drafts of one problem, what each took, and how a judge rates a text in a place with its noise."""

    number: int
    size: int
    texts: tuple[str, ...]
    right: frozenset[str]
    rate: Callable[[str, int, float, random.Random], float]
    calls: int = 1
    rounds: int = 1
    growth: float = 0.0


class Took(NamedTuple):
    """What a rule chose, and what it took, drafts included."""

    answer: str
    calls: int
    rounds: int


def planted(number: int, size: int, share: float, agree: bool) -> Drafts | None:
    """Return the planted drafts of a problem, if there are both kinds."""
    rng = random.Random(f"{number} {size} {share}")
    kinds = [rng.random() < share for _ in range(size + MORE)]
    rivals = [rng.randrange(5) if agree else place for place in range(size + MORE)]
    texts = tuple(
        "right" if kind and agree else f"right {'a' * (place + 1)}" if kind else f"wrong {'b' * (rival + 1)}"
        for place, (kind, rival) in enumerate(zip(kinds, rivals, strict=True))
    )
    right = frozenset(text for text in texts if text.startswith("right"))

    def rate(text: str, place: int, noise: float, rng: random.Random) -> float:
        lasting = random.Random(f"bias {number} {text}").gauss(0, 1)
        return (7 if text in right else 5) + lasting + rng.gauss(0, 1.5 * noise) + (0.4 if place == 0 else 0)

    return _of_both_kinds(Drafts(number, size, texts, right, rate))


def _of_both_kinds(drafts: Drafts) -> Drafts | None:
    kinds = {text in drafts.right for text in drafts.texts[: drafts.size]}
    return drafts if len(kinds) == 2 else None


def walked(number: int, numbers: tuple[int, ...], size: int) -> Drafts | None:
    """Return the answers of the noisy brain to a puzzle, if there are both kinds."""
    texts = tuple(_walk(numbers, sample) for sample in range(size + MORE // CALLS_A_WALK))
    puzzle = Puzzle(tuple(map(Fraction, numbers)), TARGET)
    right = frozenset(text for text in texts if check(text, puzzle)[0])

    def rate(text: str, place: int, noise: float, rng: random.Random) -> float:
        slips = NormalDist().cdf(NormalDist().inv_cdf(noisy_player.noise) / noise)
        return 8 if (text in right) != (rng.random() < slips) else 3

    return _of_both_kinds(Drafts(number, size, texts, right, rate, CALLS_A_WALK, CALLS_A_WALK))


def _walk(numbers: tuple[int, ...], sample: int) -> str:
    """Propose moves, value them and take the best, again and again; return what came of it, right or wrong."""
    lines = [problem(numbers)]

    def ask(form: str, shown: Sequence[str], draw: int = 0) -> Any:
        prompt, wanted = "\n".join([*lines, *shown]), {"properties": {form: {}}}
        return noisy_player(ChatRequest(prompt, "", wanted, 1, sample * SAMPLES + draw, {}))[form]

    for _ in range(DEPTH):
        thoughts = ask("thoughts", ())[:WIDTH]
        listed = [f"{at}. {thought}" for at, thought in enumerate(thoughts, 1)]
        votes = [ask("scores", listed, draw) for draw in range(SAMPLES)]
        best = max(range(len(thoughts)), key=lambda at: sum(vote[str(at + 1)] for vote in votes))
        lines.append(thoughts[best])
    left = follow(Puzzle(tuple(map(Fraction, numbers)), TARGET), lines[1:]).left
    return ", ".join(term.equation for term in left)


def play(name: str, problem: str, options: Mapping[str, Any], say: Callable[[Pending], Event]) -> Step:
    """Play a strategy through the machine."""
    strategy = STRATEGIES[name]
    step = begin(strategy, problem, msgspec.convert(options, strategy.options), strategies=STRATEGIES)
    while waiting := open_effects(step.snapshot):
        event = say(waiting[0])
        step = advance(strategy, step.snapshot, waiting[0].id, event, strategies=STRATEGIES, read=read_reply)
    return step


class Judge:
    """Rates drafts of one problem."""

    def __init__(self, drafts: Drafts) -> None:
        self.drafts, self.calls = drafts, 0

    def rate(self, texts: Sequence[str]) -> list[int]:
        """Return the ratings of drafts that are shown together."""
        self.calls += 1
        rng = random.Random(f"call {self.drafts.number} {self.calls}")
        alone, noise = len(texts) == 1, (max(2, len(texts)) / 2) ** self.drafts.growth
        values = (self.drafts.rate(text, place or alone, noise, rng) for place, text in enumerate(texts))
        return [max(1, min(10, round(value))) for value in values]


@cache
def ours(drafts: Drafts, name: str = "best_of_n", **options: Any) -> Took:
    """Play a strategy over the drafts."""
    judge = Judge(drafts)

    def say(waiting: Pending) -> Event:
        effect = waiting.effect
        if isinstance(effect, Verify):
            return Verified("unknown")
        assert isinstance(effect, Ask)
        if "labels" not in effect.facts:
            place = int(waiting.id.partition("/")[0].removeprefix("e")) - 1
            return Answered(json.dumps({"answer": drafts.texts[place]}))
        ratings = judge.rate([drafts.texts[number - 1] for number in effect.facts["candidates"]])
        rated = dict(zip(effect.facts["labels"], ratings, strict=True))
        return Answered(json.dumps({"reason": "traced", "ratings": rated}))

    end = play(name, PROBLEM, options, say).snapshot
    assert end.conclusion is not None
    calls, rounds = drafts.size * drafts.calls + judge.calls, drafts.rounds + end.rounds - 1
    return Took(end.conclusion.answer or "", calls, rounds)


def default(drafts: Drafts) -> Took:
    """Play best of N as it is: the row whose calls the published rules are given."""
    return ours(drafts, n=drafts.size)


def _left_for_judging(drafts: Drafts) -> int:
    return default(drafts).calls - drafts.size * drafts.calls


def majority(drafts: Drafts, *, of_all: bool) -> Took:
    """Take the answer with the most votes, of the N drafts or of as many as the calls of the default allow."""
    drawn = default(drafts).calls // drafts.calls if of_all else drafts.size
    votes = tally(drafts.texts[:drawn])
    return Took(votes[0].answer, len(drafts.texts[:drawn]) * drafts.calls, drafts.rounds)


def lists(drafts: Drafts) -> Took:
    """Put one listwise question as often as the calls of the default allow, in other orders; take the best mean."""
    judge, texts = Judge(drafts), drafts.texts[: drafts.size]
    sums, budget = dict.fromkeys(range(drafts.size), 0), max(1, _left_for_judging(drafts))
    for _ in range(budget):
        order = random.Random(f"order {drafts.number} {judge.calls}").sample(range(drafts.size), drafts.size)
        for at, rating in zip(order, judge.rate([texts[at] for at in order]), strict=True):
            sums[at] += rating
    best = max(sums, key=lambda at: sums[at])
    return Took(texts[best], drafts.size * drafts.calls + budget, drafts.rounds + 1)


def v1(drafts: Drafts) -> Took:
    """V1-Infer: cover every draft twice, then compare neighbours in the ranking, as often as the calls allow."""
    judge, size, rounds = Judge(drafts), drafts.size, 0
    budget = max(1, _left_for_judging(drafts))
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
        free, chosen = set(range(size)), list[tuple[int, int]]()
        degree = [sum(at in pair for pair in seen) for at in range(size)]
        covering = min(degree) < 2
        while len(free) > 1 and len(chosen) + judge.calls < budget:
            options = [(a, b) for a in free for b in free if a < b]
            chosen.append(
                min(
                    options,
                    key=lambda pair: (
                        min(degree[pair[0]], degree[pair[1]]) if covering else 0,
                        abs(mean(pair[0]) - mean(pair[1])) + seen.get(pair, 0),
                    ),
                )
            )
            free -= set(chosen[-1])
        for pair in chosen:
            compare(*pair)
    best = max(range(size), key=mean)
    return Took(drafts.texts[best], drafts.size * drafts.calls + judge.calls, drafts.rounds + rounds)


V1, LISTS, ALL, DEFAULT = (
    "V1, as many calls",
    "lists, as many calls",
    "majority, as many calls",
    "best_of_n",
)
FIRST, VOTED = "the first draft", "majority of the N"
RULES: dict[str, Callable[[Drafts], Took]] = {
    FIRST: lambda drafts: Took(drafts.texts[0], drafts.calls, drafts.rounds),
    VOTED: lambda drafts: majority(drafts, of_all=False),
    ALL: lambda drafts: majority(drafts, of_all=True),
    LISTS: lists,
    V1: v1,
    DEFAULT: default,
    "best_of_n judge=points": lambda drafts: ours(drafts, n=drafts.size, judge="points"),
    "council, best ranked": lambda drafts: ours(drafts, "council", seats=drafts.size, synthesis=False),
}


class Row(NamedTuple):
    """What a rule took for each problem of a table, and for which it was right."""

    took: list[Took]
    right: list[bool]

    @property
    def calls(self) -> float:
        """Mean calls."""
        return statistics.mean(each.calls for each in self.took)

    @property
    def rounds(self) -> float:
        """Mean rounds."""
        return statistics.mean(each.rounds for each in self.took)

    def won_and_lost(self, other: Row) -> tuple[int, int]:
        """Return how many problems only this row, and how many only the other one, got right."""
        both = list(zip(self.right, other.right, strict=True))
        return sum(a and not b for a, b in both), sum(b and not a for a, b in both)

    def is_no_worse(self, other: Row) -> bool:
        """Whether it is right no less often than another row, or by no more than chance explains."""
        won, lost = self.won_and_lost(other)
        return lost - won <= 1.96 * (won + lost) ** 0.5


def table(title: str, found: Sequence[Drafts]) -> dict[str, Row]:
    """Print a row for each rule."""
    print(f"\n{title} ({len(found)} problems, error growth {found[0].growth})")
    print(f"{'':<26} {'right':>5} {'±':>5} {'calls':>6} {'rounds':>7} {'won':>5} {'lost':>5}")
    rows: dict[str, Row] = {}
    for name, rule in RULES.items():
        took = [rule(drafts) for drafts in found]
        right = [each.answer in drafts.right for each, drafts in zip(took, found, strict=True)]
        rows[name] = Row(took, right)
    for name, row in rows.items():
        share = statistics.mean(row.right)
        error = 1.96 * (share * (1 - share) / len(found)) ** 0.5
        won, lost = row.won_and_lost(rows[DEFAULT])
        print(f"{name:<26} {share:5.2f} {error:5.2f} {row.calls:6.1f} {row.rounds:7.1f} {won:5} {lost:5}")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=150)
    parser.add_argument("--puzzles", type=int, default=100)
    parser.add_argument("--growth", type=float, nargs="+", default=[0, 0.5])
    given = parser.parse_args()
    good = True
    for growth in given.growth:
        tables: list[dict[str, Row]] = []
        for size, share in ((5, 0.2), (8, 0.5)):
            for agree in (False, True):
                found = (planted(number, size, share, agree) for number in range(given.problems))
                kind = "answers agree" if agree else "all texts differ"
                title = f"planted, N = {size}, {share:.0%} right, {kind}"
                tables.append(table(title, [each._replace(growth=growth) for each in found if each]))
            apart, together = tables[-2:]
            good &= apart[DEFAULT].rounds < apart[V1].rounds
            good &= together[DEFAULT].calls < apart[DEFAULT].calls
        games = (walked(number, numbers, 5) for number, numbers in enumerate(puzzles(given.puzzles)))
        found = [each._replace(growth=growth) for each in games if each]
        tables.append(table("noisy brain, game of 24, N = 5", found))
        for rows in tables:
            rivals = (V1, LISTS, VOTED, ALL)
            lost = [name for name in rivals if not rows[DEFAULT].is_no_worse(rows[name])]
            print("worse than:", "; ".join(lost) or "none")
            good &= growth > 0.5 or {*lost} <= {ALL}
    print("\ntarget met" if good else "\nTARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
