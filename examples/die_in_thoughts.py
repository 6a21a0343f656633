"""A planned chain of thoughts on seed 001's own problem: a die is rolled until 3, 4, 5 come in a row.

    python examples/die_in_thoughts.py                     # a scripted brain plays the thinker
    python examples/die_in_thoughts.py openai:gpt-6-luna   # a model thinks

The scripted brain is no model: it says five thoughts that were written for this file, the second of them with a slip
that the third finds and puts right. Every thought prints with its number and the plan as it stands after it.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any

from reasonry import solve_sync
from reasonry.ext import ScriptedModel

PROBLEM = (
    "You keep rolling a fair die until you roll three, four, five in that order consecutively on three rolls. "
    "What is the probability that you roll the die an odd number of times?"
)


def odd_probability() -> Fraction:
    """Return the answer exactly: p, q, r are the probabilities of ending after an odd number of further rolls.

    p from the start, q after a 3, r after 3, 4; a roll turns odd to even, so each x is a mean of 1 - x:
    p = 5/6 (1-p) + 1/6 (1-q);  q = 1/6 (1-r) + 1/6 (1-q) + 4/6 (1-p);  r = 1/6 + 1/6 (1-q) + 4/6 (1-p).
    """
    sixth = Fraction(1, 6)
    rows = [
        [1 + 5 * sixth, sixth, Fraction(0), Fraction(1)],
        [4 * sixth, 1 + sixth, sixth, Fraction(1)],
        [4 * sixth, sixth, Fraction(1), Fraction(1)],
    ]
    for pivot in range(3):
        rows[pivot] = [value / rows[pivot][pivot] for value in rows[pivot]]
        for other in range(3):
            if other != pivot:
                factor = rows[other][pivot]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[pivot], strict=True)]
    return rows[0][3]


def step(description: str, status: str = "Pending", **more: Any) -> dict[str, Any]:
    """Return a step of a plan."""
    return {"description": description, "status": status, **more}


def thought(
    thinking: str, *plan: dict[str, Any], evaluation: str | None = None, more: bool = True
) -> dict[str, Any]:
    """Return a reply in the seed's fields."""
    return {
        "evaluation": evaluation,
        "current_thinking": thinking,
        "planning": list(plan),
        "next_thought_needed": more,
    }


def scripted_brain() -> ScriptedModel:
    """Return a brain that says these five thoughts, whatever it is asked."""
    p = odd_probability()
    understood = step(
        "Understand the problem", "Done", result="end at 3, 4, 5 in a row; parity of the rolls wanted"
    )
    states = step("Name the states", "Done", result="p: nothing yet, q: last was 3, r: last were 3, 4")
    doubt = step(
        "Write the equations", "Verification Needed", mark="after 3, 4 a 3 leads to q, not to the start"
    )
    parts = [
        step("From the start", "Done", result="p = 5/6 (1-p) + 1/6 (1-q)"),
        step("After 3", "Done", result="q = 1/6 (1-r) + 1/6 (1-q) + 4/6 (1-p)"),
        step("After 3, 4", "Done", result="r = 1/6 + 1/6 (1-q) + 4/6 (1-p)"),
    ]
    right = step("Write the equations", "Done", result="three equations in p, q, r", sub_steps=parts)
    solve, end = step("Solve them for p"), step("Conclusion")
    solved = step("Solve them for p", "Done", result=f"p = {p}")
    replies = [
        thought(
            "Three states are enough, since only the last two rolls matter.",
            understood,
            states,
            step("Write the equations"),
            solve,
            end,
        ),
        thought(
            "From r only a 5 ends it; all else goes to the start.",
            understood,
            states,
            doubt,
            solve,
            end,
            evaluation="Thought 1 is correct; but what I wrote for r here needs a look.",
        ),
        thought(
            "A 3 after 3, 4 keeps a 3 as the last roll, so it leads to q.",
            understood,
            states,
            right,
            solve,
            end,
            evaluation="Thought 2 has a major error: from r, a 3 does not lead to the start.",
        ),
        thought(
            f"Solving gives p = {p}, about {float(p):.4f}.",
            understood,
            states,
            right,
            solved,
            end,
            evaluation="Thought 3 is correct: each line sums to six sixths.",
        ),
        thought(
            f"The probability of an odd number of rolls is {p}, about {float(p):.4f}.",
            understood,
            states,
            right,
            solved,
            step("Conclusion", "Done", result=str(p)),
            more=False,
        ),
    ]
    return ScriptedModel.of(*({"stage": "think", "reply": reply} for reply in replies))


def print_plan(plan: list[dict[str, Any]], indent: str = "") -> None:
    """Print a plan as the seed does: a line for each step, its sub-steps below it."""
    for planned in plan:
        result = f": {planned['result']}" if planned["result"] else ""
        mark = f" ({planned['mark']})" if planned["mark"] else ""
        print(f"{indent}- [{planned['status']}] {planned['description']}{result}{mark}")
        print_plan(planned["sub_steps"] or [], indent + "  ")


def main() -> None:
    """Think, and print each thought with its plan, then the solution."""
    model = sys.argv[1] if len(sys.argv) > 1 else scripted_brain()
    result = solve_sync(PROBLEM, strategy="planned_thinking", model=model, store="memory")
    for entry in result.details["evolution"]:
        print(f"Thought {entry['thought_number']}")
        print(entry["current_thinking"])
        print_plan(entry["planning"])
    print(f"Solution: {result.answer}")


if __name__ == "__main__":
    main()
