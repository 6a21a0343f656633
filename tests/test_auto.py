"""`strategy="auto"`: a strategy is chosen by rule, and every face of the run says why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reasonry.app.participants import Participants
from reasonry.app.use_cases import RunRequest
from reasonry.app.wiring import App
from reasonry.core.budget import Budget
from reasonry.errors import UsageError
from reasonry.models.scripted import ScriptedModel
from reasonry.strategies import STRATEGIES
from reasonry.strategies.choice import choose_strategy

from .engine.running import accept

pytestmark = pytest.mark.anyio

CROSSWORD = "Fill in this crossword: 1 across, a large animal; 1 down, to finish."
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


SEATING = (
    "Anna, Ben, Cleo and Dan sit in a row of four chairs. Anna does not sit at an end. Ben sits immediately to the "
    "right of Cleo. Dan does not sit next to Anna. Who sits where, from left to right?"
)
PARTY = (
    "Plan a birthday party for twelve eight-year-olds in a flat, three hours long, for at most 150 euros. Give a "
    "schedule, a shopping list with prices and what to do if it rains."
)
BAKER = (
    "A baker bakes 4 trays of 12 muffins. She sells two thirds of them at $1.50 each and the rest at half price. How "
    "many dollars does she take in?"
)
PLANS = (
    "Plan A costs 15 euros a month with 100 free minutes and 10 cents for each further minute. Plan B costs 22 euros a "
    "month with unlimited minutes, plus 30 euros once. I call 180 minutes a month. Which is cheaper over one year?"
)
BOTTLE = (
    "A closed rigid steel bottle holds air at 20 degrees C and a gauge pressure of 2.0 bar. It warms to 60 degrees C. "
    "Atmospheric pressure is 1.0 bar. What does the gauge show?"
)
MILL = "Where was the husband of the person who rebuilt the Weststrand tide mill born?"
NOVELIST = "Who was the monarch of the country whose capital is Oslo when Knut Hamsun was born?"
ALONE = {
    "chain_of_thought": [
        SEATING,
        MILL,
        NOVELIST,
        "Write a haiku about the first snow of the year.",
        "Write a limerick about a cat who plans to rob the bank in the centre of the town.",
        "Draft a slogan for a shop that sells the best bread in the town.",
        "What is the capital of Australia?",
        "What is the name of the river that flows through the city of Cologne?",
        "Who wrote the novel that the film Blade Runner is based on?",
        "Explain the difference between a virus and a bacterium to a child.",
        "What is 19 % of 250 euros?",
        "A rope of 7.5 m is cut into pieces of 45 cm. How many whole pieces are there?",
        "What changed in the law on the base salary of teachers between 1998 and 2004?",
        "Is it right to lie to a friend to spare her feelings?",
        "What did the Treaty of Versailles of 1919 say about the Saar?",
        "Which is heavier, a kilogram of feathers or a kilogram of lead?",
        "If all bloops are razzies and all razzies are lazzies, are all bloops lazzies?",
        "Translate into French: The schedule of the trains to the coast has changed.",
        "Why did the Soviet Union fall apart in the years 1989-1991?",
        "When did Queen Victoria's reign begin?",
        "A man looks at a portrait and says: brothers and sisters I have none, but that man's father is my father's "
        "son. Who is in the portrait?",
        "Summarise the plot of Hamlet in three sentences.",
    ],
    "tree_of_thoughts": [
        PUZZLE,
        "Use 3, 3, 8 and 8 to make 24.",
        "Solve the cryptarithm SEND + MORE = MONEY.",
        "Fill this 5 by 5 mini crossword: across 1, a bird of prey; across 2, to be in debt.",
        "Arrange the numbers 1 to 9 in a ring so that no two neighbours add up to a prime.",
        "Assign nine nurses to three shifts such that each works one night and no two share all nights.",
        "Place eight queens on a board so that none attacks another.",
        "Colour this map with three colours so that adjacent countries differ: A-B, B-C, C-A, C-D.",
    ],
    "scratchpad": [
        "Compute 4736 * 58 step by step.",
        "What is 29317 + 4826?",
        "Multiply 48213 by 77.",
        "Work out 17 * 23 + 48 / 6 - 9 * 14 + 3.",
        "What does this print?\n\nx = 1\nfor i in range(4):\n    x = x * 2 + i\nprint(x)",
    ],
    "self_consistency": [
        BAKER,
        PLANS,
        "Tom has 3 boxes of 12 pencils. He gives away 8 and then buys 2 more boxes. How many pencils does he have?",
        "Which gas do plants take in?\nA) oxygen\nB) nitrogen\nC) carbon dioxide\nD) helium",
    ],
    "step_back": [
        BOTTLE,
        "What happens to the pressure of an ideal gas if its temperature is doubled and the volume halved?",
        "A ball is thrown upwards at a velocity of 12 m/s. How high does it rise, given the acceleration of gravity?",
        "Predict how the equilibrium of the reaction changes when more acid is added.",
    ],
    "best_of_n": [
        "Write a Python function that returns the median of a list.",
        "Implement quicksort in Rust, in place.",
        "Write a regular expression for dates such as 2026-11-25.",
        "Fix this:\n```python\ndef mean(xs):\n    return sum(xs) / len(xs) + 1\n```",
        "Write unit tests for the parser below.",
    ],
    "refine": [
        "Write an essay about the fall of Constantinople for a school newspaper.",
        "Draft an e-mail to my landlord about the broken heating.",
        "Please write me a cover letter for a post as a nurse.",
        "Compose a short story about a lighthouse keeper and her brother.",
    ],
    "planned_thinking": [
        PARTY,
        "Design a twelve-week course on statistics for nurses, with exercises and an exam.",
        "Prepare the launch of our product:\n1. a name\n2. a price\n3. a date\n4. a press release",
        "What went wrong in the project? Who has to be told? What do we do first?",
        "Please draft a migration from our own servers to the cloud, with risks and costs for each step.",
    ],
}
WITH_TOOLS = {
    "self_ask": [
        MILL,
        NOVELIST,
        "What is the population of the town whose mayor won the prize?",
        "In which city was the author of the novel that inspired the film born?",
    ],
    "rewoo": [
        "Which film came out first, Heat or Ronin?",
        "Who is taller, the present king of Norway or the present king of Spain?",
        "What is the elevation of the Orton belt? Who drew its map?",
    ],
    "react": ["In which county is Steventon?", "When does the library open on Sundays?"],
    "tree_of_thoughts": [PUZZLE],
}
REAL = [(problem, False, name) for name, asked in ALONE.items() for problem in asked] + [
    (problem, True, name) for name, asked in WITH_TOOLS.items() for problem in asked
]


@pytest.mark.parametrize(("problem", "has_tools", "expected"), REAL, ids=[row[0][:40] for row in REAL])
def test_a_problem_gets_the_strategy_of_its_kind(problem: str, has_tools: bool, expected: str) -> None:
    name, why, _ = choose_strategy(problem, STRATEGIES.values(), has_tools=has_tools)
    assert name == expected, why


def test_there_are_problems_enough_of_every_kind() -> None:
    assert len({problem for problem, _, _ in REAL}) >= 40
    suiting = {one.name for one in STRATEGIES.values() if one.suits}
    long, *_ = choose_strategy("Who signed it? " + "Nobody. " * 3_000, STRATEGIES.values(), has_tools=False)
    checked, *_ = choose_strategy("Why?", STRATEGIES.values(), has_tools=False, has_verifier=True)
    assert {name for _, _, name in REAL} | {long, checked} == suiting


@pytest.mark.parametrize(
    ("problem", "alone"),
    [
        (PUZZLE, "tree_of_thoughts"),
        (CROSSWORD, "tree_of_thoughts"),
        (BAKER, "self_consistency"),
        (BOTTLE, "step_back"),
    ],
)
async def test_a_model_that_reasons_by_itself_is_asked_once(problem: str, alone: str) -> None:
    async with App("memory") as app:
        for model, expected in (("openai:gpt-4.1", alone), ("openai:o3", "chain_of_thought")):
            explained = app.explain(RunRequest(problem=problem, participants=Participants(model=model)))
            assert explained["strategy"] == expected
        passed = next(each["passed"] for each in explained["considered"] if each["why"])
        assert passed == f"the model reasons by itself, so it needs no {alone}"
        assert passed in explained["why"]


@pytest.mark.parametrize(
    "strategy", ["chain_of_thought", "best_of_n", "best_of_n(cot)", "auto", "refine", "council"]
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
        request = RunRequest(problem=CROSSWORD, budget=Budget(calls=5), participants=named)
        explained = app.explain(request)
        assert explained["strategy"] == app.order(request)[0].strategy == "chain_of_thought"
        passed = next(each for each in explained["considered"] if each["why"])
        assert (passed["kind"], passed["calls"]) == ("search", 11)
        assert passed["passed"] == "tree_of_thoughts would take 11 calls, and the budget has 5"
        assert not await app.store.runs()


@pytest.mark.parametrize("problem", ALONE["chain_of_thought"])
def test_no_single_word_takes_a_plain_question_to_a_dearer_strategy(problem: str) -> None:
    for word in ("schedule", "plan", "law", "base", "maze of streets", "of the", "seat", "compare"):
        asked = f"{problem} (By the way: {word}.)"
        assert choose_strategy(asked, STRATEGIES.values(), has_tools=False)[0] == "chain_of_thought", word


def test_the_calls_that_a_strategy_is_said_to_take_are_those_that_were_measured() -> None:
    page = (Path(__file__).parents[1] / "docs/choosing.md").read_text("utf-8")
    measured = re.findall(r"^\| `(\w+)` \| (\d+) \| \d+ \|", page, re.MULTILINE)
    assert {one.name: one.calls for one in STRATEGIES.values() if one.is_driven} == {
        name: int(calls) for name, calls in measured
    }
