"""Laws of the strategies that choose among several answers: never a refuted one, never less for more budget."""

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.blocks.tournament import MIDDLE
from reasonry.core.effects import Ask, CallTool, Verify
from reasonry.core.events import Answered, Event, ToolReturned, Verified
from reasonry.core.machine import Pending, Snapshot, begin, open_effects
from reasonry.strategies import STRATEGIES

from ..playing import Played, World, play, stop

SELECTING: dict[str, Callable[[int], dict[str, Any]]] = {
    "self_consistency": lambda n: {"samples": n, "stop": "full"},
    "best_of_n": lambda n: {"n": n},
    "refine": lambda n: {"rounds": n, "critique": True, "accept": 10},
    "council": lambda n: {"seats": max(2, n)},
    "program_of_thought": lambda n: {"programs": n},
    "prove_and_refute": lambda n: {"solvers": n, "revisions": 2},
}
"""Strategies, each with the options for n drafts."""

each = pytest.mark.parametrize("name", SELECTING)
seeds = st.integers(0, 10**6)
few = settings(max_examples=30, deadline=None)
WORDS = ("amber", "birch", "cedar", "delta")
TREES = (*WORDS, "ebony", "guava", "hazel", "larch", "maple", "olive")
"""The planted answers, from the worst to the best."""
SOUND = 5
"""The first of them whose proof no reader can refute."""


def spoken(text: str) -> str:
    """Return the answer that a text has, among those of the planted world."""
    return next((word for word in TREES if word in text), "")


@dataclass
class Planted(World):
    """Drafts are planted by seed; the verifier knows what is right, wrong, and neither; a judge rates by chance.

    Readers of proofs show what is wrong, and say by chance of the others that they hold, or nothing. With `taste`, a
    judge prefers the words in their order, on a scale of its own in each reply that compares; readers show what is
    wrong with the first half of them, and whoever writes one answer from several takes the best.
    """

    truth: Mapping[str, Any] = field(default_factory=dict)
    asked: list[Ask] = field(default_factory=list)
    agree: bool = False
    taste: bool = False
    words: tuple[str, ...] = WORDS

    def answer(self, one: Pending) -> Event:
        rng = random.Random(f"{self.seed} {one.id}")
        if isinstance(one.effect, Verify):
            return Verified(self.truth.get(spoken(one.effect.path[-1]), "unknown"))
        if isinstance(one.effect, CallTool):
            word = WORDS[0] if self.agree else rng.choice(self.words)
            return ToolReturned({"status": "ok", "stdout": word})
        assert isinstance(one.effect, Ask)
        self.asked.append(one.effect)
        word = WORDS[0] if self.agree else rng.choice(self.words)
        return Answered(json.dumps(self._reply(one.effect, word, rng)), at_ms=rng.randint(0, 50))

    def _reply(self, ask: Ask, word: str, rng: random.Random) -> Any:
        if ask.facts["kind"] == "program":
            return {"program": "print(find_tree())"}
        if "labels" in ask.facts:
            shown = re.split(r"\n(?:Candidate \w+|Answer):\n\n", ask.prompt)[1:]
            places = [TREES.index(spoken(text)) for text in shown]
            scale = 1 if len(shown) == 1 else rng.randint(1, 10 - max(places))
            ratings = {
                label: scale + place if self.taste else rng.randint(1, 10)
                for label, place in zip(ask.facts["labels"], places, strict=True)
            }
            return {"reason": "traced", "ratings": ratings}
        if ask.facts["kind"] == "attack":
            word = spoken(ask.prompt)
            is_wrong = TREES.index(word) < SOUND if self.taste else self.truth.get(word) == "wrong"
            verdict = "fails" if is_wrong else rng.choice(["holds", "holds", "unsure"])
            return {"quote": "It is a tree.", "reason": "traced", "verdict": verdict}
        if self.taste and ask.facts["kind"] == "synthesis":
            word = max(map(spoken, ask.facts["answers"]), key=TREES.index)
        return {"steps": ["It is a tree."], "reasoning": "It is a tree.", "answer": word}


