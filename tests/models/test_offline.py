"""The offline model: proposes and values by computing; refuses what it cannot compute."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from typing import Any

import pytest

from reasonry.core.arithmetic import Puzzle, follow, read_puzzle
from reasonry.core.effects import Ask
from reasonry.errors import ModelError
from reasonry.models.offline import OfflineModel
from reasonry.runtime.ports import Question

pytestmark = pytest.mark.anyio

PROBLEM = "Use 4, 9, 10 and 13 to make 24"


async def ask(**facts: Any) -> Any:
    question = Question("e1", "any", Ask("in words", facts={"problem": PROBLEM, **facts}))
    return json.loads((await OfflineModel().answer(question)).text)


async def test_it_proposes_legal_moves_and_one_that_leads_to_the_target() -> None:
    thoughts = (await ask(kind="propose", path=[], count=3, steps_left=3))["thoughts"]
    puzzle = read_puzzle(PROBLEM)
    assert puzzle is not None
    assert len(set(thoughts)) == 3
    assert all(follow(puzzle, [one]).fault == "" and follow(puzzle, [one]).moves == 1 for one in thoughts)
    scores = (await ask(kind="value", path=[], thoughts=thoughts, steps_left=2))["scores"]
    assert scores["1"] > 0.5
    assert all(0 <= score < 1 for score in scores.values())


async def test_a_thought_holds_as_many_moves_as_the_depth_asks_for() -> None:
    thoughts = (await ask(kind="propose", path=[], count=2, steps_left=1))["thoughts"]
    scores = (await ask(kind="value", path=[], thoughts=thoughts, steps_left=0))["scores"]
    assert scores["1"] == 1.0


async def test_scores_rise_along_the_way_and_are_0_where_there_is_none() -> None:
    path: list[str] = []
    best: list[float] = []
    for left in (3, 2, 1):
        thoughts = (await ask(kind="propose", path=path, count=3, steps_left=left))["thoughts"]
        scores = (await ask(kind="value", path=path, thoughts=thoughts, steps_left=left - 1))["scores"]
        best.append(max(scores.values()))
        path.append(thoughts[0])
    assert best == sorted(best)
    assert best[-1] == 1.0
    assert all(after - before >= 0.1 for before, after in itertools.pairwise(best))
    lost = (await ask(kind="value", path=[], thoughts=["4 * 9 = 36", "4 * 9 = 35", "hm"], steps_left=2))[
        "scores"
    ]
    assert (lost["2"], lost["3"]) == (0.0, 0.0)


async def test_the_answer_is_closed_only_where_the_path_arrives() -> None:
    path = ["10 - 4 = 6", "13 - 9 = 4", "6 * 4 = 24"]
    assert (await ask(kind="answer", path=path))["answer"] == "(10 - 4) * (13 - 9) = 24"
    assert (await ask(kind="answer", path=path[:2]))["answer"] is None


@pytest.mark.parametrize("facts", [{}, {"kind": "propose", "problem": "What is love?", "path": []}])
async def test_anything_else_is_refused_with_a_sentence(facts: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="only solves number puzzles") as error:
        await ask(**facts)
    assert (error.value.code, error.value.retryable) == ("model_refused", False)


def test_it_says_what_it_serves() -> None:
    assert OfflineModel.serves(PROBLEM)
    assert not OfflineModel.serves("Write a poem about 24")
    assert read_puzzle(PROBLEM) == Puzzle(tuple(map(Fraction, (4, 9, 10, 13))), Fraction(24))
