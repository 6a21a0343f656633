"""Who waits for which run: when the last client of one hangs up before its end, it is cancelled."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

from ...app.wiring import App
from ...errors import ReasonryError
from ...supervisor import Supervisor

HUNG_UP: Final = "its client hung up"
"""Why a run was cancelled that goes on when its client comes again; one that its user has cancelled does not."""


class Attendance:
    """The clients of one server, by the runs they wait for."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._present: Counter[str] = Counter()
        self._at_work: set[asyncio.Task[None]] = set()

    @contextmanager
    def attend(self, app: App, run_id: str, *, leaves: bool) -> Generator[None]:
        """Count a client as present meanwhile.

        Args:
            leaves: Whether the run goes on without it.
        """
        self._present[run_id] += 1
        try:
            yield
        finally:
            self._go(app, run_id, leaves=leaves)

    def let_go(self, run_id: str) -> None:
        """Count the clients of a run no more: it has come to its end, or waits for calls to be made."""
        del self._present[run_id]

    def _go(self, app: App, run_id: str, *, leaves: bool) -> None:
        if run_id not in self._present:
            return
        self._present[run_id] -= 1
        if self._present[run_id] > 0:
            return
        del self._present[run_id]
        if leaves or self._supervisor.draining:
            return
        # Whoever hung up does not wait, and must not be what the cancelling is cancelled with.
        task = asyncio.create_task(self.cancel(app, run_id))
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)

    async def cancel(self, app: App, run_id: str) -> None:
        """End a run as cancelled, unless it has ended."""
        with suppress(ReasonryError):
            await self._supervisor.cancel(app, run_id, HUNG_UP)
