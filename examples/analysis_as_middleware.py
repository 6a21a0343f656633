"""The analysis pipeline as middleware: applications come in, one word about each decides where they go.

    python examples/analysis_as_middleware.py            # the model the environment names, else a script plays it
    python examples/analysis_as_middleware.py openai:gpt-6-luna

Whatever is not a clean `Accepted`, a run that failed included, never reaches the approval queue.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import reasonry
from reasonry.ext import ScriptedModel
from reasonry.models.choose import is_configured

RULES = (
    "A travel application needs a purpose, a date, and a total of at most 1000 that is the sum of its items."
)
APPLICATIONS = {
    "T-1": "Purpose: the trade fair. Date: 3 May. Items: 420 flight, 380 hotel. Total: 800.",
    "T-2": "Purpose: the trade fair. Date: 3 May. Items: 640 flight, 510 hotel. Total: 950.",
    "T-3": "Purpose: see a friend of the family. Items: 90 train. Total: 90.",
}
QUEUES = {"Accepted": "approval", "Rejected": "revision"}


def played(name: str) -> ScriptedModel:
    """Return a model that plays the analysis of one application from a script; the last one hedges."""
    sums = {"T-1": "420 + 380", "T-2": "640 + 510", "T-3": "90"}
    said = {"T-1": ["accepted"], "T-2": ["Rejected"], "T-3": ["It depends."] * 3}[name]
    found = {
        "T-1": "All is there.",
        "T-2": "The total is not the sum of the items.",
        "T-3": "The date is missing.",
    }
    tasks = [
        {"resource_name": "knowledge", "task_query": "List what the rules ask for and what is there"},
        {"resource_name": "py_executor", "task_query": "Add up the items"},
    ]
    lines: list[tuple[str, dict[str, Any]]] = [
        ("plan_generation", {"tasks": tasks}),
        ("task_execution", {"answer": found[name], "confidence": 0.9}),
        ("quality_evaluation", {"quality": "ACCEPTED", "reason": "It stands in the application."}),
        ("task_execution", {"code": sums[name]}),
        ("quality_evaluation", {"quality": "ACCEPTED", "reason": "The items are those named."}),
        ("iteration_decision", {"continue_iterations": False, "decision_rationale": "Nothing is open."}),
        ("synthesis", {"answer": found[name], "final_answer": found[name], "key_findings": [found[name]]}),
        *(("focused_answer", {"value": value}) for value in said),
    ]
    return ScriptedModel.of(*({"stage": stage, "reply": reply} for stage, reply in lines))


async def decide(name: str, text: str, model: Any) -> tuple[str, str]:
    """Return the queue of an application, and why."""
    result = await reasonry.solve(
        "Does this application meet the rules?",
        strategy="analysis",
        model=model,
        options={
            "focused_answer_type": "accepted/rejected",
            "context": f"{RULES}\n\n{text}",
            "candidate_plans": 1,
            "complexity_analysis": False,
        },
        budget=reasonry.Budget(calls=60, seconds=300),
        store="memory",
    )
    if result.answer is None:
        return "a person", f"{result.termination.reason}: {result.termination.detail}"
    return QUEUES[str(result.answer)], str(result.details["final_answer"])


async def main() -> None:
    """Decide on all applications, one after another."""
    named = sys.argv[1] if len(sys.argv) > 1 else None
    plays = named is None and not is_configured(os.environ)
    for name, text in APPLICATIONS.items():
        queue, why = await decide(name, text, played(name) if plays else named)
        print(f"{name} -> {queue} ({why})")


if __name__ == "__main__":
    asyncio.run(main())
