from __future__ import annotations

from reasonry.blocks.answers import MARKED
from reasonry.core.events import Verified
from reasonry.core.readings import EXTRACT
from reasonry.strategies.step_back import ABSTRACT, REPAIR, SOLVE, STEP_BACK
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
STEPS = ["n and R are constant: P = nRT / V with 2T and 8V.", "P' = nR(2T) / (8V) = P / 4."]
SOLUTION = "\n\n".join([*STEPS, "<answer>It decreases by a factor of 4</answer>"])
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
    assert walked.conclusion.document["steps"] == STEPS
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
    assert (walked.asks[1].mark, walked.asks[1].task) == (MARKED, SOLVE)


def test_as_in_the_paper_there_are_two_calls() -> None:
    walked = walk(STEP_BACK, GAS, in_order(*ALL))
    assert [ask.facts["kind"] for ask in walked.asks] == ["abstraction", "solution"]
    assert (walked.asks[0].mark, walked.asks[0].task) == ("", ABSTRACT)
    assert tuple(walked.edges) == STEP_BACK.edges
    assert walked.conclusion.answer == "It decreases by a factor of 4"


def test_a_principle_that_is_left_out_is_asked_for() -> None:
    walked = walk(STEP_BACK, GAS, in_order(QUESTION, PRINCIPLE, SOLUTION))
    assert [ask.facts["kind"] for ask in walked.asks] == ["abstraction", "principle", "solution"]
    assert walked.asks[1].task == PRINCIPLE_ALONE


def test_a_false_equation_is_asked_for_again_with_what_is_true() -> None:
    slip = "2 / 8 = 0.5\n<answer>a half</answer>"
    walked = walk(STEP_BACK, GAS, in_order(BOTH, slip, SOLUTION))
    assert "2 / 8 is 0.25, not 0.5" in walked.asks[2].turns[-1].objection
    assert walked.conclusion.answer == "It decreases by a factor of 4"


def test_a_failed_check_is_recorded_and_the_correction_is_checked_again() -> None:
    slip = "P' = P * 16.\n<answer>16 times</answer>"
    wrong = {"correct": False, "reason": "V is in the denominator.", "answer": "a quarter"}
    walked = walk(STEP_BACK, GAS, in_order(BOTH, slip, wrong, HOLDS), CHECKED)
    assert walked.conclusion.answer == "a quarter"
    assert walked.conclusion.document["objections"] == [
        'The answer "16 times" did not pass the check: V is in the denominator.'
    ]


def test_an_answer_proved_wrong_is_corrected_or_not_given_at_all() -> None:
    wrong = Verified("wrong", "Not a quarter.")
    again = "V was taken upside down.\n<answer>a quarter</answer>"
    walked = walk(STEP_BACK, GAS, in_order(*ALL, wrong, again, Verified("right")), {"verify": True})
    assert (walked.conclusion.answer, walked.conclusion.document["verification"]) == ("a quarter", "proved")
    assert (walked.asks[-1].mark, walked.asks[-1].task) == (MARKED, REPAIR)
    lost = walk(STEP_BACK, GAS, in_order(*ALL, wrong, again, wrong), {"verify": True})
    assert (lost.snapshot.status, lost.conclusion.answer, lost.conclusion.reason) == (
        "failed",
        None,
        "verification_failed",
    )


def test_the_answer_of_a_solution_without_its_mark_is_asked_for_and_the_steps_stay() -> None:
    solution, answer = SOLUTION.rsplit("\n\n", 1)
    walked = walk(STEP_BACK, GAS, in_order(BOTH, solution, answer))
    assert EXTRACT in walked.asks[2].turns[-1].objection
    assert walked.conclusion.answer == "It decreases by a factor of 4"
    assert walked.conclusion.document["steps"] == STEPS


def test_an_empty_answer_is_asked_for_again() -> None:
    walked = walk(STEP_BACK, GAS, in_order(BOTH, "P / 4.\n<answer></answer>", SOLUTION))
    assert "Its <answer> is empty." in walked.asks[2].turns[-1].objection
    assert walked.conclusion.answer == "It decreases by a factor of 4"


def test_each_prompt_begins_with_what_the_one_before_had_settled() -> None:
    walked = walk(STEP_BACK, GAS, in_order(*ALL, HOLDS), CHECKED)
    assert len({one.system for one in walked.asks}) == 1
    for before, after in zip(walked.asks, walked.asks[1:], strict=False):
        assert after.prompt.startswith(before.prompt)
