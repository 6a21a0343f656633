"""`strategy="auto"`: a strategy is chosen by rule, and every face of the run says why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest, explain_choice
from reasonry.core.budget import Budget
from reasonry.errors import UsageError
from reasonry.models.scripted import ScriptedModel
from reasonry.strategies import STRATEGIES
from reasonry.strategies.choice import choose_strategy

from .engine.running import accept

pytestmark = pytest.mark.anyio

PUZZLE = "Use 4, 9, 10 and 13 to make 24"


async def test_auto_runs_the_strategy_the_rule_names_and_the_result_says_why() -> None:
    async with App("memory") as app:
        order, performers = app.order(
            RunRequest(
                problem=PUZZLE,
                strategy="Auto",
                budget=Budget(),
                participants=Participants(model="offline"),
            )
        )
        document = (await app.solve(order, performers)).document()
    name, why, _ = choose_strategy(PUZZLE, STRATEGIES.values(), has_tools=False)
    assert document["strategy"] == name == "tree_of_thoughts"
    assert document["diagnostics"]["strategy_chosen"] == why
    assert document["answer"] == "(9 - (13 - 10)) * 4 = 24"


async def test_a_strategy_that_was_named_needs_no_reason() -> None:
    async with App("memory") as app:
        order, performers = app.order(
            RunRequest(
                problem=PUZZLE,
                strategy="tree_of_thoughts",
                budget=Budget(),
                participants=Participants(model="offline"),
            )
        )
        document = (await app.solve(order, performers)).document()
    assert "strategy_chosen" not in document["diagnostics"]


async def test_the_reason_is_kept_with_the_run() -> None:
    async with App("memory") as app:
        order, _ = app.order(
            RunRequest(
                problem=PUZZLE,
                strategy="auto",
                budget=Budget(),
                participants=Participants(model="offline"),
            )
        )
        run_id = await accept(app.engine, order)
        run = (await app.engine.read(run_id)).run
    assert run.begun.why == order.why != ""


async def test_tools_lead_to_a_strategy_that_calls_them() -> None:
    def look_up(name: str) -> str:
        """Look a name up."""
        return name

    async with App("memory") as app:
        participants = Participants(model=ScriptedModel.of(), tools=[look_up])
        order, _ = app.order(
            RunRequest(
                problem="In which county is Steventon?",
                strategy="auto",
                budget=Budget(),
                participants=participants,
            )
        )
        assert order.strategy == "react"


async def test_an_option_that_the_chosen_strategy_has_not_is_refused_by_its_name() -> None:
    async with App("memory") as app:
        with pytest.raises(UsageError, match="tree_of_thoughts has no option 'samples'"):
            app.order(
                RunRequest(
                    problem=PUZZLE,
                    strategy="auto",
                    options={"samples": 3},
                    budget=Budget(),
                    participants=Participants(model="offline"),
                )
            )


QUESTIONS = [
    "Anna, Ben, Cleo and Dan sit in a row of four chairs. Anna does not sit at an end. Who sits where?",
    "Where was the husband of the person who rebuilt the Weststrand tide mill born?",
    "Write a haiku about the first snow of the year.",
    "Write an essay about the fall of Constantinople for a school newspaper.",
    "Write a Python function that returns the median of a list.",
    "Fix this:\n```python\ndef mean(xs):\n    return sum(xs) / len(xs) + 1\n```",
    "Plan a birthday party for twelve eight-year-olds in a flat, three hours long, for at most 150 euros.",
    "Prepare the launch of our product:\n1. a name\n2. a price\n3. a date\n4. a press release",
    "What is the capital of Australia?",
    "Which film came out first, Heat or Ronin?",
    "Which gas do plants take in?\nA) oxygen\nB) nitrogen\nC) carbon dioxide\nD) helium",
    "What happens to the pressure of an ideal gas if its temperature is doubled and the volume halved?",
    "A baker bakes 4 trays of 12 muffins. She sells two thirds of them at $1.50 each and the rest at half price.",
    "What is 29317 + 4826?",
    "Solve the cryptarithm SEND + MORE = MONEY.",
    "Fill in this crossword: 1 across, a large animal; 1 down, to finish.",
    "Place eight queens on a board so that none attacks another.",
    "Wer schrieb den Roman, auf dem der Film Blade Runner beruht?",
    "\u8ab0\u304c\u66f8\u3044\u305f\u304b\u3002",
]
LONG = "Who signed it? " + "Nobody. " * 3_000
TOOLS, VERIFIER = {"has_tools": True}, {"has_verifier": True}
GIVEN = [
    *((question, {}, "chain_of_thought") for question in QUESTIONS),
    *((question, TOOLS, "react") for question in QUESTIONS),
    *((question, VERIFIER, "refine") for question in QUESTIONS),
    (QUESTIONS[0], TOOLS | VERIFIER, "react"),
    (PUZZLE, {}, "tree_of_thoughts"),
    ("Use 3, 3, 8 and 8 to make 24.", {}, "tree_of_thoughts"),
    (PUZZLE, TOOLS | VERIFIER, "tree_of_thoughts"),
    (LONG, {}, "recursive"),
    (LONG, TOOLS | VERIFIER, "recursive"),
]


@pytest.mark.parametrize(("problem", "given", "expected"), GIVEN, ids=[row[0][:40] for row in GIVEN])
def test_what_comes_with_a_problem_decides_and_its_words_do_not(
    problem: str, given: dict[str, bool], expected: str
) -> None:
    name, why, _ = choose_strategy(problem, STRATEGIES.values(), **{"has_tools": False, **given})
    assert name == expected, why


def test_every_strategy_that_suits_a_kind_is_chosen_for_some_problem() -> None:
    assert {name for *_, name in GIVEN} == {one.name for one in STRATEGIES.values() if one.suits}


async def test_a_model_that_reasons_by_itself_is_asked_once() -> None:
    async with App("memory") as app:
        for model, expected in (("openai:gpt-4.1", "tree_of_thoughts"), ("openai:o3", "chain_of_thought")):
            explained = explain_choice(
                RunRequest(problem=PUZZLE, participants=Participants(model=model)), app.strategies, app.pool
            )
            assert explained["strategy"] == expected
        passed = next(each["passed"] for each in explained["considered"] if each["why"])
        assert passed == "the model reasons by itself, so it needs no tree_of_thoughts"
        assert passed in explained["why"]


@pytest.mark.parametrize(
    "strategy", ["direct", "chain_of_thought", "best_of_n", "best_of_n(cot)", "auto", "refine", "council"]
)
async def test_the_offline_model_solves_a_puzzle_in_one_reply(strategy: str) -> None:
    async with App("memory") as app:
        request = RunRequest(
            problem=PUZZLE,
            strategy=strategy,
            budget=Budget(calls=10),
            participants=Participants(model="offline"),
        )
        result = await app.solve(*app.order(request))
    assert (result.outcome, result.answer) == ("solved", "(9 - (13 - 10)) * 4 = 24")


async def test_what_auto_takes_is_explained_before_anything_runs() -> None:
    async with App("memory") as app:
        named = Participants(model="offline")
        request = RunRequest(problem=PUZZLE, budget=Budget(calls=5), participants=named)
        explained = explain_choice(request, app.strategies, app.pool)
        assert explained["strategy"] == app.order(request)[0].strategy == "chain_of_thought"
        passed = next(each for each in explained["considered"] if each["why"])
        assert (passed["kind"], passed["calls"]) == ("number_puzzle", 11)
        assert passed["passed"] == "tree_of_thoughts would take 11 calls, and the budget has 5"
        assert not await app.store.runs()


def test_the_calls_that_a_strategy_is_said_to_take_are_those_that_were_measured() -> None:
    page = (Path(__file__).parents[1] / "docs/choosing.md").read_text("utf-8")
    measured = re.findall(r"^\| `(\w+)` \| (\d+) \| \d+ \|", page, re.MULTILINE)
    assert {one.name: one.calls for one in STRATEGIES.values() if one.is_driven} == {
        name: int(calls) for name, calls in measured
    }
