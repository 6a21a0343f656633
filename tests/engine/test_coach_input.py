"""An answer that cannot be read is refused before anything is recorded; those that can be read come in many shapes."""

import json
from typing import Any

import pytest

from reasonry.core.budget import Budget
from reasonry.core.options import read_options
from reasonry.engine.coach import Coach
from reasonry.engine.coach_input import read_answers
from reasonry.errors import AnswerRefusedError, ConflictError, UsageError
from reasonry.strategies import STRATEGIES
from reasonry.strategies.tree_of_thoughts.asks import NO_THOUGHTS, WANTED

from ..playing import World
from ..test_every_strategy import each_driven, world
from .answering import engine, order, performers_of
from .playing import by

pytestmark = pytest.mark.anyio

NOBODY = performers_of(World(0))


async def lines(coach: Coach, run_id: str) -> int:
    return len(await coach.engine.store.lines(run_id))


async def started(name: str, budget: Budget | None = None, **options: Any) -> tuple[Coach, dict[str, Any]]:
    strategy, coach = STRATEGIES[name], Coach(engine())
    return coach, await coach.start(order(strategy, read_options(strategy, options), budget), NOBODY)


async def test_a_refused_answer_leaves_the_run_as_it_was() -> None:
    coach, shown = await started("tree_of_thoughts", Budget(calls=2))
    before = await lines(coach, shown["run_id"])
    for _ in range(5):
        with pytest.raises(AnswerRefusedError) as caught:
            await coach.answer(shown["run_id"], {"e1": "{"}, by(NOBODY))
        assert caught.value.code == "answer_refused"
        assert caught.value.details["refused"] == [{"id": "e1", "reason": f"{NO_THOUGHTS} {WANTED}"}]
        assert caught.value.status == shown == await coach.status(shown["run_id"])
    assert await lines(coach, shown["run_id"]) == before
    shown = await coach.answer(shown["run_id"], {"e1": {"thoughts": ["walk", "run"]}}, by(NOBODY))
    assert shown["questions"][0]["stage"] == "continuation_decision", "the last call is for the answer"


async def test_the_other_answers_of_the_call_are_taken() -> None:
    coach, shown = await started("self_consistency", samples=5, window=5)
    answers = {"e1": "12", "e2": "I had a look at it.\nIt was hard.", "e3": 12, "e4": "", "e5": [12]}
    with pytest.raises(AnswerRefusedError, match=r"e2: .*; e4: .*The other 3 were taken") as caught:
        await coach.answer(shown["run_id"], answers, by(NOBODY))
    status = caught.value.status
    assert [question["id"] for question in status["questions"]] == ["e2", "e4"]
    assert status["progress"]["answered"] == 3
    assert all("\n" not in entry["reason"] for entry in caught.value.details["refused"])


@each_driven
async def test_each_example_of_a_form_is_taken_at_the_door(strategy: Any) -> None:
    answers, coach = world(strategy, 1, 0.0), Coach(engine())
    shown = await coach.start(order(strategy, strategy.options()), NOBODY)
    (question, *_) = shown["questions"]
    example = answers.examples[question["stage"]]
    assert (await coach.answer(shown["run_id"], {question["id"]: example}, by(NOBODY)))["status"]


async def test_a_doubted_answer_is_asked_for_again_once_and_then_taken() -> None:
    coach, shown = await started("chain_of_thought")
    doubtful = {"reasoning": "2 + 2 = 5", "answer": "5"}
    shown = await coach.answer(shown["run_id"], {"e1": doubtful}, by(NOBODY))
    if shown["status"] == "active":
        (again,) = shown["questions"]
        shown = await coach.answer(shown["run_id"], {again["id"]: doubtful}, by(NOBODY))
    assert shown["status"] == "done"


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"e1": "a", "e2": 7}, [("e1", "a"), ("e2", "7")]),
        ({"id": "e1", "answer": True}, [("e1", "true")]),
        ([{"id": "e1", "answer": [0.5]}, {"e2": None}], [("e1", "[0.5]"), ("e2", "null")]),
        ({"answers": [{"id": "e1", "answer": "a"}]}, [("e1", "a")]),
        ('{"e1": {"x": 1}}', [("e1", '{"x": 1}')]),
        ('[{"id": "e4/e1", "answer": "a"}]', [("e4/e1", "a")]),
        ({"e2,e3,e4": ["a", 1, {}]}, [("e2", "a"), ("e3", "1"), ("e4", "{}")]),
        ({"e2, e4": "a"}, [("e2", "a")]),
        ({"e2,e4/e1": '["a", "b"]'}, [("e2", "a"), ("e4/e1", "b")]),
        ({}, []),
        ([], []),
    ],
)
def test_answers_come_in_many_shapes(given: Any, read: list[tuple[str, str]]) -> None:
    assert read_answers(given) == read
    assert isinstance(given, str) or read_answers(json.dumps(given)) == read


