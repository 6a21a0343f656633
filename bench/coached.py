"""Coached runs: what their replies cost, and milliseconds an answer takes, from the first to the 1,000th.

    uv run python bench/coached.py [FOLDER]

About half a minute. FOLDER says which disk the store is on. A scratchpad of 1,000 steps is answered by its caller:
each answer opens the run, takes the answer, and returns the next question. What is shown is the median processor time
of the fifty answers before each place. Target: at the 1,000th at most twice what it takes at the 50th.

Before that two games of 24 and an analysis of two tasks are answered in brief replies. Targets, in characters / 4 of
the compact JSON of all replies: 1,500 and 4,000 tokens.

The prompts of this strategy have all its lines, so that they themselves grow; what is measured is the rest.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from reasonry.app.runs import coach_answer, coach_start

sys.path.append(str(Path(__file__).parents[1]))

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.core.budget import Budget
from tests.surfaces.coached_agents import PUZZLES, QUERY, analyst, play, solver

ANSWERS, AROUND = 1_000, 50
PLACES = (50, 250, 500, 750, 1_000)


def reply(question: dict[str, Any], number: int) -> dict[str, Any]:
    if question["stage"] == "scratchpad_initialization":
        return {"stateVariables": {"n": 0}, "rule": "add 1"}
    return {"calculation": f"n + 1 = {number}", "stateVariables": {"n": number}, "finished": False}


async def answer_all(store: str) -> list[float]:
    """Return the milliseconds of each answer."""
    taken: list[float] = []
    async with App(store) as app:
        options = {"max_steps": ANSWERS}
        shown = await coach_start(
            app,
            RunRequest(
                problem="Count to a thousand.",
                strategy="scratchpad",
                options=options,
                budget=Budget(),
                participants=Participants(),
            ),
        )
        for number in range(ANSWERS):
            (question,) = shown["questions"]
            answer = {"id": question["id"], "answer": json.dumps(reply(question, number))}
            began = time.process_time()
            shown = await coach_answer(app, shown["run_id"], [answer])
            taken.append((time.process_time() - began) * 1e3)
    return taken


def show_tokens() -> bool:
    """Show what the replies of each run cost; return whether none is over its target."""
    tokens: dict[str, tuple[float, int]] = {}
    for puzzle in PUZZLES:
        for verifier in (None, "arithmetic:24"):
            _, sizes = asyncio.run(play(solver(puzzle), puzzle, "tree_of_thoughts", verifier=verifier))
            tokens[f"{puzzle}, {verifier or 'no verifier'}"] = sum(sizes) / 4, 1_500
    _, sizes = asyncio.run(play(analyst, QUERY, "analysis", {"focused_answer_type": "yes/no"}))
    tokens["analysis of two tasks"] = sum(sizes) / 4, 4_000
    for run, (taken, target) in tokens.items():
        print(f"{run:50}  {taken:6.0f} tokens of replies (target {target:,})")
    return all(taken <= target for taken, target in tokens.values())


def main() -> int:
    is_brief = show_tokens()
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else ".") as folder:
        taken = asyncio.run(answer_all(str(Path(folder) / "coached.db")))
    at = {place: statistics.median(taken[max(0, place - AROUND) : place]) for place in PLACES}
    for place, milliseconds in at.items():
        print(f"answer {place:5}  {milliseconds:6.2f} ms")
    good = is_brief and at[PLACES[-1]] <= 2 * at[PLACES[0]]
    print("target met" if good else "TARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
