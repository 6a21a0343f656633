"""Commands to a drive while it works."""

import asyncio

from ..core.events import Stopped
from .budget_guard import Allowance
from .journal import Steered


class Control:
    """Sends commands to one drive on the same event loop, and holds the daily limit of the run's owner, if any."""

    def __init__(self, allowance: Allowance | None = None) -> None:
        self.allowance = allowance
        self.is_draining = self.is_cut = False
        """Whether the drive must end but not the run: once no effect is in flight, or at once."""
        self.news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once the drive has a new command."""
        self.commands: list[tuple[Steered | Stopped, asyncio.Future[bool]]] = []
        """Entries for the drive to write, each with the future that tells whether it was written."""
        self._is_over = False

    async def submit(self, entry: Steered | Stopped) -> bool:
        """Change limits, or pause, continue or end the run; return False if the drive has ended."""
        if self._is_over:
            return False
        done = asyncio.get_running_loop().create_future()
        self.commands.append((entry, done))
        self.wake()
        return await done

    def drain(self, *, cut: bool = False) -> None:
        """End the drive once no effect is in flight, or at once; the run stays active."""
        self.is_draining, self.is_cut = True, cut
        self.wake()

    def wake(self) -> None:
        """Make the drive look at its commands."""
        if not self.news.done():
            self.news.set_result(None)

    def close(self) -> None:
        """Mark the drive as ended; its remaining commands are not carried out."""
        self._is_over = True
        for _, done in self.commands:
            if not done.done():
                done.set_result(False)
