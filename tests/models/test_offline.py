"""The offline model: proposes and values by computing; refuses what it cannot compute."""

import asyncio
import itertools
import json
import random
from typing import Any

import msgspec
import pytest

from reasonry.core.bodies import Conclusion
from reasonry.core.effects import Ask, Verify
from reasonry.core.events import Event
from reasonry.core.machine import begin, open_effects
from reasonry.engine.ports import Question
from reasonry.errors import ModelError
from reasonry.models.offline import OfflineModel
from reasonry.puzzles.reading import read_puzzle
from reasonry.puzzles.solutions import solve as known
from reasonry.puzzles.steps import follow
from reasonry.puzzles.term import Puzzle
from reasonry.strategies import STRATEGIES
from reasonry.tools.verifiers import exact_verifier

from ..playing import advance
from ..servers.game24 import check

pytestmark = pytest.mark.anyio

PROBLEM = "Use 4, 9, 10 and 13 to make 24"


def puzzle_of(problem: str) -> Puzzle:
    puzzle = read_puzzle(problem)
    assert puzzle is not None
    return puzzle


def solves(problem: str, answer: str | None) -> bool:
    return check(answer or "", puzzle_of(problem)) == (True, "")


async def ask(**facts: Any) -> Any:
    question = Question("e1", "any", Ask("in words", facts={"problem": PROBLEM, **facts}))
    return json.loads((await OfflineModel().answer(question)).text)


async def test_it_proposes_legal_moves_and_one_that_leads_to_the_target() -> None:
    thoughts = (await ask(kind="propose", path=[], count=3, steps_left=3))["thoughts"]
    puzzle = puzzle_of(PROBLEM)
    assert len(set(thoughts)) == 3
    assert all(follow(puzzle, [one]).fault == "" and follow(puzzle, [one]).moves == 1 for one in thoughts)
    scores = (await ask(kind="value", path=[], thoughts=thoughts, steps_left=2))["scores"]
    assert scores["1"] > 0.5
    assert all(0 <= score < 1 for score in scores.values())


async def test_a_question_for_the_whole_solution_is_answered_at_once() -> None:
    assert solves(PROBLEM, (await ask(kind="sample"))["answer"])
    reply = await ask(kind="reason")
    moves = reply["reasoning"].split("\n\n")
    assert solves(PROBLEM, reply["answer"])
    assert (len(moves), follow(puzzle_of(PROBLEM), moves).fault) == (3, "")


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


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({}, "cannot follow this strategy; use `auto`"),
        ({"kind": "summary"}, "cannot follow this strategy; use `auto`"),
        (
            {"kind": "propose", "problem": "What is love?", "path": []},
            "only .* such as .*; name another model$",
        ),
    ],
)
async def test_anything_else_is_refused_with_a_sentence(facts: dict[str, Any], why: str) -> None:
    with pytest.raises(ModelError, match=why) as error:
        await ask(**facts)
    assert (error.value.code, error.value.retryable) == ("model_refused", False)


async def test_an_answer_in_a_form_is_refused_as_such() -> None:
    with pytest.raises(ModelError, match="does not put an answer in a form"):
        await ask(kind="answer_form", problem="Use 4, 9, 10 and 13 to make 24", answer="24")


@pytest.mark.parametrize(
    "facts",
    [
        {"kind": "propose", "path": "no list"},
        {"kind": "propose", "count": 0},
        {"kind": "propose", "count": "many"},
        {"kind": "value", "thoughts": [1]},
    ],
)
async def test_facts_that_do_not_fit_are_refused(facts: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="cannot read this question") as error:
        await ask(**facts)
    assert error.value.code == "model_refused"


async def test_a_plain_question_is_answered_outright() -> None:
    form = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
    plain = Ask("in words", facts={"problem": PROBLEM}, form=form)
    answer = json.loads((await OfflineModel().answer(Question("e1", "any", plain))).text)["answer"]
    assert solves(PROBLEM, answer)
    hopeless = Ask("in words", facts={"problem": "Use 1, 1, 1 and 1 to make 24"}, form=form)
    with pytest.raises(ModelError, match="24 cannot be made from 1, 1, 1, 1"):
        await OfflineModel().answer(Question("e1", "any", hopeless))


