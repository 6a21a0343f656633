"""The example that the page shows where there is nothing else: a real run, kept in no store."""

from __future__ import annotations

from ...app.participants import Participants
from ...app.use_cases import RunRequest
from ...app.wiring import App
from ...core.budget import Budget
from .find_page import page_of_run
from .page import PageDocument

PROBLEM = "Use 4, 9, 10 and 13 to make 24"


async def demo_page() -> PageDocument:
    """Solve the example by exact arithmetic, and return the page of the run."""
    async with App("memory", environ={}) as app:
        order, performers = app.order(
            RunRequest(problem=PROBLEM, budget=Budget(), participants=Participants(model="offline"))
        )
        result = await app.solve(order, performers)
        return await page_of_run(app, await app.store.run(result.run_id))
