"""Brief replies say all that the full ones say, once; nobody is referred to what they were not shown."""

from typing import Any
from unittest.mock import Mock

import pytest

from reasonry.core.options import read_options
from reasonry.engine.coach import Coach
from reasonry.engine.coach_input import read_answers
from reasonry.engine.compact_replies import equal_questions
from reasonry.engine.open_questions import handed_out
from reasonry.strategies import STRATEGIES

from ..playing import World
from ..test_every_strategy import each_driven, world
from .answering import engine, order, performers_of, spelled_out
from .playing import by

pytestmark = pytest.mark.anyio

NOBODY = performers_of(World(0))


def single(questions: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Return id, stage and prompt of each question, those that were joined apart again."""
    return sorted(
        (effect_id, question["stage"], question["prompt"])
        for question in questions
        for effect_id, _ in read_answers({question["id"]: [0] * question.get("count", 1)})
    )


@each_driven
async def test_a_caller_that_keeps_what_is_shared_can_spell_out_each_question(strategy: Any) -> None:
    answers, engines = world(strategy, 1, 0.0), engine()
    brief, full = Coach(engines, brief=True), Coach(engines)
    shown = await brief.start(order(strategy, strategy.options()), NOBODY)
    shared: dict[str, Any] = {}
    for _ in range(40):
        shared |= shown.get("shared", {})
        if shown["status"] != "active":
            break
        asked = (await full.status(shown["run_id"]))["questions"]
        assert single(spelled_out(shown["questions"], shared)) == single(asked)
        status = await brief.status(shown["run_id"])
        assert single(spelled_out(status["questions"], status["shared"])) == single(asked)
        examples = {one["id"]: answers.examples[one["stage"]] for one in asked}
        assert len(str(shown["questions"])) <= len(str(asked)) + 400
        shown = await brief.answer(shown["run_id"], examples, by(NOBODY))
    assert shown["status"] != "active" or strategy.name != "linear"
    if "result" in shown:
        assert shown["result"]["why"] == (await full.status(shown["run_id"]))["result"]["why"]


async def test_equal_questions_are_one_with_a_count_and_take_their_answers_as_a_list() -> None:
    strategy, coach = STRATEGIES["self_consistency"], Coach(engine(), brief=True)
    options = read_options(strategy, {"samples": 5, "window": 5, "stop": "full"})
    shown = await coach.start(order(strategy, options), NOBODY)
    (question,) = shown["questions"]
    assert (question["id"], question["count"]) == ("e1,e2,e3,e4,e5", 5)
    assert "5 fresh sub-agents" in question["note"]
    shown = await coach.answer(shown["run_id"], {"e1,e2,e3,e4,e5": ["12", "12 km"]}, by(NOBODY))
    assert (shown["questions"][0]["id"], shown["questions"][0]["count"]) == ("e3,e4,e5", 3)
    shown = await coach.answer(shown["run_id"], {"e4": "12"}, by(NOBODY))
    assert shown["questions"][0]["id"] == "e3,e5"
    shown = await coach.answer(shown["run_id"], {"e3,e5": [12, "12.5"]}, by(NOBODY))
    assert (shown["status"], shown["result"]["answer"]) == ("done", "12")
    assert "usage" in (await coach.status(shown["run_id"]))["result"]


async def test_an_answer_makes_its_questions_once_and_those_asked_next_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    strategy, coach = STRATEGIES["planned_thinking"], Coach(engine(), brief=True)
    shown = await coach.start(order(strategy, strategy.options()), NOBODY)
    handing, joining = Mock(side_effect=handed_out), Mock(side_effect=equal_questions)
    monkeypatch.setattr("reasonry.engine.coach.handed_out", handing)
    monkeypatch.setattr("reasonry.engine.coach.equal_questions", joining)
    (question,) = shown["questions"]
    answer = world(strategy, 1, 0.0).examples[question["stage"]]
    shown = await coach.answer(shown["run_id"], {question["id"]: answer}, by(NOBODY))
    assert (len(shown["questions"]), handing.call_count, joining.call_count) == (1, 2, 2)


async def test_what_another_caller_was_shown_is_not_referred_to() -> None:
    strategy, engines = STRATEGIES["self_consistency"], engine()
    coach = Coach(engines, brief=True)
    options = read_options(strategy, {"over": "tree_of_thoughts", "samples": 2, "window": 2})
    shown = await coach.start(order(strategy, options), NOBODY)
    run_id, (question,) = shown["run_id"], shown["questions"]
    assert question["id"] == "e1/e1,e2/e1"
    first = await coach.answer(
        run_id, {"e1/e1": ["Add 4 and 6 first, for 10", "Subtract 1 from 6 first, for 5"]}, by(NOBODY)
    )
    valued = next(one for one in first["questions"] if one["id"].startswith("e1/"))
    assert any(f"[#{text_id}]" in valued["prompt"] for text_id in first["shared"])
    # The second caller knows only what its own question showed.
    second = await coach.answer(run_id, {"e2/e1": ["c", "d"]}, by(NOBODY))
    again = next(one for one in second["questions"] if one["id"].startswith("e1/"))
    missing = {text_id for text_id in first["shared"] if f"[#{text_id}]" in again["prompt"]}
    assert missing
    assert missing <= second["shared"].keys()
