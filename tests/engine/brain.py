"""A brain for the loopback model server that plays every strategy.

Half of the replies are the legal reply of the stage that asks, the others are made up by form; the same question always
gets the same reply, whoever asks.
"""

import random
from typing import Any

from reasonry.app.strategy_table import describe
from reasonry.core.json_schema import faults
from reasonry.strategies import STRATEGIES
from tests.filling import TEXTS, fill
from tests.servers import ChatRequest

EXAMPLES: list[tuple[set[str], dict[str, Any]]] = [
    (set(stage["reply_schema"]["properties"]), stage["reply_example"])
    for strategy in STRATEGIES.values()
    for stage in describe(strategy)["stages"]
    if stage.get("reply_schema")
]


def example_of(form: dict[str, Any]) -> Any:
    """Return a legal reply of a stage that asks in this form; None if no stage does."""
    parts = form.get("properties", {})
    fits = [example for names, example in EXAMPLES if names == set(parts)]

    def misfits(example: dict[str, Any]) -> int:
        return sum(any(faults(value, parts[name], name)) for name, value in example.items())

    return min(fits, key=misfits, default=None)


def play(request: ChatRequest) -> Any:
    """Reply to a question of any strategy."""
    form = request.form or {}
    rng = random.Random(f"{request.system}\0{request.prompt}\0{request.sample}")
    example = example_of(form)
    if example is None or rng.random() < 0.5:
        example = fill(form, rng)
    # A run that is killed at every commit is to have several: nobody answers at once.
    if request.body.get("tools") and "Turn 1" not in request.prompt:
        return next(example for names, example in EXAMPLES if "actions" in names)
    if '"subQuestion"' in request.prompt and "Follow up:" not in request.prompt:
        return {"subQuestion": "How large is each?"}
    if "<answer>" in request.prompt:
        return f"It was counted.\n\n<answer>{rng.choice(TEXTS[:-1])}</answer>"
    if "verdict" in form.get("properties", {}) and "A solution by someone else" in request.prompt:
        return {"quote": "", "reason": "Each step was checked.", "verdict": "holds"}
    if "```python" in request.prompt:
        return f"```python\n{'print(6 * 7)' if 'What failed:' in request.prompt else 'print(1 / 0)'}\n```"
    if "planning" in example:
        example = example_of(form)
        if "Thought 2" not in request.prompt:
            steps = [step | {"status": "Pending", "result": None} for step in example["planning"]]
            example = example | {"planning": steps, "next_thought_needed": True}
    return example
