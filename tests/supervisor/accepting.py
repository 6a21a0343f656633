"""A process to be killed or stopped: accepts runs, says so, brings them to their end, and says what that was."""

import asyncio
import sys

from reasonry.app.app import App
from reasonry.errors import ReasonryError
from reasonry.supervisor import Jobs, Supervisor

from ..queues.working import accept as accept_jobs


async def accept(path: str, model: str, runs: int) -> None:
    async with App(path, environ={}) as app:
        supervisor = Supervisor(app)
        driving = asyncio.create_task(Jobs(app, supervisor, runs).take())
        accepted = await accept_jobs(app, model, runs)
        print(*accepted, sep="\n", flush=True)
        for run_id in accepted:
            try:
                print((await supervisor.wait(app, run_id)).status, flush=True)
            except ReasonryError as error:
                print(error.code, flush=True)
        await driving


if __name__ == "__main__":
    asyncio.run(accept(sys.argv[1], sys.argv[2], int(sys.argv[3])))