async def test_the_longest_puzzle_does_not_hold_up_other_work() -> None:
    # Drawn afresh, so that no other test has had it solved before.
    numbers = " ".join(map(str, random.sample(range(100, 1000), 6)))
    problem = f"make 9999991 from {numbers}"
    facts = {"kind": "propose", "problem": problem, "count": 3, "steps_left": 3}
    task = asyncio.create_task(OfflineModel().answer(Question("e1", "any", Ask("", facts=facts))))
    turns = 0
    while not task.done():
        await asyncio.sleep(0.001)
        turns += 1
    thoughts = json.loads((await task).text)["thoughts"]
    assert (len(thoughts), turns > 10) == (3, True)


# -- through the machine


async def solve(problem: str, *, verify: bool = False, **options: Any) -> Conclusion:
    model, verifier = OfflineModel(), exact_verifier(problem)
    assert verifier is not None
    strategy = STRATEGIES["tree_of_thoughts"]
    step = begin(strategy, problem, msgspec.convert({"verify": verify, **options}, strategy.options))
    while pending := open_effects(step.snapshot):
        one = pending[0]
        if isinstance(one.effect, Ask):
            event: Event = await model.answer(Question(one.id, one.stage, one.effect))
        else:
            assert isinstance(one.effect, Verify)
            event = await verifier.verify(one.effect)
        step = advance(strategy, step.snapshot, one.id, event)
    assert step.snapshot.conclusion is not None
    return step.snapshot.conclusion


HANDS = list(itertools.combinations_with_replacement(range(1, 14), 4))


@pytest.mark.parametrize("hand", HANDS[::60], ids=str)
@pytest.mark.parametrize("verify", [False, True], ids=["bare", "verified"])
async def test_a_search_solves_what_can_be_solved_and_answers_nothing_else(
    hand: tuple[int, ...], verify: bool
) -> None:
    problem = f"Use {', '.join(map(str, hand))} to make 24"
    outcome = await solve(problem, verify=verify)
    can_be_solved = known(puzzle_of(problem)) is not None
    assert (outcome.answer is not None) is solves(problem, outcome.answer) is can_be_solved
    assert can_be_solved or outcome.reason


@pytest.mark.parametrize(
    "problem",
    [
        "make 7 from 3 and 4",
        "Use 1 and 2 to make 1/2",
        "Make -3 from 1 and 4",
        "make 10 from 1 2 5",
        "reach 100 with 2 3 5 7 11",
        "make 1/7 from 1 1 2 3 5",
        "make 952 from 25 50 75 100 3 6",
        "make 100 from 1 2 3 4 5 6",
        "Use 0.5, 3 and 4 to make 14",
    ],
)
@pytest.mark.parametrize("verify", [False, True], ids=["bare", "verified"])
async def test_puzzles_of_two_to_six_numbers_need_no_options(problem: str, verify: bool) -> None:
    assert known(puzzle_of(problem)) is not None, "the puzzle of this test can be solved"
    assert solves(problem, (await solve(problem, verify=verify)).answer)


@pytest.mark.parametrize(
    "problem", ["make 99 from 1 and 2", "make 1000 from 1 1 1", "make 99991 from 1 1 2 2 3 3"]
)
async def test_puzzles_that_cannot_be_solved_end_without_an_answer(problem: str) -> None:
    outcome = await solve(problem, verify=True)
    assert (outcome.answer, bool(outcome.reason)) == (None, True)
    assert (await solve(problem)).answer is None


@pytest.mark.parametrize(
    "options",
    [
        {"max_depth": 5},
        {"max_depth": 1},
        {"traversal_strategy": "dfs"},
        {"traversal_strategy": "bfs", "beam_width": 5, "expand_width": 5, "branching_factor": 8},
    ],
)
async def test_other_ways_to_search_solve_it_too(options: dict[str, Any]) -> None:
    for problem in (PROBLEM, "make 100 from 1 2 3 4 5 6"):
        assert solves(problem, (await solve(problem, **options)).answer)
