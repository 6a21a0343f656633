"""Every strategy with a real small model: it reaches an end within its budget, and what it reports is true.

The model is `tests/servers/small_model.py`; the tests are skipped where the dependency group `real-model` is not
installed. What it says differs from machine to machine, so nothing here depends on that.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reasonry.app.app import App
from reasonry.core.budget import Budget
from reasonry.core.events import UNREADABLE
from reasonry.engine.policy import Policy
from reasonry.engine.result import Result
from reasonry.strategies import STRATEGIES
from reasonry.surfaces.present import exit_code

from .engine.running import order_and_solve, trace_of
from .forked import ForkedProcess, forking_python
from .servers.small_model import MISSING, SmallModel, small_model

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(MISSING), reason=f"{' and '.join(MISSING)} not installed: uv sync --group real-model"
    ),
]

PROBLEMS = {
    "self_consistency": "What is 17 + 25?",
    "tree_of_thoughts": "Use 4, 9, 10 and 13 to make 24",
    "react": "In which county was the author of the novel Emma born?",
}
PROBLEM = "Tom has 12 apples, gives 5 away and buys 8 more. How many has he now?"
BUDGET = Budget(calls=2, tokens=1_000)
LIMIT = 32
POLICY = Policy(max_output_tokens=LIMIT, backoff_s=0.01)
BRIEF = replace(POLICY, max_output_tokens=8)
ECHOES = ("the answer alone", "one operation a line each written out", "answer", "")


@pytest.fixture(scope="module")
def server() -> Iterator[SmallModel]:
    with small_model() as running:
        yield running


async def solved(
    server: SmallModel,
    strategy: str,
    problem: str,
    budget: Budget = BUDGET,
    policy: Policy = BRIEF,
    **options: Any,
) -> tuple[Result, dict[str, Any]]:
    async with App("memory", policy) as app:
        chosen = STRATEGIES[strategy]
        result = await order_and_solve(
            app, problem, chosen, options=options, budget=budget, model=server.model
        )
        return result, await trace_of(app.engine, result.run_id)


def plain(text: str | None) -> str:
    return " ".join(re.findall(r"\w+", (text or "").casefold()))


@pytest.mark.parametrize("strategy", [name for name, one in STRATEGIES.items() if one.is_driven])
async def test_every_strategy_reaches_an_end_within_its_budget(strategy: str, server: SmallModel) -> None:
    problem = PROBLEMS.get(strategy, PROBLEM)
    options = {"models": [server.model, f"{server.model}-2"]} if STRATEGIES[strategy].needs_models else {}
    read, written = server.tokens()
    result, trace = await solved(server, strategy, problem, **options)
    read, written = (after - before for after, before in zip(server.tokens(), (read, written), strict=True))
    usage = result.usage
    assert result.status in ("done", "failed")
    assert result.termination.code in (None, "output_invalid"), result.termination
    assert 0 < usage.calls <= (BUDGET.calls or 0)
    assert usage.tokens <= (BUDGET.tokens or 0)
    assert (usage.input_tokens - usage.cached_input_tokens, usage.output_tokens) == (read, written)
    assert usage.estimated_tokens == 0
    assert len(trace["questions"]) >= 1
    for answer in (result.answer, result.best_answer):
        assert answer is None or plain(answer) not in (*ECHOES, plain(problem)), answer


async def test_every_reply_is_cut_at_the_limit_and_asked_for_once_more_with_twice_the_room(
    server: SmallModel,
) -> None:
    policy = Policy(max_output_tokens=3)
    # A reply that is held to a schema does not end by itself in so few tokens.
    result, trace = await solved(server, "chain_of_thought", PROBLEM, Budget(calls=5), policy, decompose=True)
    first, second = trace["questions"][:2]
    assert (result.usage.calls, result.usage.output_tokens) == (2, 3 + 6)
    # What it had written by then may be the words of the form.
    assert re.search("was cut off|only repeats the question", first["read"])
    assert re.search("was cut off|only repeats the question", second["read"])
    assert result.termination.code == "output_invalid"


async def test_a_question_that_is_too_long_for_the_model_ends_the_run_with_a_code_of_its_own(
    server: SmallModel,
) -> None:
    result, _ = await solved(server, "chain_of_thought", f"{PROBLEM} " * 400, Budget(calls=5))
    assert (result.status, result.termination.code) == ("failed", "context_overflow")
    assert "give a shorter problem" in (result.termination.detail or "")
    assert (result.usage.calls, result.usage.tokens) == (1, 0)


async def test_a_killed_run_goes_on_and_no_answer_is_asked_for_again(
    server: SmallModel, folder: Path
) -> None:
    store, limits = str(folder / "store.db"), ("--max-calls", "5", "--max-output-tokens", str(LIMIT))
    words = ("solve", PROBLEM, "--strategy", "linear", "--model", server.model, "--store", store, *limits)
    with ForkedProcess(
        [sys.executable, "-m", "reasonry", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    ) as child:
        await answered(store, 2)
        child.kill()
    before = await answered(store, 2)
    (_, written), known = server.tokens(), await output_tokens(store)
    async with App(store, POLICY) as app:
        (row,) = await app.store.runs()
        result = await app.resume(row.run_id)
        trace = await trace_of(app.engine, row.run_id)
    assert result.status in ("done", "failed")
    assert result.termination.code in (None, "output_invalid")
    assert result.usage.calls <= 5
    replies = [(one["id"], one["reply"]) for one in trace["questions"]]
    assert replies[: len(before)] == [(one["id"], one["reply"]) for one in before]
    assert len(set(replies)) == len(replies)
    # Of the call in flight the server may count something late; one asked again after a cut has twice the room.
    assert 0 <= server.tokens()[1] - written - (result.usage.output_tokens - known) <= 2 * LIMIT


async def output_tokens(store: str) -> int:
    async with App(store) as app:
        (row,) = await app.store.runs()
        return (await app.engine.result(row.run_id)).usage.output_tokens


async def answered(store: str, count: int) -> list[dict[str, Any]]:
    """Return the questions of the only run in a store that have an answer, as soon as there are so many."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if Path(store).exists():
            async with App(store) as app:
                rows = await app.store.runs()
                trace = await trace_of(app.engine, rows[0].run_id) if rows else {"questions": []}
            known = [one for one in trace["questions"] if one.get("reply") is not None]
            if len(known) >= count:
                return known
        time.sleep(0.2)
    raise AssertionError(f"the run had no {count} answers in time")


