"""Voting: samples and rounds saved at equal accuracy, on 40 questions with up to 40 samples each.

    uv run python bench/voting.py [--latency-ms 50]

The loopback model server runs in a process of its own; the n-th sample of a question is the same for every row. It
gives one sample a request, so the rows differ only in how many samples they draw, how many at once and when they stop;
only the last row has a server that gives several (`n`), and so takes fewer requests for the same samples. Requests and
samples are counted at the server. Questions run four at a time in every row; ms are per question. LangGraph and DSPy
are rows too if the group `bench` is installed.
Target: windows of 5 with the Beta rule take at most 21 samples and 5 rounds, at the accuracy of all 40.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import peers
from brains import MOST_SAMPLES, QUESTIONS, brain, question, right_answer
from loopback import ServerProcess
from wire import Wire, progress

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.core.budget import Budget
from reasonry.engine.policy import Policy
from reasonry.reading.vote import tally

AT_ONCE = 4
POLICY = Policy(max_concurrency=MOST_SAMPLES)

Took = tuple[str | None, int, int, float]
"""Answer, samples, rounds, seconds."""


async def plain(wire: Wire, number: int) -> Took:
    """All samples one after another: what a loop over a client does."""
    start = time.perf_counter()
    answers = [(await wire.ask(question(number), "answer"))["answer"] for _ in range(MOST_SAMPLES)]
    return tally(answers)[0].answer, MOST_SAMPLES, MOST_SAMPLES, time.perf_counter() - start


async def voted(app: App, model: str, stop: str, window: int, number: int) -> Took:
    options = {"samples": MOST_SAMPLES, "window": window, "stop": stop}
    order, performers = app.order(
        RunRequest(
            problem=question(number),
            strategy="self_consistency",
            options=options,
            budget=Budget(),
            participants=Participants(model=model),
        )
    )
    start = time.perf_counter()
    result = await app.solve(order, performers)
    return result.answer, result.details["samples_used"], result.rounds, time.perf_counter() - start


class Row(NamedTuple):
    """Means over the questions."""

    samples: float
    rounds: float
    right: float


async def row(server: ServerProcess, name: str, one: Callable[[int], Awaitable[Took]]) -> Row:
    await one(0)
    server.reset()
    slots = asyncio.Semaphore(AT_ONCE)
    done = 0

    async def run(number: int) -> Took:
        nonlocal done
        async with slots:
            took = await one(number)
        done += 1
        progress(name, done, QUESTIONS)
        return took

    took = await asyncio.gather(*(run(number) for number in range(QUESTIONS)))
    right = statistics.mean(answer == right_answer(number) for number, (answer, *_) in enumerate(took))
    samples, rounds = statistics.mean(one[1] for one in took), statistics.mean(one[2] for one in took)
    seconds = statistics.mean(one[3] for one in took)
    stats = server.stats()
    assert stats["samples"] == sum(one[1] for one in took), "counted at the server"
    print(
        f"{name:<37} {stats['requests'] / QUESTIONS:8.1f} {samples:7.1f} {1 - samples / MOST_SAMPLES:6.0%} "
        f"{rounds:6.1f} {seconds * 1000:7.0f} {right:6.3f}"
    )
    return Row(samples, rounds, right)


BETA = ("windows of 5, Beta rule", "beta", 5)
ROWS = (("fixed 40, side by side", "full", 40), ("windows of 5, exact bound", "exact", 5), BETA)


async def alone(folder: str, latency_ms: float) -> tuple[Row, Row]:
    """Show all rows with one sample a request; returns the first and the last of those without a peer."""
    brains = brain("vote")
    with ServerProcess(brain=brains, latency_ms=latency_ms, keep_bodies=0, samples="ignored") as server:
        wire = Wire(server.url)
        if peers.HAS_LANGGRAPH:
            await row(server, "fixed 40, LangGraph Send", peers.langgraph_votes(wire))
        if peers.HAS_DSPY:
            await row(server, "fixed 40, DSPy majority", peers.dspy_votes(server.url))
        fixed = last = await row(server, "fixed 40, plain loop", lambda number: plain(wire, number))
        await wire.close()
        async with App(str(Path(folder) / "store.db"), POLICY) as app:
            for name, stop, window in ROWS:
                last = await row(server, name, partial(voted, app, server.model, stop, window))
    return fixed, last


async def together(folder: str, latency_ms: float) -> Row:
    """Show the Beta rule with as many samples in a request as a window holds."""
    with ServerProcess(brain=brain("vote"), latency_ms=latency_ms, keep_bodies=0) as server:
        async with App(str(Path(folder) / "served.db"), POLICY) as app:
            name, stop, window = BETA
            return await row(server, f"{name}, n served", partial(voted, app, server.model, stop, window))


async def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency-ms", type=float, default=50)
    latency_ms = parser.parse_args().latency_ms
    print(f"{'':<37} {'requests':>8} {'samples':>7} {'saved':>6} {'rounds':>6} {'ms':>7} {'right':>6}")
    with tempfile.TemporaryDirectory() as folder:
        fixed, beta = await alone(folder, latency_ms)
        served = await together(folder, latency_ms)
    print(
        f"\nBeta rule: {beta.samples:.1f} of 40 samples, {beta.rounds:.1f} rounds, "
        f"accuracy {beta.right:.3f} beside {fixed.right:.3f}"
    )
    good = beta.samples <= 21 and beta.rounds <= 5 and beta.right >= fixed.right and served == beta
    print("target met" if good else "TARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
