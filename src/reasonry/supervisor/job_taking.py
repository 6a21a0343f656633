"""Jobs of a store without workers. One process takes all jobs, and alternates between their owners."""

import asyncio
import logging
import time
from collections import Counter
from contextlib import suppress
from typing import Final

from ..app.app import App
from ..engine.drive import LOOK_EVERY_S
from ..engine.result import Result
from ..errors import ConflictError, OverloadedError, ReasonryError, StoreError
from ..records import RunRow
from .supervisor import Supervisor

CONCURRENCY: Final = 32

REST_S: Final = 2.0
"""Seconds before a retry of a job that another process holds, or that waits for its caller."""

LONG_REST_S: Final = 60.0
"""Seconds before a retry of a job that this process cannot drive."""

_NEVER_HERE: Final = ("strategy_changed", "strategy_unknown", "store_newer", "store_corrupt")
"""Error codes of runs that this process cannot drive, although another process may."""

_log = logging.getLogger("reasonry")


def rest_s(run_id: str, error: ReasonryError) -> float:
    """Return the seconds before a retry of a run that could not be opened."""
    passes = isinstance(error, (ConflictError, OverloadedError, StoreError))
    if passes and error.code not in _NEVER_HERE:
        return REST_S
    _log.warning("run %s cannot be driven here: %s", run_id, error)
    return LONG_REST_S


class Jobs:
    """Drives the jobs of a store, up to `places` at once."""

    def __init__(self, app: App, supervisor: Supervisor, places: int) -> None:
        self._app, self._supervisor, self._places = app, supervisor, places
        self._at_work = Counter[str]()
        """How many jobs of each owner this process drives."""
        self._resting = dict[str, float]()
        """Maps each run whose job must wait to the time of the next try, by the monotonic clock."""

    async def take(self) -> None:
        """Drive jobs until the supervisor drains."""
        has_job = self._supervisor.has_job
        while not self._supervisor.draining:
            has_job.clear()
            try:
                while self._at_work.total() < self._places and await self._take_next():
                    continue
            except ReasonryError as error:
                _log.error("no jobs can be taken at present: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await has_job.wait()

    async def _take_next(self) -> bool:
        """Drive the next job, if any. Return whether to look for another job."""
        now_s = time.monotonic()
        self._resting = {run_id: until for run_id, until in self._resting.items() if until > now_s}
        rows = await self._app.store.waiting(self._resting)
        if not rows or self._supervisor.is_full:
            return False
        await self._take_up(min(rows, key=lambda row: self._at_work[row.owner]))
        return True

    async def _take_up(self, row: RunRow) -> None:
        try:
            ended = await self._supervisor.drive_job(row.run_id, row.owner)
        except ReasonryError as error:
            self._resting[row.run_id] = time.monotonic() + rest_s(row.run_id, error)
            return
        if ended is None:
            return
        self._at_work[row.owner] += 1

        def note_end(ended: asyncio.Future[Result]) -> None:
            self._at_work[row.owner] -= 1
            if ended.cancelled() or ended.exception() or ended.result().status == "active":
                # The run waits for its caller's answers.
                self._resting[row.run_id] = time.monotonic() + REST_S
            self._supervisor.has_job.set()

        ended.add_done_callback(note_end)
