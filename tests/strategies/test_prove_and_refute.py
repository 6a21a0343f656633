"""Prove and refute, for given claims: fresh readers, three lenses, a table of verdicts that is exhaustive."""

import itertools
from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from reasonry import solve
from reasonry.core.bodies import Conclusion
from reasonry.core.effects import Ask, Verify
from reasonry.core.events import Answered, Event, Stopped, Verified
from reasonry.core.machine import Pending, begin, open_effects
from reasonry.core.problem import with_quoted
from reasonry.strategies.prove_and_refute import (
    CONFIRM,
    LENSES,
    PROVE_AND_REFUTE,
    REFUTE,
    SELECT_FROM_THOUGHTS,
    VOTES,
    Attack,
    Claim,
    Options,
    Proof,
    State,
    count_votes,
    judge,
)

from ..playing import advance
from .walking import Mind, Walked, reply, walk

pytestmark = pytest.mark.anyio

PLAN = """Move the database. Score: 0.85.
The copy takes 28 hours at 20 MB/s. Counting the five hot tables takes 20 s. value: 90%"""
COPY, COUNT = "The copy takes 28 hours at 20 MB/s.", "Counting the five hot tables takes 20 s."


class Reader(Mind):
    """A model that finds a claim by a word."""

    def __init__(self, verdicts: dict[tuple[str, str], str], quote: str = "") -> None:
        super().__init__()
        self.verdicts, self.quote = verdicts, quote
        self.selected: list[dict[str, Any]] = [{"claim": COUNT, "thought": None}] * 2

    def reply(self, ask: Ask) -> Any:
        if ask.facts["kind"] == "selection":
            return {"claims": self.selected}
        word = "Counting" if f'"{COUNT}"' in ask.prompt else "copy"
        verdict = self.verdicts.get((word, ask.facts["kind"]), "unsure")
        return {"quote": self.quote or word, "reason": "shown", "verdict": verdict}


async def refute(reader: Reader, *claims: str, **options: Any) -> dict[str, dict[str, Any]]:
    result = await solve(
        PLAN, strategy="refute", model=reader, store="memory", options={"claims": claims, **options}
    )
    return {claim["claim"]: claim for claim in result.details["claims"]} | {"rate": result.details}


async def test_each_claim_is_put_to_each_lens_and_no_reader_sees_a_score_or_a_verdict() -> None:
    reader = Reader({("Counting", "true"): "fails", ("copy", "true"): "holds", ("copy", "follows"): "holds"})
    found = await refute(reader, COPY, COUNT)
    assert [found[claim]["verdict"] for claim in (COPY, COUNT)] == ["confirmed", "refuted"]
    assert (found[COUNT]["quote"], found[COUNT]["reason"]) == ("Counting", "shown")
    assert found["rate"]["refutation_rate"] == 0.5
    assert [ask.facts["kind"] for ask in reader.asked] == ["true", "true", "follows", "complete"]
    assert all(f'"{COUNT}"' in ask.prompt for ask in reader.asked[2:])
    prompts = " ".join(f"{ask.prompt} {ask.facts}" for ask in reader.asked)
    assert not any(word in prompts for word in ("0.85", "90%", "shown", "confirmed", "refuted"))


async def test_without_claims_those_are_selected_that_carry_the_text_each_once() -> None:
    found = await refute(Reader({("Counting", "true"): "fails"}))
    assert [(claim["claim"], claim["verdict"]) for claim in found["rate"]["claims"]] == [(COUNT, "refuted")]


async def test_arithmetic_settles_an_equation_without_a_reader() -> None:
    reader = Reader({})
    claims = ("Together, 20 * 5 = 90.", "17 + 25 = 42.", "17 + 25 = 42 is prime", "2 * 1,5 = 3")
    found = await refute(reader, *claims)
    assert (found[claims[0]]["verdict"], found[claims[0]]["settled_by"]) == ("refuted", "arithmetic")
    assert (found["17 + 25 = 42."]["verdict"], found["17 + 25 = 42."]["settled_by"]) == (
        "confirmed",
        "arithmetic",
    )
    assert len(reader.asked) == 2 * len(LENSES)


async def test_a_failure_without_a_place_in_the_text_does_not_count() -> None:
    reader = Reader({("Counting", lens): "fails" for lens in LENSES}, quote="not there")
    found = await refute(reader, COUNT)
    assert len(reader.asked) == 2 * len(LENSES)
    assert "quote is no place of the text" in reader.asked[1].text
    assert found[COUNT]["verdict"] == "undecided"
    assert found[COUNT]["reason"].startswith("true: fails (no place of the text), shown; follows: fails")


