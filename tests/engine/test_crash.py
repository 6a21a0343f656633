"""Killed at every commit of a run, a process loses nothing acknowledged, and no recorded answer is asked for again.

The calls go over real HTTP to a server in a process of its own, which counts them.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from reasonry.app.app import App
from reasonry.core.budget import Budget
from reasonry.core.effects import Ask
from reasonry.core.machine import Pending
from reasonry.core.strategy import Strategy
from reasonry.engine.run import Run
from tests.servers import Fault, ServerProcess

from ..test_every_strategy import DRIVEN
from . import brain, search
from .answering import at_any_pace, in_order_of_lines, numbers_of
from .crashing import ALL, Job, open_app, perform, solve_or_resume
from .running import trace_of

pytestmark = pytest.mark.slow

Prompts = Counter[str]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess(brain="game24") as server:
        yield server


BY_HAND = re.compile(r"Tools:\n.*?\n\n(?=Write the answer)", re.DOTALL)
"""How tools are called by hand: not sent to a server that is given the tools."""


def asked_at(server: ServerProcess, serves_n: bool) -> Prompts:
    """Count each prompt as often as samples of it were drawn."""
    asked = Prompts()
    for body in server.bodies:
        prompt = "\n\n".join(one["content"] for one in body["messages"])
        asked[prompt] += body.get("n", 1) if serves_n else 1
    return asked


def prompts(pending: tuple[Pending, ...]) -> Prompts:
    return as_sent(one.effect.text for one in pending if isinstance(one.effect, Ask))


def as_sent(questions: Iterable[str]) -> Prompts:
    return Counter(BY_HAND.sub("", question) for question in questions)


async def look(app: App, run_id: str) -> dict[str, Any]:
    """Return all that a store says of a run."""
    trace = await trace_of(app.engine, run_id)
    shown = await app.sessions().get({"session_id": trace["session_id"], "limit": 500})
    return {
        "trace": trace,
        "lines": await digests(app, run_id),
        "replay": (await app.engine.replay(run_id))["replay"],
        "session": [one["thought"] for one in shown["thoughts"]],
    }


class Resumed(NamedTuple):
    """A run of a killed process that this process resumed: what was left, its result, and what its store says now."""

    left: Run
    lines: list[list[Any]]
    result: dict[str, Any]
    after: dict[str, Any]


async def resume_here(job: Job) -> Resumed | None:
    """Resume the only run of a killed process; return None if it left none."""
    async with open_app(job) as app:
        rows, sessions = await app.store.runs(), await app.store.sessions()
        assert [one.run_id for one in sessions] == [one.run_id for one in rows]
        if not rows:
            return None
        run_id = rows[0].run_id
        left, lines = (await app.engine.read(run_id)).run, await digests(app, run_id)
        result = await solve_or_resume(app, replace(job, run_id=run_id))
        return Resumed(left, lines, result.document(), await look(app, run_id))


async def digests(app: App, run_id: str) -> list[list[Any]]:
    return [[line.seq, line.digest.hex()] for line in await app.store.lines(run_id)]


def record(trace: dict[str, Any], *, is_cut: bool) -> dict[str, Any]:
    """Return what must be the same however often a run was interrupted.

    Where what came in was enough, what else came in depends on the order of arrival.
    """
    same = ["answer", "status", "termination"]
    same += [] if is_cut else ["path", "questions", "thoughts", "rounds", "best", "candidates"]
    # Questions side by side are asked again in the order of arrival.
    questions = sorted(trace["questions"], key=lambda question: numbers_of(question["id"]))
    ordered = {**trace, "questions": questions, "thoughts": in_order_of_lines(trace["thoughts"])}
    return at_any_pace({name: ordered[name] for name in same})


def killed(server: ServerProcess, job: Job, whole: dict[str, Any], serves_n: bool) -> int | None:
    """Kill a run at one commit, resume it, and compare.

    Returns:
        How many answers the run waited for; None: it ended before that commit.
    """
    server.reset()
    told = perform(job)
    if told["signal"] == 0:
        return None
    assert told["signal"] == 9
    resumed = asyncio.run(resume_here(job))
    if resumed is None:
        assert told["acknowledged"] == []
        assert server.stats()["requests"] == 0
        return 0
    left, lines, result, after = resumed
    assert lines[: len(told["acknowledged"])] == told["acknowledged"]
    assert left.snapshot.status == "active" or not left.open_effects
    is_cut = any(
        question["reply"] is None for trace in (whole, after["trace"]) for question in trace["questions"]
    )
    assert record(after["trace"], is_cut=is_cut) == record(whole, is_cut=is_cut)
    assert result["answer"] == whole["answer"]
    assert after["lines"][: len(lines)] == lines
    assert after["replay"]["identical"] is True
    assert after["session"] == [one["text"] for one in after["trace"]["thoughts"]]
    questions = after["trace"]["questions"]
    asked = asked_at(server, serves_n)
    assert asked >= as_sent(one["prompt"] for one in questions if one["reply"] is not None)
    assert asked <= as_sent(one["prompt"] for one in questions) + prompts(left.open_effects)
    if job.budget.calls is not None:
        assert server.stats()["requests"] <= result["usage"]["calls"] <= job.budget.calls
    return len(left.open_effects)


def everywhere(
    server: ServerProcess, job: Job, folder: Path, serves_n: bool = True
) -> tuple[dict[str, Any], list[int]]:
    """Kill a run before and after each of its commits.

    Returns:
        The undisturbed run, and for each kill how many answers were waited for.
    """
    server.reset()
    undisturbed = replace(job, path=str(folder / "whole.db"))
    result = perform(undisturbed)["result"]
    assert server.stats()["requests"] == result["usage"]["calls"]

    async def trace() -> dict[str, Any]:
        async with open_app(undisturbed) as app:
            return await trace_of(app.engine, result["run_id"])

    whole = asyncio.run(trace())
    kills: list[int] = []
    for when in ("before", "after"):
        for number in range(1, 200):
            mortal = replace(job, path=str(folder / f"{when}{number}.db"), kill=(number, when))
            waiting = killed(server, mortal, whole, serves_n)
            if waiting is None:
                break
            kills.append(waiting)
        else:
            raise AssertionError("the run does not end")
    return whole, kills


@pytest.mark.parametrize(("steps", "budget"), [(20, Budget()), (4, Budget(calls=100))])
def test_a_run_survives_a_kill_at_every_commit(
    server: ServerProcess, folder: Path, steps: int, budget: Budget
) -> None:
    job = Job(path="", model=server.model, options={"steps": steps}, budget=budget)
    whole, kills = everywhere(server, job, folder)
    assert (whole["status"], whole["usage"]["calls"], len(whole["events"])) == ("done", steps, steps)
    # One commit accepts the run, one takes each answer. With a limit each call is on disk before it goes out, the first
    # one with the run.
    assert len(kills) == 2 * (1 + steps + (steps - 1 if budget.calls else 0))


VOTE = ("self_consistency", {"samples": 12, "window": 4, "stop": "exact"})
# The preset expands nodes that were valued 0 too, so that several are asked about at once.
WIDE = {
    "preset": "seed",
    "expand_width": 3,
    "samples_per_evaluation": 2,
    "traversal_strategy": "bfs",
    "max_depth": 2,
}
SEARCH = ("tree_of_thoughts", WIDE)
THREE_NUMBERS = "Use 4, 6 and 1 to make 24"


@pytest.mark.parametrize("samples", ["alike", "ignored"])
@pytest.mark.parametrize(("strategy", "options"), [VOTE, SEARCH], ids=[VOTE[0], SEARCH[0]])
def test_several_calls_in_flight_survive_a_kill_at_every_commit(
    folder: Path, strategy: str, options: dict[str, Any], samples: str
) -> None:
    # Every other reply comes later, so that a round's answers land in several commits. A sample is the same wherever it
    # stands in its request: a run that is resumed asks for those alone that it still lacks.
    late = Fault(kind="no_usage", every=2, delay_ms=10)
    brain = "game24" if strategy == "tree_of_thoughts" else "form"
    with ServerProcess(brain=brain, faults=(late,), samples=samples) as server:
        job = Job(path="", model=server.model, strategy=strategy, options=options, problem=THREE_NUMBERS)
        whole, kills = everywhere(server, job, folder, serves_n=samples == "alike")
        assert whole["status"] == "done"
        assert len(kills) >= (6 if samples == "alike" else 8)
        assert max(kills) > 3


def test_a_request_for_several_samples_is_on_disk_before_it_goes_out(folder: Path) -> None:
    with ServerProcess(brain="form") as server:
        strategy, options = VOTE
        job = Job(path="", model=server.model, strategy=strategy, options=options, budget=Budget(calls=100))
        whole, kills = everywhere(server, job, folder)
        assert (whole["status"], whole["usage"]["calls"], whole["samples_used"]) == ("done", 3, 12)
        # One commit accepts the run with its first request; each of the two others is written down, and so are the
        # answers of all three, most often in one commit.
        assert len(kills) >= 2 * (1 + 2 + 3)


ELSEWHERE = {"analysis", VOTE[0], SEARCH[0]}
"""Killed at every commit above, and with its real tools in tests/surfaces/test_analysis_crash.py."""

LONGER: dict[str, dict[str, Any]] = {
    "react": {"max_steps": 3},
    "best_of_n": {"n": 3},
    "recursive": {"programs": 2},
    "linear": {"max_thoughts": 2, "max_hypotheses": 1},
    "chain_of_thought": {"decompose": True, "check": True},
}
"""Options with which a strategy takes more than one call, and no more than it takes to show the law."""

EVERY = [(one, LONGER.get(one.name, {})) for one in DRIVEN if one.name not in ELSEWHERE]
SOLVING = (ALL["prove_and_refute"], {"solvers": 1, "revisions": 1})


@pytest.fixture(scope="module")
def anyone() -> Iterator[ServerProcess]:
    with ServerProcess(brain=f"{brain.__file__}:play") as server:
        yield server


@pytest.mark.parametrize(
    ("strategy", "options"), [*EVERY, SOLVING], ids=[*(one.name for one, _ in EVERY), "with solvers"]
)
def test_every_strategy_survives_a_kill_at_every_commit(
    anyone: ServerProcess, folder: Path, strategy: Strategy[Any, Any], options: dict[str, Any]
) -> None:
    cards = "tools" in strategy.options.__struct_fields__
    if strategy.needs_models:
        options = {"models": [anyone.model, f"{anyone.model}-2"]}
    job = Job(
        path="",
        model=anyone.model,
        strategy=strategy.name,
        options=options,
        problem="Which is larger?",
        tools=(f"{search.__file__}:search",) if cards else (),
    )
    whole, kills = everywhere(anyone, job, folder)
    assert whole["status"] == "done"
    assert whole["usage"]["calls"] > 1 or sum(stage.value_type is not None for stage in strategy.stages) == 1
    # What is answered side by side may share a commit.
    assert len(kills) >= 2 * (1 + whole["rounds"])
