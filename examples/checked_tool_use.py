"""A tool, a verifier and a model of your own; the verifier's reason goes back to the model.

python examples/checked_tool_use.py
"""

from __future__ import annotations

import json

import reasonry


def population(city: str) -> int:
    """Return how many people live in a city."""
    return {"Rome": 2_750_000}[city]


def in_digits(problem: str, path: list[str], final: bool) -> str | None:
    """Refute an answer that is no number in digits."""
    return "Give the number in digits." if final and not path[-1].isdigit() else None


async def model(messages: list[dict[str, str]]) -> str:
    """Stand where a model would."""
    prompt = messages[-1]["content"]
    if "2750000" not in prompt:
        actions = [{"tool": "population", "arguments": {"city": "Rome"}}]
        return json.dumps({"thought": "I look it up.", "actions": actions})
    answer = "2750000" if "in digits" in prompt else "many"
    return json.dumps({"thought": "Now I know.", "answer": answer})


result = reasonry.solve_sync(
    "How many people live in Rome?",
    strategy="react",
    model=model,
    tools=[population],
    verifier=in_digits,
    store="memory",
)
print(result.answer, f"after {result.usage.calls} calls")