async def test_where_every_claim_is_refuted_the_result_warns() -> None:
    verdicts = {(word, "true"): "fails" for word in ("Counting", "copy")}
    assert "warning" in (await refute(Reader(verdicts), COPY, COUNT))["rate"]


def review(claims: int, kinds: int, stop_after: int | None = None) -> tuple[Conclusion, list[Ask]]:
    """Have a text reviewed that makes many claims of few kinds: every third kind fails, the others hold."""
    given = [f"Claim {number % kinds} in wording {number}." for number in range(claims)]

    def answer(ask: Ask) -> Event:
        if ask.facts["kind"] == "group":
            groups = [[*range(kind + 1, claims + 1, kinds)] for kind in range(kinds)]
            return reply({"groups": groups})
        kind = int(ask.prompt.rpartition("Claim ")[2].split()[0])
        word = "fails" if kind % 3 == 0 else "holds"
        return reply({"quote": f"Claim {kind}", "reason": "shown", "verdict": word})

    step = begin(PROVE_AND_REFUTE, "\n".join(given), Options(claims=tuple(given)))
    asked: list[Ask] = []
    while pending := open_effects(step.snapshot):
        if len(asked) == stop_after:
            step = advance(PROVE_AND_REFUTE, step.snapshot, None, Stopped("max_calls"))
            break
        asked.append(pending[0].effect)
        step = advance(PROVE_AND_REFUTE, step.snapshot, pending[0].id, answer(asked[-1]))
    assert step.snapshot.conclusion is not None
    return step.snapshot.conclusion, asked


def test_claims_that_say_the_same_are_asked_about_once_and_keep_their_places() -> None:
    conclusion, asked = review(33, 3)
    assert len(asked) <= 12
    assert asked[0].prompt.startswith("1. Claim 0 in wording 0.\n2. Claim 1 in wording 1.\n")
    assert [ask.facts["kind"] for ask in asked] == ["group", "true", "true", "true", "follows", "complete"]
    refuted, *others = conclusion.document["claims"]
    assert (refuted["verdict"], [each["verdict"] for each in others]) == ("refuted", ["confirmed"] * 2)
    assert [each["claim"] for each in refuted["also"]] == [
        f"Claim 0 in wording {n}." for n in range(3, 33, 3)
    ]
    assert [ask.facts["kind"] for ask in review(4, 4)[1]].count("group") == 0


def test_a_review_of_140_claims_takes_at_most_40_questions_and_every_prefix_has_a_right_table() -> None:
    whole, asked = review(140, 15)
    assert len(asked) <= 40
    final = {claim["claim"]: claim["verdict"] for claim in whole.document["claims"]}
    for count in range(len(asked)):
        conclusion, _ = review(140, 15, stop_after=count)
        found = {claim["claim"]: claim["verdict"] for claim in conclusion.document["claims"]}
        settled = {claim: verdict for claim, verdict in found.items() if verdict in ("confirmed", "refuted")}
        assert settled.items() <= final.items()
        assert len(settled) == min(15, max(0, count - 1))


async def test_groups_that_cannot_be_read_leave_each_claim_by_itself() -> None:
    class Ungrouped(Reader):
        def reply(self, ask: Ask) -> Any:
            return {"groups": [[1, 2], [2, 3]]} if ask.facts["kind"] == "group" else super().reply(ask)

    claims = [f"Counting table {number} takes 20 s." for number in range(5)]
    # Equal texts in two groups are two claims.
    same = walk(
        PROVE_AND_REFUTE,
        PLAN,
        lambda one: reply(
            {"groups": [[2, 3], [1], [4], [5]]}
            if one.effect.facts["kind"] == "group"  # type: ignore[union-attr]
            else {"reason": "shown", "verdict": "holds"}
        ),
        {"claims": [claims[0], *claims[:4]]},
    )
    assert len(same.conclusion.document["claims"]) == 4
    reader = Ungrouped({("copy", "true"): "holds"})
    found = await refute(reader, *claims)
    assert [found[claim]["verdict"] for claim in claims] == ["confirmed"] * 5


