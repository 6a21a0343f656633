"""Game of 24 by tree of thoughts, breadth 5: wall-clock over the critical path, calls and rounds, beside a plain loop.

    uv run python bench/game24.py [--latency-ms 50] [--puzzles 20] [--success 200]

The paper's configuration: breadth-first, 5 nodes kept and expanded, each valued 3 times. The brain misses the good
moves in one proposal of five and misvalues one candidate in five; each row gets the same replies whenever it is run.
Rows: the plain loop (the paper's code: one call after another), LangGraph if the group `bench` is installed, the
engine, the engine with the arithmetic verifier. Their server gives one sample a request, so that calls are the same
thing in every row; the last row is the engine with a server that gives several (`n`). Calls and samples are counted at
the server.
The rows ask in their own words, so each meets other slips of the brain, and 20 puzzles say little about success. It is
measured apart, without latency, on more puzzles: `lost` are those that only the plain loop solves, `won` those that
only the row does.
Targets: without the verifier at most 1.25 × rounds × latency, and solved no fewer than by the plain loop but for chance
(McNemar, 95 %); with it at most 55 calls and 5 rounds, and no fewer solved than by the plain loop or, but for chance,
without it.
`× bare` is over rounds × what a bare request took in this run: it leaves out how busy the machine is.
"""

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
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import peers
from brains import brain
from loopback import ServerProcess
from wire import Wire, progress

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.core.budget import Budget
from reasonry.engine.policy import Policy
from reasonry.puzzles.solutions import solve_numbers
from reasonry.puzzles.term import Puzzle
from tests.servers.game24 import check

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
POLICY = Policy(max_concurrency=32)

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


async def searched(app: App, participants: Participants, numbers: tuple[int, ...]) -> Took:
    order, performers = app.order(
        RunRequest(
            problem=problem(numbers),
            strategy="tree_of_thoughts",
            options=OPTIONS,
            budget=Budget(),
            participants=participants,
        )
    )
    start = time.perf_counter()
    result = await app.solve(order, performers)
    return result.answer, result.usage.calls, result.rounds, time.perf_counter() - start


class Row(NamedTuple):
    """What a row took for each puzzle, and which it solved; requests and samples a puzzle, as the server counts."""

    name: str
    took: list[Took]
    solved: list[bool]
    requests: float
    samples: float

    @property
    def right(self) -> float:
        """The part of the puzzles that was solved."""
        return statistics.mean(self.solved)

    @property
    def rounds(self) -> float:
        """Dependent rounds a puzzle."""
        return statistics.mean(rounds for _, _, rounds, _ in self.took)

    def over(self, latency_ms: float) -> list[float]:
        """Return each puzzle's wall-clock over its critical path."""
        return [seconds * 1000 / (rounds * latency_ms) for _, _, rounds, seconds in self.took]


Play = Callable[[tuple[int, ...]], Awaitable[Took]]


async def row(server: ServerProcess, name: str, one: Play, games: list[tuple[int, ...]]) -> Row:
    """Play some puzzles."""
    await one(games[0])
    server.reset()
    took: list[Took] = []
    for done, numbers in enumerate(games, 1):
        took.append(await one(numbers))
        progress(name, done, len(games))
    solved = [
        answer is not None and check(answer, Puzzle(tuple(map(Fraction, numbers)), TARGET))[0]
        for numbers, (answer, *_) in zip(games, took, strict=True)
    ]
    stats = server.stats()
    if name != PEER:  # LangGraph does not say how many it made
        assert stats["requests"] == sum(calls for _, calls, *_ in took), "counted at the server"
    return Row(name, took, solved, stats["requests"] / len(games), stats["samples"] / len(games))


def show(one: Row, latency_ms: float, bare_ms: float) -> None:
    over, ms = one.over(latency_ms), statistics.median(took[3] * 1000 for took in one.took)
    ratio = statistics.median(over)
    print(
        f"{one.name:<22} {one.requests:6.1f} {one.samples:8.1f} {one.rounds:6.1f} {ms:7.0f} {ratio:8.2f} "
        f"{min(over):6.2f} {ratio * latency_ms / bare_ms:8.2f}"
    )


