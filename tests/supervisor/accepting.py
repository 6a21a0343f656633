"""A process to be killed: accepts runs, says so, and brings them to their end."""

from __future__ import annotations

import asyncio
import sys

from reasonry.app import App
from reasonry.core.budget import Budget
from reasonry.participants import Participants
from reasonry.supervisor import Supervisor

PROBLEM = "Use 4, 9, 10 and 13 to make 24"
OPTIONS = {"expand_width": 2, "max_depth": 3}


async def accept(path: str, model: str, runs: int) -> None:
    async with App(path, environ={}) as app:
        supervisor = Supervisor(app)
        for _ in range(runs):
            order, performers = app.order(
                PROBLEM, "tree_of_thoughts", OPTIONS, Budget(calls=200), Participants(model=model)
            )
            print((await supervisor.start(app, order, performers))[0], flush=True)
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(accept(sys.argv[1], sys.argv[2], int(sys.argv[3])))
