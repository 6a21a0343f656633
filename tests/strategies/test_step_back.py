from reasonry.strategies.step_back import PRINCIPLE, STEP_BACK

from .walking import in_order, walk


def test_a_principle_that_is_left_out_is_asked_for() -> None:
    question = {"stepBackQuestion": "What are the physics principles behind this question?"}
    principle = {"generalPrinciple": "Ideal gas law: PV = nRT."}
    solution = "P = nRT / V with 2T and 8V.\n\n<answer>It decreases by a factor of 4</answer>"
    walked = walk(STEP_BACK, "What happens to the pressure?", in_order(question, principle, solution))
    assert [ask.facts["kind"] for ask in walked.asks] == ["abstraction", "principle", "solution"]
    assert walked.asks[1].task == PRINCIPLE
