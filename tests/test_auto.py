"""`strategy="auto"`: a strategy is chosen by rule, and every face of the run says why."""

import re
from pathlib import Path
from typing import Any

import pytest

from reasonry import solve
from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest, explain_choice
from reasonry.core.budget import Budget
from reasonry.errors import UsageError
from reasonry.models.scripted import ScriptedModel
from reasonry.strategies import STRATEGIES
from reasonry.strategies.choice import Inputs, choose_strategy
from tests.engine.running import order_and_solve

from .engine.running import accept

pytestmark = pytest.mark.anyio

PUZZLE = "Use 4, 9, 10 and 13 to make 24"
OFFLINE = Participants(model="offline")


async def test_auto_runs_the_strategy_the_rule_names_and_the_result_says_why() -> None:
    async with App("memory") as app:
        document = (await order_and_solve(app, PUZZLE, "Auto", model="offline")).document()
    name, why = choose_strategy(Inputs(problem=PUZZLE), STRATEGIES.values())
    assert document["strategy"] == name == "tree_of_thoughts"
    assert document["diagnostics"]["strategy_chosen"] == why
    assert document["answer"] == "(9 - (13 - 10)) * 4 = 24"


async def test_a_strategy_that_was_named_needs_no_reason() -> None:
    async with App("memory") as app:
        document = (await order_and_solve(app, PUZZLE, "tree_of_thoughts", model="offline")).document()
    assert "strategy_chosen" not in document["diagnostics"]


async def test_the_reason_is_kept_with_the_run() -> None:
    async with App("memory") as app:
        order, _ = app.order(RunRequest(problem=PUZZLE, participants=OFFLINE))
        run_id = await accept(app.engine, order)
        run = (await app.engine.read(run_id)).run
    assert run.begun.why == order.why != ""


async def test_tools_lead_to_a_strategy_that_calls_them() -> None:
    def look_up(name: str) -> str:
        """Look a name up."""
        return name

    async with App("memory") as app:
        participants = Participants(model=ScriptedModel.of(), tools=[look_up])
        order, _ = app.order(RunRequest(problem="In which county?", participants=participants))
        assert order.strategy == "react"


async def test_an_option_that_the_chosen_strategy_has_not_is_refused_by_its_name() -> None:
    async with App("memory") as app:
        with pytest.raises(UsageError, match="tree_of_thoughts has no option 'samples'"):
            app.order(RunRequest(problem=PUZZLE, options={"samples": 3}, participants=OFFLINE))


QUESTION = "Fix this:\n```python\ndef mean(xs):\n    return sum(xs) / len(xs) + 1\n```"
VERIFIER, TOOLS = {"has_verifier": True}, {"has_tools": True}
DOCUMENTS, NUMBER = {"has_documents": True}, {"is_number": True, "has_sandbox": True}
GIVEN: list[tuple[str, dict[str, Any], str]] = [
    (QUESTION, {}, "chain_of_thought"),
    (QUESTION, TOOLS, "react"),
    (QUESTION, VERIFIER, "refine"),
    (QUESTION, VERIFIER | {"calls": 7}, "refine"),
    (QUESTION, VERIFIER | {"calls": 8}, "best_of_n"),
    (QUESTION, VERIFIER | TOOLS, "refine(react)"),
    (QUESTION, VERIFIER | DOCUMENTS | {"calls": 30}, "best_of_n(react)"),
    (QUESTION, VERIFIER | NUMBER, "refine"),
    (QUESTION, TOOLS | DOCUMENTS | {"is_focused": True}, "react"),
    (QUESTION, DOCUMENTS, "react"),
    (QUESTION, DOCUMENTS | NUMBER, "react"),
    (QUESTION, DOCUMENTS | {"is_focused": True}, "analysis"),
    (QUESTION, {"is_focused": True, "has_sandbox": True, "calls": 30}, "chain_of_thought"),
    (QUESTION, NUMBER, "program_of_thought"),
    (QUESTION, {"is_number": True}, "chain_of_thought"),
    (PUZZLE, {}, "tree_of_thoughts"),
    ("Use 3, 3, 8 and 8 to make 24!", {"calls": 3}, "tree_of_thoughts"),
    ("Use 3, 3, 8 and 8 to make 24.", {"calls": 2}, "chain_of_thought"),
    (PUZZLE, NUMBER, "program_of_thought"),
    (PUZZLE, VERIFIER, "refine"),
    ("Who signed it? " + "Nobody. " * 3_000, {}, "chain_of_thought"),
]


@pytest.mark.parametrize(("problem", "given", "expected"), GIVEN, ids=[row[0][:40] for row in GIVEN])
def test_what_comes_with_a_problem_decides_and_its_words_do_not(
    problem: str, given: dict[str, Any], expected: str
) -> None:
    name, why = choose_strategy(Inputs(problem=problem, **given), STRATEGIES.values())
    assert name == expected, why


