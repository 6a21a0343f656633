from __future__ import annotations

from reasonry.core.events import Verified
from reasonry.strategies.step_back import ABSTRACT, SOLVE, STEP_BACK
from reasonry.strategies.step_back import PRINCIPLE as PRINCIPLE_ALONE

from .walking import in_order, walk

# The paper's first example (figure 2).
GAS = (
    "What happens to the pressure, P, of an ideal gas if the temperature is increased by a factor of 2 and the "
    "volume is increased by a factor of 8?"
)
QUESTION = {"stepBackQuestion": "What are the physics principles behind this question?"}
PRINCIPLE = {"generalPrinciple": "Ideal gas law: PV = nRT."}
BOTH = QUESTION | PRINCIPLE
SOLUTION = {
    "steps": ["n and R are constant: P = nRT / V with 2T and 8V.", "P' = nR(2T) / (8V) = P / 4."],
    "answer": "It decreases by a factor of 4",
}
HOLDS = {"correct": True, "reason": "P'V' / T' = (P/4)(8V) / (2T) = PV / T."}
ALL = (BOTH, SOLUTION)
CHECKED = {"check": True}


def test_the_papers_gas_law_example_walks_every_edge_of_the_table() -> None:
    walked = walk(STEP_BACK, GAS, in_order(*ALL, HOLDS), CHECKED)
    assert (walked.conclusion.answer, walked.conclusion.reason) == (
        "It decreases by a factor of 4",
        "success",
    )
    assert walked.conclusion.document["principle"] == "Ideal gas law: PV = nRT."
    assert tuple(walked.edges) == STEP_BACK.edges
    assert [one.stage for one in walked.thoughts] == [
        "abstraction",
        "principle_identification",
        "step_by_step_solution",
        "solution_verification",
    ]


def test_the_solution_is_asked_for_with_the_principle_in_sight() -> None:
    walked = walk(STEP_BACK, GAS, in_order(*ALL, HOLDS), CHECKED)
    assert "Principle: Ideal gas law: PV = nRT." in walked.asks[1].prompt
    assert SOLVE in walked.asks[1].prompt


def test_as_in_the_paper_there_are_two_calls() -> None:
    walked = walk(STEP_BACK, GAS, in_order(*ALL))
    assert [ask.facts["kind"] for ask in walked.asks] == ["abstraction", "solution"]
    assert ABSTRACT in walked.asks[0].prompt
    assert tuple(walked.edges) == STEP_BACK.edges
    assert walked.conclusion.answer == "It decreases by a factor of 4"


def test_a_principle_that_is_left_out_is_asked_for() -> None:
    walked = walk(STEP_BACK, GAS, in_order(QUESTION, PRINCIPLE, SOLUTION))
    assert [ask.facts["kind"] for ask in walked.asks] == ["abstraction", "principle", "solution"]
    assert PRINCIPLE_ALONE in walked.asks[1].prompt


def test_a_false_equation_is_asked_for_again_with_what_is_true() -> None:
    slip = {"steps": ["2 / 8 = 0.5"], "answer": "a half"}
    walked = walk(STEP_BACK, GAS, in_order(BOTH, slip, SOLUTION))
    assert "2 / 8 is 0.25, not 0.5" in walked.asks[2].prompt
    assert walked.conclusion.answer == SOLUTION["answer"]


def test_a_failed_check_is_recorded_and_the_correction_is_checked_again() -> None:
    slip = {"steps": ["P' = P * 16."], "answer": "16 times"}
    wrong = {"correct": False, "reason": "V is in the denominator.", "answer": "a quarter"}
    walked = walk(STEP_BACK, GAS, in_order(BOTH, slip, wrong, HOLDS), CHECKED)
    assert walked.conclusion.answer == "a quarter"
    assert walked.conclusion.document["objections"] == [
        'The answer "16 times" did not pass the check: V is in the denominator.'
    ]


def test_an_answer_proved_wrong_is_corrected_or_not_given_at_all() -> None:
    wrong = Verified("wrong", "Not a quarter.")
    again = {"correct": True, "reason": "V was taken upside down.", "answer": "a quarter"}
    walked = walk(STEP_BACK, GAS, in_order(*ALL, wrong, again, Verified("right")), {"verify": True})
    assert (walked.conclusion.answer, walked.conclusion.document["verification"]) == ("a quarter", "proved")
    lost = walk(STEP_BACK, GAS, in_order(*ALL, wrong, again, wrong), {"verify": True})
    assert (lost.snapshot.status, lost.conclusion.answer, lost.conclusion.reason) == (
        "failed",
        None,
        "verification_failed",
    )


def test_an_empty_answer_is_asked_for_again() -> None:
    empty = {"steps": ["…"], "answer": ""}
    walked = walk(STEP_BACK, GAS, in_order(BOTH, empty, SOLUTION))
    assert "the answer is empty" in walked.asks[2].prompt


def test_each_prompt_begins_with_what_the_one_before_had_settled() -> None:
    walked = walk(STEP_BACK, GAS, in_order(*ALL, HOLDS), CHECKED)
    assert len({one.system for one in walked.asks}) == 1
    for before, after in zip(walked.asks, walked.asks[1:], strict=False):
        assert after.prompt.startswith(before.prompt.rpartition("\n\n")[0])
