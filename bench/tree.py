"""Tree of thoughts without a verifier at an equal budget of calls: its defaults beside the preset `seed`.

    uv run python bench/tree.py [--puzzles 200] [--calls 12 20 40 80]

Game of 24, four numbers from 1 to 13, all of which can be solved. The brain misses the good moves in one proposal of
five and misvalues one candidate in five; it has no answer where the steps lead to none. A run has so many calls and no
other limit. `lost` are the puzzles that only the preset solves, `won` those that only the defaults do.
Target: with every budget no fewer solved than with the preset but for chance (McNemar, 95 %).
"""

import argparse
import asyncio
import statistics
import sys
from collections import Counter
from fractions import Fraction
from math import sqrt
from typing import Any, NamedTuple

from brains import brain
from game24 import TARGET, problem, puzzles
from loopback import ServerProcess
from wire import progress

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.core.budget import Budget
from reasonry.engine.policy import Policy
from reasonry.puzzles.term import Puzzle
from tests.servers.game24 import check

PRESET, DEFAULTS = "preset seed", "defaults"
MAX_NODES = 10_000
"""So that calls are what runs out."""


class Row(NamedTuple):
    """Which puzzles were solved, with how many calls, and why the runs ended."""

    name: str
    solved: list[bool]
    calls: list[int]
    reasons: Counter[str]


async def row(server: ServerProcess, name: str, options: dict[str, Any], calls: int, count: int) -> Row:
    """Play all puzzles with one budget."""
    server.reset()
    done = Row(name, [], [], Counter())
    async with App("memory", Policy(max_concurrency=32)) as app:
        for number, numbers in enumerate(puzzles(count), 1):
            order, performers = app.order(
                RunRequest(
                    problem=problem(numbers),
                    strategy="tree_of_thoughts",
                    options={**options, "max_nodes": MAX_NODES},
                    budget=Budget(calls=calls),
                    participants=Participants(model=server.model),
                )
            )
            result = await app.solve(order, performers)
            puzzle = Puzzle(tuple(map(Fraction, numbers)), TARGET)
            done.solved.append(result.answer is not None and check(result.answer, puzzle)[0])
            done.calls.append(result.usage.calls)
            done.reasons[result.termination.reason] += 1
            progress(f"{name}, {calls} calls", number, count)
    return done


async def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--puzzles", type=int, default=200)
    parser.add_argument("--calls", type=int, nargs="+", default=[12, 20, 40, 80])
    given = parser.parse_args()
    print(
        f"{given.puzzles} puzzles\n{'budget':>6}  {'':<12} {'solved':>6} {'calls':>6} {'lost':>5} {'won':>5}"
    )
    good = True
    with ServerProcess(brain=brain("noisy"), keep_bodies=0, samples="ignored") as server:
        for calls in given.calls:
            seed = await row(server, PRESET, {"preset": "seed"}, calls, given.puzzles)
            ours = await row(server, DEFAULTS, {}, calls, given.puzzles)
            pairs = list(zip(seed.solved, ours.solved, strict=True))
            lost, won = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
            good = good and lost - won <= 1.96 * sqrt(lost + won)
            for one in (seed, ours):
                print(
                    f"{calls:6d}  {one.name:<12} {statistics.mean(one.solved):6.3f} {statistics.mean(one.calls):6.1f} "
                    + (f"{lost:5d} {won:5d}" if one is ours else f"{'':>11}")
                    + f"  {dict(one.reasons)}"
                )
    print("\ntarget met" if good else "\nTARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
