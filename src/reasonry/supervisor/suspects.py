"""Runs that have cost processes their lives: a run is set aside before it takes all others down with it.

The lease of a run counts the deaths of those that drove it, as long as the run gets no further in between.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from ..core.machine import SET_ASIDE
from ..engine.engine import OpenRun
from ..errors import ConflictError

MAX_DEATHS: Final = 5

_log = logging.getLogger("reasonry")


class Suspects:
    """The runs that this process drives and that have cost others their lives."""

    def __init__(self) -> None:
        self._deaths = list[int]()

    @contextmanager
    def beside(self, opened: OpenRun) -> Generator[None]:
        """Note that a run is driven; before the last time it has to be alone, so that each is judged for itself.

        Raises:
            ConflictError: It has to wait for another one.
        """
        deaths, last = opened.deaths, MAX_DEATHS - 1
        if not deaths:
            yield
            return
        if last in self._deaths or (deaths == last and self._deaths):
            message = f"run {opened.row.run_id} has cost {deaths} processes their lives; another such run goes first"
            raise ConflictError(message, run_id=opened.row.run_id, retryable=True)
        self._deaths.append(deaths)
        try:
            yield
        finally:
            self._deaths.remove(deaths)


async def set_aside(opened: OpenRun) -> bool:
    """End a run that has cost too many processes their lives; return whether it has."""
    if opened.deaths < MAX_DEATHS:
        return False
    why = f"those that drove it died {opened.deaths} times at the same place; resume it once the reason is found"
    await opened.stop(SET_ASIDE, why)
    _log.error("run %s is set aside: %s", opened.row.run_id, why)
    return True