def lost_and_won(one: Row, plain: Row) -> tuple[int, int]:
    """Return how many puzzles only the plain loop solved, and how many only this row."""
    pairs = list(zip(plain.solved, one.solved, strict=True))
    return sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)


def no_worse(one: Row, plain: Row) -> bool:
    """Whether a row solves as many as the plain loop, or fewer by no more than chance explains."""
    lost, won = lost_and_won(one, plain)
    return lost - won <= 1.96 * sqrt(lost + won)


PLAIN, PEER = "plain loop", "LangGraph, no store"
OURS, PROVED, SERVED = "reasonry", "reasonry, verifier", "reasonry, n served"


async def timed(folder: str, latency_ms: float, games: list[tuple[int, ...]]) -> dict[str, Row]:
    """Play with latency: every row with one sample a request, the last one with several."""
    rows: list[Row] = []
    with ServerProcess(
        brain=brain("noisy"), latency_ms=latency_ms, keep_bodies=0, samples="ignored"
    ) as server:
        wire = Wire(server.url)
        rows.append(await row(server, PLAIN, lambda game: plain(wire, game), games))
        if peers.HAS_LANGGRAPH:
            graph = peers.langgraph_game24(wire, problem, BREADTH, WIDTH, SAMPLES, DEPTH)
            rows.append(await row(server, PEER, graph, games))
        await wire.close()
        rows += await engines(server, str(Path(folder) / "store.db"), games)
    with ServerProcess(brain=brain("noisy"), latency_ms=latency_ms, keep_bodies=0) as server:
        async with App(str(Path(folder) / "served.db"), POLICY) as app:
            participants = Participants(model=server.model)
            rows.append(await row(server, SERVED, lambda game: searched(app, participants, game), games))
    return {one.name: one for one in rows}


async def engines(server: ServerProcess, store: str, games: list[tuple[int, ...]]) -> list[Row]:
    """Play with the engine, without and with the verifier."""
    async with App(store, POLICY) as app:
        bare, verified = (
            Participants(model=server.model),
            Participants(model=server.model, verifier="arithmetic:24"),
        )
        return [
            await row(server, OURS, lambda game: searched(app, bare, game), games),
            await row(server, PROVED, lambda game: searched(app, verified, game), games),
        ]


async def succeeded(games: list[tuple[int, ...]]) -> list[Row]:
    """Play without latency, for the success alone."""
    with ServerProcess(brain=brain("noisy"), keep_bodies=0, samples="ignored") as server:
        wire = Wire(server.url)
        loop = await row(server, PLAIN, lambda game: plain(wire, game), games)
        await wire.close()
        return [loop, *await engines(server, "memory", games)]


async def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument("--puzzles", type=int, default=20)
    parser.add_argument("--success", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = await timed(folder, given.latency_ms, puzzles(given.puzzles))
    loop, ours, proved = await succeeded(puzzles(given.success))
    bare_ms = statistics.median(seconds * 1000 / calls for _, calls, _, seconds in rows[PLAIN].took)
    print(f"{given.puzzles} puzzles; a bare request took {bare_ms:.0f} ms")
    print(
        f"{'':<22} {'calls':>6} {'samples':>8} {'rounds':>6} {'ms':>7} {'× path':>8} {'best':>6} {'× bare':>8}"
    )
    for one in rows.values():
        show(one, given.latency_ms, bare_ms)
    print(f"\n{given.success} puzzles\n{'':<22} {'solved':>6} {'lost':>5} {'won':>5}")
    for one in (loop, ours, proved):
        lost, won = lost_and_won(one, loop)
        print(f"{one.name:<22} {one.right:6.3f} {lost:5d} {won:5d}")
    ratio = statistics.median(rows[OURS].over(given.latency_ms))
    calls, rounds = rows[PROVED].requests, rows[PROVED].rounds
    solves = no_worse(ours, loop) and proved.right >= loop.right and no_worse(proved, ours)
    good = ratio <= 1.25 and calls <= 55 and rounds <= 5 and solves
    print(f"\n{ratio:.2f} × the critical path; with the verifier {calls:.1f} calls, {rounds:.1f} rounds")
    print("target met" if good else "TARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
