"""Jobs that commands begin: how they wait, and who drives them where no workers share the store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Final

from ...app.wiring import App
from ...engine.result import Result
from ...errors import ConflictError, OverloadedError, UsageError
from ...records import MAX_PRIORITY, JobOptions, Store
from ...supervisor import CONCURRENCY, Supervisor
from .output import print_note

LOOK_EVERY_S: Final = 0.5
DRAIN_S: Final = 3.0


def read_job(store: Store, priority: int | None, at: str | None, queue: str | None) -> JobOptions:
    """Return what the options of a command say of how jobs wait.

    Raises:
        UsageError: One of them is not valid, or there are no workers that it could be for.
    """
    named = {"priority": priority, "at": at, "queue": queue}
    asked = [name for name, value in named.items() if value is not None]
    if not asked:
        return JobOptions()
    if not store.has_workers:
        raise UsageError(
            f"--{asked[0]} is for a store in PostgreSQL, which workers share; here jobs begin in their order",
            option=asked[0],
        )
    from ...queues import read_queues

    if not 0 <= (priority or 0) <= MAX_PRIORITY:
        raise UsageError(f"--priority goes from 0 to {MAX_PRIORITY}, got {priority}", option="priority")
    name, *others = read_queues(queue or JobOptions().queue)
    if others:
        raise UsageError("--queue takes one name", option="queue")
    return JobOptions(name, JobOptions().priority if priority is None else priority, _instant_ms(at))


def _instant_ms(at: str | None) -> int | None:
    if at is None:
        return None
    try:
        instant = datetime.fromisoformat(at).astimezone(UTC).timestamp()
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"--at takes a time such as 2026-12-24T18:00, got {at[:60]!r}", option="at"
        ) from None
    return int(max(time.time(), instant) * 1_000)


async def note_who_drives(app: App, *, here: bool) -> None:
    """Say so if nobody drives the jobs of the store but, perhaps, this command."""
    if (await app.store.job_standing()).workers:
        return
    if app.store.has_workers:
        print_note(
            "no worker is there: `reasonry worker` or `reasonry serve` on this store drives what waits"
        )
    elif here:
        print_note("no server runs on this store: this command drives the runs itself")
    else:
        print_note("no server runs on this store: `reasonry serve` drives what waits")


class OwnJobs:
    """Drives jobs of a command, as long as no server does and no workers share the store."""

    def __init__(self, app: App) -> None:
        self._app, self._supervisor = app, Supervisor(app, max_runs=CONCURRENCY)
        self._at_work = dict[str, asyncio.Future[Result]]()

    async def drive(self, run_ids: Collection[str]) -> None:
        """Begin to drive what nobody drives, as far as there are places; return when something may have ended.

        Raises:
            ReasonryError: One of them cannot be driven.
        """
        store, ended = self._app.store, set[asyncio.Future[Result]]()
        if not store.has_workers and not (await store.job_standing()).workers:
            for run_id in run_ids:
                if len(self._at_work) >= CONCURRENCY:
                    break
                if run_id not in self._at_work:
                    await self._take_up(run_id)
        if self._at_work:
            ended, _ = await asyncio.wait(
                self._at_work.values(), timeout=LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED
            )
        else:
            await asyncio.sleep(LOOK_EVERY_S)
        self._at_work = {run_id: drive for run_id, drive in self._at_work.items() if drive not in ended}

    async def _take_up(self, run_id: str) -> None:
        try:
            drive = await self._supervisor.take_up(run_id)
        except (ConflictError, OverloadedError):
            # Another drives it.
            return
        if drive is not None:
            self._at_work[run_id] = drive

    async def close(self) -> None:
        """Let go of what is at work."""
        await self._supervisor.drain(DRAIN_S)
