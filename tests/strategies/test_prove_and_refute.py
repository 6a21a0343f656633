"""Prove and refute, for given claims: fresh readers, three lenses, a table of verdicts that is exhaustive."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from reasonry import solve
from reasonry.core.effects import Ask
from reasonry.core.events import Answered
from reasonry.core.problem import with_quoted
from reasonry.strategies.prove_and_refute import LENSES, Attack, Claim, judge

pytestmark = pytest.mark.anyio

PLAN = """Move the database. Score: 0.85.
The copy takes 28 hours at 20 MB/s. Counting the five hot tables takes 20 s. value: 90%"""
COPY, COUNT = "The copy takes 28 hours at 20 MB/s.", "Counting the five hot tables takes 20 s."


class Reader:
    """A model that finds a claim by a word, and keeps what it was asked."""

    name = "reader"

    def __init__(self, verdicts: dict[tuple[str, str], str], quote: str = "") -> None:
        self.verdicts, self.quote = verdicts, quote
        self.asked: list[Ask] = []

    async def answer(self, question: Any, on_text: Any = None) -> Answered:
        ask = question.ask
        self.asked.append(ask)
        if ask.facts["kind"] == "selection":
            return Answered(json.dumps({"claims": [{"claim": COUNT, "thought": None}]}))
        word = "Counting" if f'"{COUNT}"' in ask.prompt else "copy"
        verdict = self.verdicts.get((word, ask.facts["kind"]), "unsure")
        return Answered(json.dumps({"quote": self.quote or word, "reason": "shown", "verdict": verdict}))

    async def close(self) -> None:
        """Nothing is open."""


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
    assert sorted(ask.facts["kind"] for ask in reader.asked) == sorted([*LENSES, *LENSES])
    prompts = " ".join(f"{ask.prompt} {ask.facts}" for ask in reader.asked)
    assert not any(word in prompts for word in ("0.85", "90%", "shown", "confirmed", "refuted"))


async def test_without_claims_those_are_selected_that_carry_the_text() -> None:
    found = await refute(Reader({("Counting", "true"): "fails"}))
    assert found[COUNT]["verdict"] == "refuted"


async def test_arithmetic_settles_a_claim_without_a_reader() -> None:
    reader = Reader({})
    found = await refute(reader, "20 * 5 = 90 GB are written.")
    (claim,) = (found[name] for name in found if name != "rate")
    assert (claim["verdict"], claim["settled_by"], reader.asked) == ("refuted", "arithmetic", [])


async def test_a_failure_without_a_place_in_the_text_does_not_count() -> None:
    found = await refute(Reader({("Counting", lens): "fails" for lens in LENSES}, quote="not there"), COUNT)
    assert found[COUNT]["verdict"] == "undecided"
    assert found[COUNT]["reason"].startswith("true: fails (no place of the text), shown; follows: fails")


async def test_where_every_claim_is_refuted_the_result_warns() -> None:
    verdicts = {(word, "true"): "fails" for word in ("Counting", "copy")}
    assert "warning" in (await refute(Reader(verdicts), COPY, COUNT))["rate"]


@pytest.mark.parametrize("verdicts", [*itertools.product(("holds", "fails", "unsure"), repeat=3)])
def test_the_table_is_exhaustive(verdicts: tuple[Any, ...]) -> None:
    found = tuple(
        (lens, Attack("Counting", "shown", verdict)) for lens, verdict in zip(LENSES, verdicts, strict=True)
    )
    judged = judge(PLAN, Claim(COUNT, found=found))
    fails, holds = verdicts.count("fails"), verdicts.count("holds")
    expected = "refuted" if fails >= 2 or verdicts[0] == "fails" else "undecided"
    assert judged.verdict == ("confirmed" if not fails and holds >= 2 else expected)
    each = "; ".join(f"{lens}: {verdict}, shown" for lens, verdict in zip(LENSES, verdicts, strict=True))
    assert judged.reason == (each if judged.verdict == "undecided" else "shown")


async def test_thoughts_are_searched_for_claims_without_a_reader_and_a_run_settles_its_own() -> None:
    quoted = (
        "Thought 1: How long is the move?\nThought 2 (ran): The copy took 28 h at 20 MB/s.\n"
        f"Thought 3: {COUNT}\nThought 4: So it is over in 28 h and 20 s."
    )
    problem, reader = with_quoted("Refute these.", quoted), Reader({("Counting", "true"): "fails"})
    result = await solve(problem, strategy="refute", model=reader, store="memory")
    found = {claim["claim"]: claim for claim in result.details["claims"]}
    assert (found[COUNT]["verdict"], found[COUNT]["thought"]) == ("refuted", 3)
    assert {claim["thought"] for claim in found.values()} == {3}
    asked = len(reader.asked)
    options = {"claims": ["The copy took 28 h at 20 MB/s."]}
    result = await solve(problem, strategy="refute", model=reader, store="memory", options=options)
    (claim,) = result.details["claims"]
    assert (claim["verdict"], claim["settled_by"], len(reader.asked)) == ("confirmed", "run", asked)
