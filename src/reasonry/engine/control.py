"""The other end of a drive: what others want of it while it works."""

from __future__ import annotations

import asyncio

from ..core.events import Stopped
from .budget_guard import Allowance
from .journal import Steered


class Control:
    """The other end of one drive, on the same event loop.

    Args:
        allowance: What the run's owner may spend in a day, whichever run it is for; None: there is no limit.
    """

    def __init__(self, allowance: Allowance | None = None) -> None:
        self.allowance = allowance
        self.is_draining = self.is_cut = False
        """Whether the drive is to end with the run active: once nothing is in flight, or at once."""
        self.news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once something is wanted that the drive has not looked at."""
        self.wanted: list[tuple[Steered | Stopped, asyncio.Future[bool]]] = []
        """What is to be written down, and who waits for that."""
        self._is_over = False

    async def want(self, entry: Steered | Stopped) -> bool:
        """Have limits changed, or the run paused, continued or ended; return whether that is written down.

        It is not if the drive has ended before.
        """
        if self._is_over:
            return False
        done = asyncio.get_running_loop().create_future()
        self.wanted.append((entry, done))
        self.wake()
        return await done

    def drain(self, *, cut: bool = False) -> None:
        """Have the drive end once nothing is in flight, or at once; the run stays active."""
        self.is_draining, self.is_cut = True, cut
        self.wake()

    def wake(self) -> None:
        """Have the drive look at what is wanted."""
        if not self.news.done():
            self.news.set_result(None)

    def close(self) -> None:
        """Say that the drive has ended; what is still wanted is not written down by it."""
        self._is_over = True
        for _, done in self.wanted:
            if not done.done():
                done.set_result(False)
