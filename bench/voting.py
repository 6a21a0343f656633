"""Voting: samples and rounds saved at equal accuracy, on 40 questions with up to 40 samples each.

    uv run python bench/voting.py [--latency-ms 50]

The loopback model server runs in a process of its own; the n-th sample of a question is the same for every row, so the
rows differ only in how many samples they draw and when they stop. Questions run four at a time in every row; ms are per
question. LangGraph and DSPy are rows too if the group `bench` is installed.
Target: windows of 5 with the Beta rule take at most 21 samples and 5 rounds, at the accuracy of all 40.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import peers
from brains import MOST_SAMPLES, QUESTIONS, brain, question, right_answer
from wire import Wire, progress

from reasonry.app import App, Team
from reasonry.core.budget import Budget
from reasonry.core.vote import tally
from reasonry.runtime.policy import Policy
from reasonry.testing import ServerProcess

AT_ONCE = 4

Took = tuple[str | None, int, int, float]
"""Answer, samples, rounds, seconds."""


async def plain(wire: Wire, number: int) -> Took:
    """All samples one after another: what a loop over a client does."""
    start = time.perf_counter()
    answers = [(await wire.ask(question(number), "answer"))["answer"] for _ in range(MOST_SAMPLES)]
    return tally(answers)[0].answer, MOST_SAMPLES, MOST_SAMPLES, time.perf_counter() - start


async def voted(app: App, model: str, number: int, stop: str, window: int) -> Took:
    options = {"samples": MOST_SAMPLES, "window": window, "stop": stop}
    order, who = app.order(question(number), "self_consistency", options, Budget(), Team(model=model))
    start = time.perf_counter()
    result = await app.solve(order, who)
    return result.answer, result.details["samples_used"], result.rounds, time.perf_counter() - start


async def row(
    server: ServerProcess, name: str, one: Callable[[int], Awaitable[Took]]
) -> tuple[float, float, float]:
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
    samples, rounds = (statistics.mean(one[at] for one in took) for at in (1, 2))
    seconds = statistics.mean(one[3] for one in took)
    assert server.stats()["samples"] == sum(one[1] for one in took), "counted at the server"
    print(
        f"{name:<28} {samples:7.1f} {1 - samples / MOST_SAMPLES:7.0%} {rounds:7.1f} {seconds * 1000:9.0f} {right:7.3f}"
    )
    return samples, rounds, right


async def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency-ms", type=float, default=50)
    latency_ms = parser.parse_args().latency_ms
    print(f"{'':<28} {'samples':>7} {'saved':>7} {'rounds':>7} {'ms':>9} {'right':>7}")
    with (
        tempfile.TemporaryDirectory() as folder,
        ServerProcess(brain=brain("vote"), latency_ms=latency_ms, keep_bodies=0) as server,
    ):
        wire = Wire(server.url)
        if peers.HAS_LANGGRAPH:
            await row(server, "fixed 40, LangGraph Send", peers.langgraph_votes(wire))
        if peers.HAS_DSPY:
            await row(server, "fixed 40, DSPy majority", peers.dspy_votes(server.url))
        async with App(str(Path(folder) / "store.db"), Policy(max_concurrency=MOST_SAMPLES)) as app:
            fixed = await row(server, "fixed 40, plain loop", lambda n: plain(wire, n))
            for stop, window in (("full", 40), ("exact", 5), ("beta", 5)):
                name = {"full": "fixed 40, side by side", "exact": "windows of 5, exact bound"}.get(
                    stop, "windows of 5, Beta rule"
                )
                last = await row(
                    server,
                    name,
                    lambda n, stop=stop, window=window: voted(app, server.model, n, stop, window),
                )
        await wire.close()
    samples, rounds, right = last
    print(
        f"\nBeta rule: {samples:.1f} of 40 samples, {rounds:.1f} rounds, accuracy {right:.3f} beside {fixed[2]:.3f}"
    )
    good = samples <= 21 and rounds <= 5 and right >= fixed[2]
    print("target met" if good else "TARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
