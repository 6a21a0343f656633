"""The job: bring a run to where it ends, or stands still."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ..engine.telemetry import trace_work
from ..errors import NotFoundError, ReasonryError
from ..supervisor import Supervisor
from ..supervisor.job_taking import REST_S, rest_s


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
            raise Later(rest_s(run_id, error), error) from None
        if ended is None:
            return
        await asyncio.wait([ended])
        if supervisor.draining:
            raise Later(0.0, "this worker ends")
        if error := ended.exception():
            raise Later(REST_S, error)