def test_every_strategy_that_suits_a_kind_is_chosen_for_some_problem() -> None:
    chosen = {name.partition("(")[0] for *_, name in GIVEN}
    assert chosen == {one.name for one in STRATEGIES.values() if one.suits}


async def test_a_bash_one_liner_costs_one_call() -> None:
    line = "du -a . | sort -rn | head -5"
    result = await solve(
        "Write a bash one-liner that prints the five largest files below the current folder.",
        model=ScriptedModel.of({"stage": "sequential_reasoning", "reply": f"<answer>{line}</answer>"}),
        store="memory",
    )
    assert (result.answer, result.usage.calls, result.strategy) == (line, 1, "chain_of_thought")


async def test_documents_are_searched_by_the_strategy_that_auto_takes(tmp_path: Path) -> None:
    page = tmp_path / "almanac.md"
    page.write_text("# Emma\n\nThe author of Emma was born in Steventon.\n", "utf-8")
    search = {"tool": "search_documents", "arguments": {"query": "author of Emma"}}
    model = ScriptedModel.of(
        {"stage": "initial_reasoning", "reply": {"thought": "It is to be found.", "actions": [search]}},
        {"stage": "reasoning_update", "reply": "It says so. <answer>Steventon</answer>"},
    )
    result = await solve(
        "Where was the author of Emma born?", model=model, context=[str(page)], store="memory"
    )
    assert (result.answer, result.strategy, result.usage.calls) == ("Steventon", "react", 2)
    assert result.details["diagnostics"]["strategy_chosen"] == "documents: they are searched"


async def test_where_drafts_are_checked_the_strategy_for_documents_writes_them(tmp_path: Path) -> None:
    (tmp_path / "almanac.md").write_text("# Emma\n\nThe author was born in Steventon.\n", "utf-8")
    async with App("memory") as app:
        named = Participants(
            model=ScriptedModel.of(),
            context=[str(tmp_path / "almanac.md")],
            verifier=lambda problem, path: True,
        )
        order, _ = app.order(RunRequest(problem="Where?", participants=named))
    assert (order.strategy, order.options["over"]) == ("refine", "react")
    assert order.why == "a verifier: its objection improves the draft; react writes each draft"
    cards = order.options["over_options"]["tools"]
    assert "search_documents" in [card["name"] for card in cards]


async def test_a_number_is_computed_by_a_program() -> None:
    async with App("memory") as app:
        form = {"type": "number"}
        named = Participants(model=ScriptedModel.of())
        request = RunRequest(problem="17 * 3?", form=form, participants=named)
        assert app.order(request)[0].strategy == "program_of_thought"


async def test_the_tree_of_a_puzzle_has_the_exact_verifier_whatever_the_model() -> None:
    async with App("memory") as app:
        named = Participants(model=ScriptedModel.of())
        order, performers = app.order(RunRequest(problem=PUZZLE, participants=named))
        assert (order.strategy, order.options["verify"]) == ("tree_of_thoughts", True)
        assert order.participants.verifier == "arithmetic:24"
        assert performers.verifier is not None
        by_name = app.order(RunRequest(problem=PUZZLE, strategy="tree_of_thoughts", participants=named))[0]
        assert by_name.participants.verifier is None


@pytest.mark.parametrize(
    "strategy", ["direct", "chain_of_thought", "best_of_n", "best_of_n(cot)", "auto", "refine", "council"]
)
async def test_the_offline_model_solves_a_puzzle_in_one_reply(strategy: str) -> None:
    async with App("memory") as app:
        budget = Budget(calls=10)
        request = RunRequest(problem=PUZZLE, strategy=strategy, budget=budget, participants=OFFLINE)
        result = await app.solve(*app.order(request))
    assert (result.outcome, result.answer) == ("solved", "(9 - (13 - 10)) * 4 = 24")


async def test_what_auto_takes_is_explained_before_anything_runs() -> None:
    async with App("memory") as app:
        named = Participants(model="offline", verifier="arithmetic:24")
        for calls, expected in ((7, "refine"), (8, "best_of_n")):
            request = RunRequest(problem=PUZZLE, budget=Budget(calls=calls), participants=named)
            explained = explain_choice(request, app.strategies)
            order = app.order(request)[0]
            assert explained == {"strategy": expected, "why": order.why}
            assert order.strategy == expected
        assert not await app.store.runs()


def test_the_calls_that_a_strategy_is_said_to_take_are_those_that_were_measured() -> None:
    page = (Path(__file__).parents[1] / "docs/choosing.md").read_text("utf-8")
    measured = re.findall(r"^\| `(\w+)` \| (\d+) \| \d+ \|", page, re.MULTILINE)
    assert {one.name: one.calls for one in STRATEGIES.values() if one.is_driven} == {
        name: int(calls) for name, calls in measured
    }
