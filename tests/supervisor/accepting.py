"""A process to be killed or stopped: accepts runs, says so, brings them to their end, and says what that was."""

from __future__ import annotations

import asyncio
import sys

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.core.budget import Budget
from reasonry.errors import ReasonryError
from reasonry.records import JobOptions
from reasonry.supervisor import Jobs, Supervisor

PROBLEM = "Use 4, 9, 10 and 13 to make 24"
OPTIONS = {"expand_width": 2, "max_depth": 3}


async def accept(path: str, model: str, runs: int) -> None:
    async with App(path, environ={}) as app:
        supervisor = Supervisor(app)
        driving = asyncio.create_task(Jobs(app, supervisor, runs).take())
        accepted = list[str]()
        for _ in range(runs):
            order, performers = app.order(
                RunRequest(
                    problem=PROBLEM,
                    strategy="tree_of_thoughts",
                    options=OPTIONS,
                    budget=Budget(calls=200),
                    participants=Participants(model=model),
                )
            )
            accepted.append((await supervisor.start(app, order, performers, job=JobOptions()))[0])
            print(accepted[-1], flush=True)
        for run_id in accepted:
            try:
                print((await supervisor.wait(app, run_id)).status, flush=True)
            except ReasonryError as error:
                print(error.code, flush=True)
        await driving


if __name__ == "__main__":
    asyncio.run(accept(sys.argv[1], sys.argv[2], int(sys.argv[3])))
