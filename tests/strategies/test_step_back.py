from __future__ import annotations

from reasonry.core.events import Verified
from reasonry.strategies.step_back import STEP_BACK

from .walking import in_order, walk

# The paper's first example (figure 2).
GAS = (
    "What happens to the pressure, P, of an ideal gas if the temperature is increased by a factor of 2 and the "
    "volume is increased by a factor of 8?"
)
QUESTION = {"stepBackQuestion": "What are the physics principles behind this question?"}
PRINCIPLE = {"generalPrinciple": "Ideal gas law: PV = nRT."}
APPLICATION = {"approach": "n and R are constant.", "application": "P = nRT / V with 2T and 8V."}
SOLUTION = {"steps": ["P' = nR(2T) / (8V) = P / 4."], "answer": "It decreases by a factor of 4"}
HOLDS = {"correct": True, "reason": "P'V' / T' = (P/4)(8V) / (2T) = PV / T."}
ALL = (QUESTION, PRINCIPLE, APPLICATION, SOLUTION)


def test_the_papers_gas_law_example_walks_every_edge_of_the_table() -> None:
    walked = walk(STEP_BACK, GAS, in_order(*ALL, HOLDS))
    assert (walked.outcome.answer, walked.outcome.reason) == ("It decreases by a factor of 4", "success")
    assert walked.outcome.document["principle"] == "Ideal gas law: PV = nRT."
    assert tuple(walked.edges) == STEP_BACK.edges
    assert [one.stage for one in walked.thoughts] == [
        "abstraction",
        "principle_identification",
        "approach_selection",
        "specific_application",
        "step_by_step_solution",
        "solution_verification",
    ]


def test_the_solution_is_asked_for_with_the_principle_in_sight() -> None:
    walked = walk(STEP_BACK, GAS, in_order(*ALL, HOLDS))
    assert "Principle: Ideal gas law: PV = nRT." in walked.asks[3].prompt
    assert "Set-up: P = nRT / V with 2T and 8V." in walked.asks[3].prompt


def test_a_failed_check_is_recorded_and_the_correction_is_checked_again() -> None:
    slip = {"steps": ["P' = P * 16."], "answer": "16 times"}
    wrong = {"correct": False, "reason": "V is in the denominator.", "answer": "a quarter"}
    walked = walk(STEP_BACK, GAS, in_order(QUESTION, PRINCIPLE, APPLICATION, slip, wrong, HOLDS))
    assert walked.outcome.answer == "a quarter"
    assert walked.outcome.document["objections"] == [
        "The answer '16 times' did not pass the check: V is in the denominator."
    ]


def test_an_answer_proved_wrong_is_corrected_or_not_given_at_all() -> None:
    wrong = Verified("wrong", "Not a quarter.")
    again = {"correct": True, "reason": "V was taken upside down.", "answer": "a quarter"}
    walked = walk(STEP_BACK, GAS, in_order(*ALL, wrong, again, Verified("right")), {"verify": True})
    assert (walked.outcome.answer, walked.outcome.document["verification"]) == ("a quarter", "proved")
    lost = walk(STEP_BACK, GAS, in_order(*ALL, wrong, again, wrong), {"verify": True})
    assert (lost.snapshot.status, lost.outcome.answer, lost.outcome.reason) == (
        "failed",
        None,
        "verification_failed",
    )


def test_an_empty_answer_is_asked_for_again() -> None:
    empty = {"steps": ["…"], "answer": ""}
    walked = walk(STEP_BACK, GAS, in_order(QUESTION, PRINCIPLE, APPLICATION, empty, SOLUTION, HOLDS))
    assert "the answer is empty" in walked.asks[4].prompt


def test_each_prompt_begins_with_what_the_one_before_had_settled() -> None:
    walked = walk(STEP_BACK, GAS, in_order(*ALL, HOLDS))
    assert len({one.system for one in walked.asks}) == 1
    for before, after in zip(walked.asks, walked.asks[1:], strict=False):
        assert after.prompt.startswith(before.prompt.rpartition("\n\n")[0])
