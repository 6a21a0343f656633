from __future__ import annotations

from reasonry.strategies.step_back import PRINCIPLE as PRINCIPLE_ALONE
from reasonry.strategies.step_back import STEP_BACK

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


def test_a_principle_that_is_left_out_is_asked_for() -> None:
    walked = walk(STEP_BACK, GAS, in_order(QUESTION, PRINCIPLE, SOLUTION))
    assert [ask.facts["kind"] for ask in walked.asks] == ["abstraction", "principle", "solution"]
    assert walked.asks[1].task == PRINCIPLE_ALONE
