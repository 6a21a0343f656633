"""A brain for the loopback model server that plays every strategy, and a tool to play with.

Half of the replies are the legal reply of the stage that asks, the others are made up by form; the same question always
gets the same reply, whoever asks.
"""

from __future__ import annotations

import random
from typing import Any

from reasonry.core.describe import describe
from reasonry.core.json_schema import faults
from reasonry.strategies import STRATEGIES
from tests.filling import fill
from tests.servers import ChatRequest

EXAMPLES: list[dict[str, Any]] = [
    stage["reply_example"]
    for strategy in STRATEGIES.values()
    for stage in describe(strategy)["stages"]
    if stage.get("reply_schema")
]


def example_of(form: dict[str, Any]) -> Any:
    """Return a legal reply of a stage whose form has the names of this one and takes it; None if no stage has it."""
    names = set(form.get("properties", {}))
    fits = (one for one in EXAMPLES if names and set(one) <= names and not list(faults(one, form, "")))
    return max(fits, key=len, default=None)


def play(request: ChatRequest) -> Any:
    """Reply to a question of any strategy."""
    form = request.form or {}
    rng = random.Random(f"{request.system}\0{request.prompt}\0{request.sample}")
    example = example_of(form)
    if example is None or rng.random() < 0.5:
        example = fill(form, rng)
    # A run that is killed at every commit is to have several: nobody answers at once.
    if "actions" in form.get("properties", {}) and "Turn 1" not in request.prompt:
        example = example_of(form)
    if "subQuestion" in form.get("properties", {}) and "Follow up:" not in request.prompt:
        example = {"thought": "It rests on their sizes.", "subQuestion": "How large is each?", "answer": None}
    if "```python" in request.system:
        return f"```python\n{'print(6 * 7)' if 'What failed:' in request.prompt else 'print(1 / 0)'}\n```"
    if "planning" in example:
        example = example_of(form)
        if "Thought 2" not in request.prompt:
            steps = [step | {"status": "Pending", "result": None} for step in example["planning"]]
            example = example | {"planning": steps, "next_thought_needed": True}
    return example


def search(query: str) -> str:
    """Finds things."""
    return f"What is known of {query[:40]}."