@pytest.mark.parametrize("verdicts", [*itertools.product(("holds", "fails", "unsure"), repeat=3)])
def test_the_table_is_exhaustive(verdicts: tuple[Any, ...]) -> None:
    votes = {
        str(lens): Attack("Counting", "shown", verdict)
        for lens, verdict in zip(LENSES, verdicts, strict=True)
    }
    judged = judge(PLAN, Claim(COUNT, votes=votes))
    fails, holds = verdicts.count("fails"), verdicts.count("holds")
    expected = "refuted" if fails >= 2 or verdicts[0] == "fails" else "undecided"
    assert judged.verdict == ("confirmed" if not fails and holds >= 2 else expected)
    each = "; ".join(f"{lens}: {verdict}, shown" for lens, verdict in zip(LENSES, verdicts, strict=True))
    assert judged.reason == (each if judged.verdict == "undecided" else "shown")


@pytest.mark.parametrize(("most", "questions"), [(3, 1 + 3 * 3), (5, 1 + 1 + 3 * 5)])
def test_the_most_questions_count_the_search_for_claims_and_their_grouping(most: int, questions: int) -> None:
    state = State(problem=PLAN, options=Options(max_claims=most))
    assert PROVE_AND_REFUTE.conclude(state).document["at_most"] == questions


async def test_a_reader_names_the_claims_of_thoughts_with_their_numbers_and_a_run_settles_its_own() -> None:
    ran = "The copy took 28 h at 20 MB/s."
    quoted = (
        f"Thought 1: How long is the move?\nThought 2 (ran): {ran}\n"
        f"Thought 3: {COUNT}\nThought 4: So it is over in 28 h and 20 s."
    )
    problem, reader = with_quoted("Refute these.", quoted), Reader({("Counting", "true"): "fails"})
    reader.selected = [{"claim": COUNT, "thought": 3}, {"claim": ran, "thought": 2}]
    result = await solve(problem, strategy="refute", model=reader, store="memory")
    found = [
        (claim["claim"], claim["thought"], claim["verdict"], claim["settled_by"])
        for claim in result.details["claims"]
    ]
    assert found == [(COUNT, 3, "refuted", ""), (ran, 2, "confirmed", "run")]
    kinds = [ask.facts["kind"] for ask in reader.asked]
    assert kinds == ["selection", "true", "follows", "complete"]
    assert SELECT_FROM_THOUGHTS.format(count=3) in reader.asked[0].prompt
    options = {"claims": [ran]}
    result = await solve(problem, strategy="refute", model=reader, store="memory", options=options)
    (claim,) = result.details["claims"]
    assert (claim["verdict"], claim["settled_by"], len(reader.asked)) == ("confirmed", "run", len(kinds))


@pytest.mark.parametrize("said", ["This claim is false: it takes minutes.", "| claim | verdict |", "FAIL"])
async def test_a_claim_whose_readers_cannot_be_read_is_undecided_and_the_run_goes_on(said: str) -> None:
    class Unread(Reader):
        def reply(self, ask: Ask) -> Any:
            return said if f'"{COUNT}"' in ask.prompt else super().reply(ask)

    found = await refute(Unread({("copy", "true"): "fails"}), COPY, COUNT)
    assert [found[claim]["verdict"] for claim in (COPY, COUNT)] == ["refuted", "undecided"]
    found = await refute(Unread({}), COUNT)
    assert (found[COUNT]["verdict"], found[COUNT]["reason"]) == ("undecided", "no reader gave a verdict")


PROBLEM = "Is n(n + 1) even for every whole n? Prove it."
GOOD = {"reasoning": "One of n and n + 1 is even, so the product is even.", "answer": "Yes"}
BAD = {"reasoning": "n is even, so the product is even.", "answer": "Yes, as n is even"}
HOLDS = {"quote": "", "reason": "each step was checked", "verdict": "holds"}
FAILS = {"quote": "n is even", "reason": "n = 3 is a counterexample", "verdict": "fails"}


def marked(solution: dict[str, str]) -> str:
    return f"{solution['reasoning']}\n\n<answer>{solution['answer']}</answer>"


def prove(*, solutions: list[Any], revised: Any = BAD, verdict: Any = "unknown", **options: Any) -> Walked:
    """Solve the problem; readers refute what says that n is even, and hold the rest."""
    written = iter(solutions)

    def answer(one: Pending) -> Event:
        if isinstance(one.effect, Verify):
            return Verified(verdict)
        assert isinstance(one.effect, Ask)
        match one.effect.facts["kind"]:
            case "proof":
                return Answered(f"{marked(next(written))} SECRET: I guessed.")
            case "revision":
                return Answered(marked(revised))
            case _:
                return reply(FAILS if BAD["reasoning"] in one.effect.prompt else HOLDS)

    return walk(PROVE_AND_REFUTE, PROBLEM, answer, {"solvers": len(solutions), **options})