def test_a_comparison_of_five_problems_makes_a_table_and_the_same_table_again(
    server: SmallModel, folder: Path
) -> None:
    def compare(*words: str) -> tuple[str, int]:
        done = subprocess.run(
            [forking_python(), "-m", "reasonry", "compare", *words, "--store", "memory"],
            cwd=folder,
            env={**os.environ, "HOME": str(folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        # So small a model may answer no problem at all; the command then ends with the code of the last failure.
        assert done.returncode in (0, exit_code(UNREADABLE)), done.stderr
        return done.stdout, done.returncode

    strategies = ["direct", "chain_of_thought"]
    what = ("--dataset", "arithmetic:5", "--strategies", ",".join(strategies), "--model", server.model)
    made, code = compare(*what, "--max-output-tokens", "8", "--parallel", "1", "--record", "table.jsonl")
    head, *rows = [line.split("\t") for line in made.splitlines()]
    cells = [dict(zip(head, row, strict=True)) for row in rows]
    assert [row["STRATEGY"] for row in cells] == strategies
    for row in cells:
        assert re.fullmatch(r"[0-5]/5", row["RIGHT"])
        assert re.fullmatch(r"\d+%–\d+%", row["95 %"])
        assert float(row["CALLS"]) == float(row["SAMPLES"]) >= 1
        assert int(row["TOKENS"].replace(",", "")) > 0
        assert 0 <= int(row["IN FORM"].removesuffix("%")) <= 100
    assert compare("--rescore", "table.jsonl") == (made, code)
