"""The example package's graph of thoughts: a list sorted in parts, merged, and corrected, by a model that errs."""

import json
import random
import re
from pathlib import Path

import pytest

from reasonry import solve
from reasonry.core.budget import Budget
from reasonry.core.events import Answered
from reasonry.engine.ports import Model, OnText, Question

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parents[2] / "examples/reasonry-example-plugin/src"


class Careless(Model):
    """Sorts all numbers it is shown, and loses one now and then."""

    name = "careless"

    def __init__(self, carelessness: float) -> None:
        self.carelessness, self.calls = carelessness, 0

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        self.calls += 1
        chance = random.Random(f"{question.id}")
        *_, first = question.ask.prompt.partition("\n")
        lists = [json.loads(text) for text in re.findall(r"\[[-\d, ]*\]", first)]
        corrects = question.stage == "improvement"
        numbers = sorted(lists[0] if corrects else [number for each in lists for number in each])
        if chance.random() < self.carelessness:
            numbers.pop(chance.randrange(len(numbers)))
        return Answered(json.dumps({"numbers": numbers}))


async def sort(model: Careless, numbers: list[int], monkeypatch: pytest.MonkeyPatch, **options: int) -> str:
    monkeypatch.syspath_prepend(str(FOLDER))
    from reasonry_example_plugin.graph_of_thoughts import GRAPH_OF_THOUGHTS  # pyright: ignore

    problem, store = f"Sort {numbers}", "memory"
    result = await solve(
        problem, strategy=GRAPH_OF_THOUGHTS, model=model, store=store, options=options, budget=Budget()
    )
    return result.answer or ""


async def test_it_asks_as_often_as_the_graph_has_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = random.Random(1).choices(range(10), k=64)
    model = Careless(0)
    answer = await sort(model, numbers, monkeypatch, part=16, tries=3)
    assert answer == ", ".join(map(str, sorted(numbers)))
    # Four parts, two merges and one, three tries each.
    assert model.calls == 3 * (4 + 2 + 1)


async def test_the_best_of_several_tries_survives_a_model_that_errs(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = random.Random(2).choices(range(10), k=64)
    answer = await sort(Careless(0.4), numbers, monkeypatch, tries=5, corrections=3)
    assert answer == ", ".join(map(str, sorted(numbers)))
