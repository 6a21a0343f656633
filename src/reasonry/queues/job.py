"""The job: bring a run to where it ends, or stands still."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from ..engine.telemetry import trace_work
from ..errors import ConflictError, NotFoundError, OverloadedError, ReasonryError, StoreError
from ..supervisor import Supervisor
from ..supervisor.supervisor import NEVER_HERE

SOON_S: Final = 2.0
LATER_S: Final = 60.0

_log = logging.getLogger("reasonry.worker")


class Later(Exception):
    """The job is to be tried again, by whichever worker comes first.

    Attributes:
        delay_s: After how long.
    """

    def __init__(self, delay_s: float, why: object) -> None:
        super().__init__(f"{why}")
        self.delay_s = delay_s


async def drive_run(
    supervisor: Supervisor,
    run_id: str,
    owner: str = "",
    queue: str = "",
    carried: Mapping[str, Any] | None = None,
) -> None:
    """Drive a run, and return when there is nothing more to do for it.

    Args:
        queue: Where it waited.
        carried: Of the trace of whoever began it.

    Raises:
        Later: There is, but not now, or not here.
    """
    facts = {
        "messaging.system": "procrastinate",
        "messaging.destination.name": queue,
        "messaging.operation.type": "process",
        "reasonry.run_id": run_id,
    }
    with trace_work(f"process {queue}", "CONSUMER", facts, carried):
        try:
            ended = await supervisor.take_up(run_id, owner)
        except NotFoundError:
            return
        except ReasonryError as error:
            raise _later(run_id, error) from None
        if ended is None:
            return
        await asyncio.wait([ended])
        if supervisor.draining:
            raise Later(0.0, "this worker ends")
        if error := ended.exception():
            raise Later(SOON_S, error)


def _later(run_id: str, error: ReasonryError) -> Later:
    passes = isinstance(error, (ConflictError, OverloadedError, StoreError))
    if passes and error.code not in NEVER_HERE:
        return Later(SOON_S, error)
    # A worker of another version, or with another model, may.
    _log.warning("run %s cannot be driven here: %s", run_id, error)
    return Later(LATER_S, error)
