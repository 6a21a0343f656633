"""Runs side by side, a run that is canceled, a run that is cut short and resumed, and an error.

python examples/resume_and_fan_out.py
"""

from __future__ import annotations

import asyncio
import tempfile

from reasonry import Budget, UsageError, solve, stream
from reasonry.ext import App

PUZZLES = ["Use 4, 9, 10 and 13 to make 24", "Use 3, 3, 8 and 8 to make 24"]


async def main(store: str) -> None:
    """Do all four over one store."""
    results = await asyncio.gather(*(solve(each, model="offline", store=store) for each in PUZZLES))
    print("side by side:", *(result.answer for result in results))

    events = stream(PUZZLES[0], strategy="tree_of_thoughts", model="offline", store=store)
    run_id = (await anext(events)).run_id
    await events.aclose()

    tight = Budget(calls=2)
    cut = await solve(PUZZLES[0], strategy="tree_of_thoughts", model="offline", store=store, budget=tight)
    async with App(store) as app:
        print("closed:", (await app.store.run(run_id)).status)
        print("cut:", cut.outcome, "resumed:", (await app.resume(cut.run_id, budget=Budget(calls=20))).answer)

    try:
        await solve(PUZZLES[0], strategy="tree_of_ideas", model="offline", store=store)
    except UsageError as error:
        print("refused:", error.message)


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(f"{folder}/runs.db"))