def truth(seed: int) -> dict[str, Any]:
    rng = random.Random(f"truth {seed}")
    return {word: rng.choice(["unknown", "wrong", "wrong", "right"]) for word in WORDS}


def played(
    name: str, world: Planted, drafts: int, pick: Callable[[int], int] = lambda n: 0, **more: Any
) -> Played:
    given = {**SELECTING[name](drafts), **more}
    options = msgspec.convert(given, STRATEGIES[name].options)
    return play(STRATEGIES[name], world, STRATEGIES, options, pick, problem="Which tree is it?")


def answers_given(run: Played) -> list[str]:
    texts = [
        json.dumps(msgspec.to_builtins(event)) for _, event in run.events if not isinstance(event, Verified)
    ]
    return [word for text in texts if (word := spoken(text))]


def abstains(run: Played) -> bool:
    """Whether a run gives no answer because readers left every proof that is not refuted undecided."""
    conclusion = run.snapshot.conclusion
    assert conclusion is not None
    proofs = conclusion.document.get("proofs", [])
    verdicts = {proof["verdict"] for proof in proofs} - {"refuted"}
    return conclusion.reason == "abstained" and verdicts == {"undecided"}


@each
@few
@given(seeds, st.integers(1, 6))
def test_no_refuted_answer_is_given_while_there_is_one_that_is_not(name: str, seed: int, drafts: int) -> None:
    world = Planted(seed, truth=truth(seed))
    run = played(name, world, drafts, verify=True)
    conclusion = run.snapshot.conclusion
    assert conclusion is not None
    if conclusion.answer is None:
        assert abstains(run) or all(world.truth[word] == "wrong" for word in answers_given(run))
    else:
        assert world.truth[spoken(conclusion.answer)] != "wrong"
        assert (world.truth[spoken(conclusion.answer)] == "right") == (conclusion.certainty == "proved")


@few
@given(seeds, st.integers(1, 6))
def test_no_proof_that_readers_refuted_is_given_while_there_is_one_that_they_did_not(
    seed: int, solvers: int
) -> None:
    world = Planted(seed, truth=truth(seed))
    conclusion = (run := played("prove_and_refute", world, solvers)).snapshot.conclusion
    assert conclusion is not None
    if conclusion.answer is None:
        assert abstains(run) or all(world.truth[word] == "wrong" for word in answers_given(run))
    else:
        assert world.truth[spoken(conclusion.answer)] != "wrong"
        assert conclusion.certainty == "given"


DRAWING = [name for name in SELECTING if name not in ("prove_and_refute", "refine")]
"""Those that end where all drafts agree; readers try to refute a proof whether or not others come to the same."""
JUDGING = ("best_of_n", "council", "refine")


@each
@few
@given(seeds, st.integers(2, 6))
def test_more_budget_never_makes_what_a_verifier_has_said_of_the_best_so_far_worse(
    name: str, seed: int, drafts: int
) -> None:
    world = Planted(seed, truth=truth(seed))
    run = played(name, world, drafts, verify=True)
    ranks = [
        _rank(name, snapshot, world.truth)
        for snapshot in run.snapshots[:-1]
        # What costs no call is in before the next one is paid.
        if all(isinstance(waiting.effect, Ask) for waiting in open_effects(snapshot))
    ]
    assert ranks == sorted(ranks)


WAYS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in SELECTING),
    *(("best_of_n", {"judge": judge}) for judge in ("halving", "points")),
    ("council", {"synthesis": False}),
    ("self_consistency", {"window": 2}),
    ("self_consistency", {"at_once": True, "stop": "beta"}),
]
"""The strategies with each way to choose that they have."""