def kinds(walked: Walked) -> Counter[str]:
    return Counter(ask.facts["kind"] for ask in walked.asks)


def test_a_proof_is_confirmed_by_four_blind_readers_of_the_finished_proof_alone() -> None:
    walked = prove(solutions=[GOOD, GOOD])
    conclusion = walked.conclusion
    assert (conclusion.short, conclusion.reason) == ("Yes", "success")
    assert kinds(walked) == {"proof": 2, "attack": 4}
    attacks = [ask for ask in walked.asks if ask.facts["kind"] == "attack"]
    assert [ask.sample for ask in attacks] == [0, 1, 2, 3]
    for ask in attacks:
        assert ask.by == "judge"
        assert not any(word in ask.prompt for word in ("SECRET", "each step was checked"))


def test_two_readers_refute_a_proof_and_the_next_one_is_put_to_others() -> None:
    walked = prove(solutions=[BAD, GOOD])
    assert [proof["verdict"] for proof in walked.conclusion.document["proofs"]] == ["refuted", "confirmed"]
    assert kinds(walked) == {"proof": 2, "attack": 3 + 4}
    assert walked.conclusion.short == "Yes"


def test_a_reviser_sees_the_proof_and_its_holes_and_a_mended_proof_is_attacked_anew() -> None:
    walked = prove(solutions=[BAD], revised=GOOD)
    assert walked.conclusion.document["revisions"] == 1
    assert kinds(walked) == {"proof": 1, "attack": 3 + 4, "revision": 1}
    (ask,) = [one for one in walked.asks if one.facts["kind"] == "revision"]
    assert BAD["reasoning"] in ask.prompt
    assert FAILS["reason"] in ask.prompt
    assert not any(word in ask.prompt for word in ("verdict", "fails", "SECRET"))


def test_after_three_revisions_the_run_abstains_with_its_reasons() -> None:
    walked = prove(solutions=[BAD, BAD])
    conclusion = walked.conclusion
    assert (conclusion.answer, conclusion.reason) == (None, "abstained")
    assert "n = 3 is a counterexample" in conclusion.detail
    assert kinds(walked)["revision"] == conclusion.document["revisions"] == 3


@pytest.mark.parametrize("written", ["[GAP: the odd case]", "2 * 3 = 7, so it is even."])
def test_a_marked_gap_and_a_false_equation_are_no_proof_whatever_readers_say(written: str) -> None:
    walked = prove(solutions=[{"reasoning": written, "answer": "Yes"}], revisions=0)
    assert walked.conclusion.reason == "abstained"
    assert kinds(walked) == {"proof": 1}


@pytest.mark.parametrize(("verdict", "reason"), [("right", "success"), ("wrong", "abstained")])
def test_a_verifier_settles_a_proof_without_a_reader(verdict: str, reason: str) -> None:
    walked = prove(solutions=[BAD], verdict=verdict, verify=True, revisions=0)
    assert walked.conclusion.reason == reason
    assert walked.conclusion.certainty == ("proved" if verdict == "right" else "given")
    assert kinds(walked) == {"proof": 1}


def test_every_row_of_votes_decides_within_five() -> None:
    for verdicts in itertools.product(["holds", "fails", "unsure"], repeat=VOTES):
        votes = tuple(Attack("n is even", "shown", verdict) for verdict in verdicts)  # pyright: ignore
        proof = Proof(1, "Yes", steps=(BAD["reasoning"],))
        seen = [
            count_votes(PROBLEM, replace(proof, votes=votes[:number])).status for number in range(VOTES + 1)
        ]
        first = next(number for number, verdict in enumerate(seen) if verdict != "open")
        fails, holds = verdicts[:first].count("fails"), verdicts[:first].count("holds")
        expected = "refuted" if fails == REFUTE else "confirmed" if holds == CONFIRM else "undecided"
        assert seen[first] == expected
        if expected == "undecided":
            assert verdicts.count("fails") < REFUTE, "a vote more would have refuted it"
            assert verdicts.count("holds") < CONFIRM, "a vote more would have confirmed it"


def test_claims_that_are_given_are_tested_and_nothing_is_solved() -> None:
    walked = prove(solutions=[GOOD], claims=["n(n + 1) is even."])
    assert set(kinds(walked)) <= {*LENSES}
    told = [thought.text for thought in walked.thoughts if "verdict" in thought.data]
    assert told == (walked.conclusion.answer or "").splitlines() != [], (
        "a verdict reads as it does in the answer"
    )