@pytest.mark.parametrize(
    "given",
    [
        *("e1", "12", 7, None, True, b"x", ["a"], [["e1", "a"]]),
        *({"id": "e1"}, {"": "a"}, {"e1,e2": [1, 2, 3]}, [{"id": 3, "answer": 1}]),
    ],
)
def test_what_has_no_shape_is_refused_with_the_shape(given: Any) -> None:
    with pytest.raises(UsageError, match="answers"):
        read_answers(given)


TEXT = {"type": "string"}
STEPS = {"type": "object", "properties": {"steps": {"type": "array"}, "answer": {"type": "string"}}}


@pytest.mark.parametrize(
    ("given", "schema", "read"),
    [
        ("It is 5.", TEXT, "It is 5."),
        ("5", TEXT, "5"),
        (5, TEXT, "5"),
        (["It is 5."], TEXT, "It is 5."),
        ({"answer": "42"}, TEXT, "42"),
        ({"answer": "42"}, STEPS, '{"answer": "42"}'),
        ({"steps": ["add"]}, STEPS, '{"steps": ["add"]}'),
        ([{"steps": ["add"]}], STEPS, '{"steps": ["add"]}'),
        ('{"steps": ["add"]}', STEPS, '{"steps": ["add"]}'),
        ({"answers": "It is 5."}, TEXT, "It is 5."),
        (["a", "b"], {"type": "array"}, '["a", "b"]'),
        (["add", "divide"], STEPS, '["add", "divide"]'),
        ([{"id": "#E1", "tool": "a"}, {"x": 0}], STEPS, '[{"id": "#E1", "tool": "a"}, {"x": 0}]'),
    ],
)
def test_the_only_question_takes_its_answer_without_its_id(given: Any, schema: Any, read: str) -> None:
    assert read_answers(given, {"e7": schema}) == [("e7", read)]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (["a", "b"], [("e1", "a"), ("e4", "b")]),
        (["a"], [("e1", "a")]),
        ([{"steps": []}, {"answer": "b"}], [("e1", '{"steps": []}'), ("e4", '{"answer": "b"}')]),
        ([{"e4": "b"}], [("e4", "b")]),
    ],
)
def test_equal_questions_that_wait_alone_take_the_list_of_their_answers(given: Any, read: Any) -> None:
    assert read_answers(given, {"e1,e4": STEPS}) == read


@pytest.mark.parametrize("given", [{"e1": "a"}, {"c1e2": {}}, {"id": "x", "answer": "a"}, [], {}])
def test_what_names_a_question_is_read_as_it_is_where_a_single_one_waits(given: Any) -> None:
    assert read_answers(given, {"e7": STEPS}) == read_answers(given)


@pytest.mark.parametrize(
    ("given", "waiting", "told"),
    [
        *((given, ("e7",), "e7") for given in (None, "", b"x", ["a", "b"], [["a"]], {"id": "e1"})),
        *((given, ("e7", "e8"), '"e7": ANSWER, "e8": ANSWER') for given in ("It is 5.", 5, ["It is 5."])),
    ],
)
def test_what_is_no_answer_is_refused_naming_the_questions_that_wait(
    given: Any, waiting: tuple[str, ...], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        read_answers(given, dict.fromkeys(waiting, TEXT))


async def test_a_question_that_nobody_asked_is_a_conflict() -> None:
    coach, shown = await started("tree_of_thoughts")
    with pytest.raises(ConflictError, match="was never asked"):
        await coach.answer(shown["run_id"], {"e2": "a"}, by(NOBODY))


@pytest.mark.parametrize(
    ("strategy", "answer"),
    [
        ("self_consistency", "12"),
        ("self_consistency", 12),
        ("self_consistency", "8 / (3 - 8/3)"),
        ("chain_of_thought", "8 / (3 - 8/3)"),
        ("linear", 12.5),
        ("tree_of_thoughts", ["walk", "run"]),
        ("tree_of_thoughts", "1. walk\n2. run"),
        ("analysis", {"complexityLevel": "MODERATE"}),
    ],
)
async def test_liberal_answers_are_taken(strategy: str, answer: Any) -> None:
    coach, shown = await started(strategy)
    effect_id = shown["questions"][0]["id"]
    assert (await coach.answer(shown["run_id"], {effect_id: answer}, by(NOBODY)))["progress"]["answered"] == 1