@pytest.mark.parametrize(("name", "more"), WAYS)
@settings(max_examples=10, deadline=None)
@given(seeds, st.integers(2, 9))
def test_more_budget_never_makes_the_best_so_far_worse(
    name: str, more: dict[str, Any], seed: int, drafts: int
) -> None:
    """Another answer leads only where it is better, has more votes, or revises what a judge put below the middle."""
    run = played(name, Planted(seed, words=TREES, taste=True), drafts, **more)
    ends = [stop(STRATEGIES[name], snapshot, STRATEGIES).conclusion for snapshot in run.snapshots[:-1]]
    if not abstains(run):
        ends.append(run.snapshot.conclusion)
    best = ""
    for at, end in enumerate(ends):
        assert end is not None
        new, votes = spoken(end.answer or ""), Counter(spoken(str(event)) for _, event in run.events[:at])
        is_revised = name == "refine" and _is_unrated_revision(end.document, new, best)
        assert _quality(name, new) >= _quality(name, best) or votes[new] > votes[best] > 0 or is_revised
        best = new


def _is_unrated_revision(document: Mapping[str, Any], new: str, best: str) -> bool:
    """Whether nobody has rated the one answer yet, and a judge put the other below the middle."""
    ratings = document["ratings"]
    numbers = {
        word: [str(each["number"]) for each in document["drafts"] if each["answer"] == word] for word in TREES
    }
    is_low = any(ratings.get(number, MIDDLE) < MIDDLE for number in numbers.get(best, ()))
    return is_low and any(number not in ratings for number in numbers[new])


def _quality(name: str, word: str) -> int:
    """Return how good a planted answer is as far as the strategy's judges can see; none is as good as a refuted one."""
    place = TREES.index(word) if word else -1
    return int(place >= SOUND) if name == "prove_and_refute" else place


def _rank(name: str, snapshot: Snapshot, truth: Mapping[str, Any]) -> int:
    conclusion = stop(STRATEGIES[name], snapshot, STRATEGIES).conclusion
    assert conclusion is not None
    if conclusion.answer is None:
        return 0
    return {"wrong": 0, "unknown": 1, "right": 2}[truth[spoken(conclusion.answer)]]


@pytest.mark.parametrize("name", DRAWING)
@pytest.mark.parametrize("drafts", [2, 3, 5])
def test_where_all_drafts_agree_each_takes_one_call_and_nothing_else_does(name: str, drafts: int) -> None:
    run = played(name, world := Planted(1, agree=True), drafts)
    assert run.snapshot.conclusion is not None
    assert run.snapshot.conclusion.answer == WORDS[0]
    assert len(world.asked) == drafts


@pytest.mark.parametrize("name", JUDGING)
@few
@given(seeds, seeds, st.integers(0, 5))
def test_the_order_in_which_a_judge_sees_candidates_depends_on_the_seed_alone(
    name: str, seed: int, order: int, chosen: int
) -> None:
    shuffled = random.Random(order)
    first = played(name, Planted(seed), 4, seed=chosen)
    other = played(name, Planted(seed), 4, shuffled.randrange, seed=chosen)
    assert orders(first) == orders(other)


def orders(run: Played) -> list[list[int]]:
    """Return the candidates of each question to a judge, in the order shown."""
    asked = {
        waiting.id: waiting.effect.facts["candidates"]
        for snapshot in run.snapshots
        for waiting in snapshot.pending
        if isinstance(waiting.effect, Ask) and "labels" in waiting.effect.facts
    }
    return list(asked.values())


@pytest.mark.parametrize("name", JUDGING)
def test_another_seed_shows_the_candidates_in_another_order(name: str) -> None:
    seen = set[str]()
    for seed in range(6):
        seen.add(json.dumps(orders(played(name, Planted(5), 4, seed=seed))))
    assert len(seen) > 1


@pytest.mark.parametrize("name", [name for name in SELECTING if hasattr(STRATEGIES[name].options, "over")])
@pytest.mark.parametrize("written", ["cot", " Chain-of-Thought ", "Chain of Thought"])
def test_the_strategy_inside_by_default_is_known_by_all_its_names(name: str, written: str) -> None:
    strategy = STRATEGIES[name]
    plain, named = strategy.options(verify=True), strategy.options(verify=True, over=written)
    first, second = (begin(strategy, "2 + 2?", options, strategies=STRATEGIES) for options in (plain, named))
    assert [one.effect for one in second.effects] == [one.effect for one in first.effects]
    assert second.snapshot == first.snapshot
