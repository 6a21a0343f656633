"""Game of 24 by tree of thoughts, breadth 5: wall-clock over the critical path, calls and rounds, beside a plain loop.

    uv run python bench/game24.py [--latency-ms 50] [--puzzles 20]

The paper's configuration: breadth-first, 5 nodes kept and expanded, each valued 3 times. The brain misses the good
moves in one proposal of five and misvalues one candidate in five; each row gets the same replies whenever it is run.
Rows: the plain loop (the paper's code: one call after another), LangGraph if the group `bench` is installed, the
engine, the engine with the arithmetic verifier.
Targets: without the verifier at most 1.25 × rounds × latency; with it at most 55 calls and 5 rounds, and no fewer
right.
`× bare` is over rounds × what a bare request took in this run: it leaves out how busy the machine is.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path

import peers
from brains import brain
from wire import Wire, progress

from reasonry.app import App, Team
from reasonry.core.arithmetic import Puzzle, check, solve_numbers
from reasonry.core.budget import Budget
from reasonry.runtime.policy import Policy
from reasonry.testing import ServerProcess

TARGET = Fraction(24)
BREADTH, WIDTH, SAMPLES, DEPTH = 5, 8, 3, 3
OPTIONS = {
    "traversal_strategy": "bfs",
    "beam_width": BREADTH,
    "expand_width": BREADTH,
    "branching_factor": WIDTH,
    "samples_per_evaluation": SAMPLES,
    "max_depth": DEPTH,
    "max_nodes": 1_000,
    "convergence_window": 1,
}

Took = tuple[str | None, int, int, float]
"""Answer, calls, rounds, seconds."""


def puzzles(count: int) -> list[tuple[int, ...]]:
    """Return solvable puzzles of 1 to 13, the same ones every time."""
    every = [
        numbers
        for numbers in combinations_with_replacement(range(1, 14), 4)
        if solve_numbers(tuple(map(Fraction, numbers)), TARGET) is not None
    ]
    return random.Random(24).sample(every, count)


def problem(numbers: tuple[int, ...]) -> str:
    return f"Use {', '.join(map(str, numbers[:-1]))} and {numbers[-1]} to make 24"


async def plain(wire: Wire, numbers: tuple[int, ...]) -> Took:
    """Propose, value and keep the best, one call after another."""
    start, calls, beam = time.perf_counter(), 0, [list[str]()]
    for _ in range(DEPTH):
        scored: list[tuple[float, list[str]]] = []
        for path in beam:
            steps = "\n".join([problem(numbers), *path])
            thoughts = (await wire.ask(f"{steps}\nNext steps?", "thoughts"))["thoughts"][:WIDTH]
            shown = "\n".join(f"{at}. {one}" for at, one in enumerate(thoughts, 1))
            votes = [
                (await wire.ask(f"{steps}\nValue:\n{shown}", "scores"))["scores"] for _ in range(SAMPLES)
            ]
            calls += 1 + SAMPLES
            for at, one in enumerate(thoughts, 1):
                scored.append((statistics.mean(vote[str(at)] for vote in votes), [*path, one]))
        beam = [path for _, path in sorted(scored, key=lambda one: -one[0])[:BREADTH]]
    steps = "\n".join([problem(numbers), *beam[0]])
    answer = (await wire.ask(f"{steps}\nAnswer?", "answer"))["answer"]
    return answer, calls + 1, calls + 1, time.perf_counter() - start


async def searched(app: App, team: Team, numbers: tuple[int, ...]) -> Took:
    order, who = app.order(problem(numbers), "tree_of_thoughts", OPTIONS, Budget(), team)
    start = time.perf_counter()
    result = await app.solve(order, who)
    return result.answer, result.usage.calls, result.rounds, time.perf_counter() - start


async def row(
    server: ServerProcess,
    name: str,
    one: Callable[[tuple[int, ...]], Awaitable[Took]],
    games: list[tuple[int, ...]],
) -> tuple[list[Took], float]:
    """Return what each puzzle took, and how many were solved."""
    await one(games[0])
    server.reset()
    took: list[Took] = []
    for done, numbers in enumerate(games, 1):
        took.append(await one(numbers))
        progress(name, done, len(games))
    right = [
        answer is not None and check(answer, Puzzle(tuple(map(Fraction, numbers)), TARGET))[0]
        for numbers, (answer, *_) in zip(games, took, strict=True)
    ]
    return took, statistics.mean(right)


def show(
    name: str, took: list[Took], right: float, latency_ms: float, bare_ms: float
) -> tuple[float, float, float]:
    calls, rounds = (statistics.mean(one[at] for one in took) for at in (1, 2))
    ratio = statistics.median(one[3] * 1000 / (one[2] * latency_ms) for one in took)
    best = min(one[3] * 1000 / (one[2] * latency_ms) for one in took)
    ms = statistics.median(one[3] * 1000 for one in took)
    over = ratio * latency_ms / bare_ms
    print(
        f"{name:<22} {calls:6.1f} {rounds:6.1f} {ms:7.0f} {ratio:8.2f} {best:6.2f} {over:8.2f} {right:6.2f}"
    )
    return calls, rounds, ratio


async def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument("--puzzles", type=int, default=20)
    given = parser.parse_args()
    games, peer = puzzles(given.puzzles), None
    with (
        tempfile.TemporaryDirectory() as folder,
        ServerProcess(brain=brain("noisy"), latency_ms=given.latency_ms, keep_bodies=0) as server,
    ):
        wire = Wire(server.url)
        sequential, solved = await row(server, "plain loop", lambda game: plain(wire, game), games)
        if peers.HAS_LANGGRAPH:
            graph = peers.langgraph_game24(wire, problem, BREADTH, WIDTH, SAMPLES, DEPTH)
            peer = await row(server, "LangGraph", graph, games)
        await wire.close()
        async with App(str(Path(folder) / "store.db"), Policy(max_concurrency=32)) as app:
            bare, verified = Team(model=server.model), Team(model=server.model, verifier="arithmetic:24")
            ours, right = await row(server, "engine", lambda game: searched(app, bare, game), games)
            proved, more = await row(
                server, "engine, verifier", lambda game: searched(app, verified, game), games
            )
    bare_ms = statistics.median(one[3] * 1000 / one[1] for one in sequential)
    print(f"a bare request took {bare_ms:.0f} ms")
    print(
        f"{'':<22} {'calls':>6} {'rounds':>6} {'ms':>7} {'× path':>8} {'best':>6} {'× bare':>8} {'right':>6}"
    )
    show("plain loop", sequential, solved, given.latency_ms, bare_ms)
    if peer is not None:
        show("LangGraph, no store", *peer, given.latency_ms, bare_ms)
    _, _, ratio = show("reasonry", ours, right, given.latency_ms, bare_ms)
    calls, rounds, _ = show("reasonry, verifier", proved, more, given.latency_ms, bare_ms)
    good = ratio <= 1.25 and calls <= 55 and rounds <= 5 and more >= right
    print(
        f"\n{ratio:.2f} × the critical path; with the verifier {calls:.1f} calls, {rounds:.1f} rounds, right {more:.2f}"
    )
    print("target met" if good else "TARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
