"""Refine: a review that is read in part counts, a revision leads over what a judge put below the middle."""

import json
from typing import Any

import pytest

from reasonry import solve_sync
from reasonry.blocks.tournament import seeded_order
from reasonry.core.effects import Ask
from reasonry.core.events import Answered, Event
from reasonry.core.machine import Pending
from reasonry.core.problem import IMPROVE, without_quoted
from reasonry.models.scripted import ScriptedModel
from reasonry.strategies import STRATEGIES

from .walking import Walked, walk

PROBLEM = "How many fit?"
DRAFT, REVIEW = "sequential_reasoning", "answer_check"


def test_a_revision_of_a_draft_that_its_review_refuted_is_the_answer_even_where_nobody_has_rated_it() -> None:
    last = {"reason": "Everything holds.", "ratings": {"A": 10}}
    assert seeded_order([1, 2], 0) == [2, 1], "the one label that is rated is that of the revision"
    script = [
        {"stage": DRAFT, "reply": {"steps": ["1854 / 2 = 927."], "answer": "927"}},
        {"stage": REVIEW, "reply": {"reason": "The symmetry is false; it is 905.", "ratings": {"A": 2}}},
        {"stage": DRAFT, "reply": {"steps": ["1280 / 2 + 265 = 905."], "answer": "905"}},
        *[{"stage": REVIEW, "reply": last}] * 2,
    ]
    result = refine(script)
    lost = "a reply was taken in part: answer_check: it has no score from 1 to 10 for candidate B"
    assert (result.answer, result.warnings) == ("905", (lost,))
    assert result.details["ratings"] == {"1": 2.0, "2": 10.0}


def refine(script: list[dict[str, Any]], **options: Any) -> Any:
    return solve_sync(
        PROBLEM,
        strategy="refine",
        model=ScriptedModel.of(*script),
        store="memory",
        options={"rounds": 2, **options},
    )


@pytest.mark.parametrize(("rating", "answer"), [(2, "905"), (5, "905"), (6, "927"), (8.5, "927")])
def test_where_the_last_review_cannot_be_read_the_middle_decides(rating: float, answer: str) -> None:
    script = [
        {"stage": DRAFT, "reply": "1854 / 2 = 927.\n\n<answer>927</answer>"},
        {"stage": REVIEW, "reply": {"reason": "Look again.", "ratings": {"A": rating}}},
        {"stage": DRAFT, "reply": "1280 / 2 + 265 = 905.\n\n<answer>905</answer>"},
        *[{"stage": REVIEW, "reply": "I find both of them very fine."}] * 2,
    ]
    result = refine(script)
    assert result.answer == answer
    assert "no reply to its review could be read" in " ".join(result.warnings)


def improved(first: str, second: str, review: str = "Leave the question out.", **options: Any) -> Walked:
    """Refine a first answer into a second; the judge rates each with 7."""
    written = iter([first, second])

    def answer(one: Pending) -> Event:
        assert isinstance(one.effect, Ask)
        if one.effect.facts["kind"] == "judge":
            ratings = dict.fromkeys(one.effect.facts["labels"], 7)
            return Answered(json.dumps({"reason": review, "ratings": ratings}))
        return Answered(f"It fits.\n\n<answer>{next(written, second)}</answer>")

    return walk(STRATEGIES["refine"], PROBLEM, answer, {"rounds": 2, **options})


def test_where_the_answer_stays_the_same_the_newer_text_is_handed_out() -> None:
    walked = improved("12.0", "12")
    assert walked.conclusion.answer == "12"
    assert [one.text for one in walked.thoughts if "did not change" in one.text]
    assert improved("13", "12").conclusion.answer == "13", (
        "of different answers that are rated alike the first stays"
    )


def test_a_rating_that_is_high_enough_ends_the_rounds() -> None:
    walked = improved("13", "12", rounds=3, accept=7)
    assert (len(walked.asks), walked.conclusion.answer) == (2, "13")


def test_a_revision_is_shown_the_answer_and_the_review_and_no_speaker_that_is_not_there() -> None:
    walked = improved("12 boxes", "13 boxes")
    again = walked.asks[2]
    assert IMPROVE in again.prompt
    assert (
        "> Earlier answer:\n> It fits.\n> Answer: 12 boxes\n> \n> Review:\n> Leave the question out."
        in again.prompt
    )
    assert "user" not in again.prompt
    assert without_quoted(again.facts["problem"]) == PROBLEM


def test_a_judge_is_shown_a_value_with_what_leads_to_it_and_a_text_alone() -> None:
    value, text = (improved(first, "12").asks[1].prompt for first in ("13", "Dear Ann,\nit fits."))
    assert value.endswith("\n\nAnswer:\n\nIt fits.\nAnswer: 13")
    assert text.endswith("\n\nAnswer:\n\nDear Ann,\nit fits.")
