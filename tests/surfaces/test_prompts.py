"""A stage's prompt from a file: put in its place, recorded with the run, resumed and forked with it."""

from pathlib import Path
from typing import Any

import pytest

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.errors import UsageError
from reasonry.models.scripted import ScriptedModel
from reasonry.surfaces.http.run_forms import StartRun

from ..engine.running import trace_of
from .test_cli import Shell

pytestmark = pytest.mark.anyio

OWN = 'Think in French.\n{prompt}\nEnd with {"answer": "…"}; the problem was: {problem}'
STAGE = "chain_of_thought.sequential_reasoning"


def request(strategy: str, prompts: dict[str, str], **more: Any) -> RunRequest:
    participants = Participants(model=ScriptedModel([]))
    return RunRequest(problem="2 + 2?", strategy=strategy, prompts=prompts, participants=participants, **more)


@pytest.mark.parametrize(
    "strategy", ["chain_of_thought", "best_of_n", "council(cot)", "refine(chain-of-thought)"]
)
async def test_a_stage_of_any_strategy_of_the_run_may_have_a_prompt(strategy: str) -> None:
    async with App("memory") as app:
        order, performers = app.order(request(strategy, {"cot.sequential_reasoning": OWN}))
        assert order.prompts == {"chain_of_thought.sequential_reasoning": OWN}
        async with app.engine.begin(order, performers) as opened:
            record = await app.engine.record(opened.row.run_id)
        texts = [
            question["prompt"] for question in (await trace_of(app.engine, opened.row.run_id))["questions"]
        ]
    assert record.head["prompts"] == order.prompts
    assert texts
    for text in texts:
        assert text.startswith("Think in French.\n")
        assert '{"answer": "…"}; the problem was: 2 + 2?' in text


@pytest.mark.parametrize(
    ("strategy", "name", "text"),
    [
        ("chain_of_thought", "chain_of_thought.drafting", OWN),
        ("chain_of_thought", "chain_of_thought.problem_analysis", OWN),
        ("chain_of_thought", "react.solution_formulation", OWN),
        ("chain_of_thought", "solution_formulation", OWN),
        ("best_of_n", "best_of_n.draft_generation", OWN),
    ],
)
async def test_a_stage_that_asks_nothing_is_refused_naming_those_that_do(
    strategy: str, name: str, text: str
) -> None:
    async with App("memory") as app:
        with pytest.raises(UsageError) as caught:
            app.order(request(strategy, {name: text}))
        assert "chain_of_thought.sequential_reasoning" in caught.value.details["choices"]
        assert await app.store.runs() == []


@pytest.mark.parametrize(
    "prompts",
    [
        {"cot.sequential_reasoning": "Say yes."},
        {"cot.sequential_reasoning": " "},
        {"cot.sequential_reasoning": OWN, "chain_of_thought.sequential_reasoning": OWN},
    ],
)
async def test_a_prompt_without_the_problem_is_refused(prompts: dict[str, str]) -> None:
    async with App("memory") as app:
        with pytest.raises(UsageError):
            app.order(request("chain_of_thought", prompts))


def test_the_command_line_reads_the_file_and_a_resumed_run_asks_the_same(tmp_path: Path) -> None:
    shell, own = Shell(tmp_path), tmp_path / "own.txt"
    own.write_text(OWN, encoding="utf-8")
    reply = {"reasoning": "a", "answer": "4"}
    model = shell.script({"stage": "*", "error": "provider_error"}, {"stage": "*", "reply": reply})
    solve = ["solve", "2 + 2?", "--strategy=cot", "--model", model, "--prompt", f"{STAGE}={own}"]
    assert shell.run(*solve).returncode == 8
    own.unlink()
    assert shell.json("runs", "resume", "last", "--model", model)["answer"] == "4"
    trace = shell.json("runs", "show", "last")
    assert trace["prompts"] == {STAGE: OWN}
    assert all(question["prompt"].startswith("Think in French.") for question in trace["questions"])
    shown = shell.run("runs", "show", "last").stdout
    assert f"Prompt of {STAGE}\n  Think in French.\n  {{prompt}}\n" in shown
    assert shell.json("runs", "replay", "last")["replay"]["identical"] is True
    code, fork = shell.told("runs", "fork", "last", "--at", "0", "--model", model)
    assert code == 8
    assert shell.json("runs", "show", fork["run_id"])["prompts"] == {STAGE: OWN}
    assert shell.run(*solve).returncode == shell.run(*solve[:-1], STAGE).returncode == 2


def test_a_request_over_http_brings_texts() -> None:
    body = StartRun(problem="2 + 2?", prompts={STAGE: OWN})
    assert body.request().prompts == {STAGE: OWN}
