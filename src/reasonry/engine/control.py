"""Commands to a drive while it works."""

import asyncio

from .budget_guard import Allowance


class Control:
    """Commands one drive on the same event loop, and holds the daily limit of the run's owner, if any."""

    def __init__(self, allowance: Allowance | None = None) -> None:
        self.allowance = allowance
        self.is_draining = self.is_cut = False
        """Whether the drive must end but not the run: once no effect is in flight, or at once."""
        self.cancelled: str | None = None
        """The reason why the run must end as cancelled, if it must."""
        self.news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once the drive has a new command."""

    def cancel(self, detail: str) -> None:
        """End the run as cancelled."""
        self.cancelled = detail
        self.wake()

    def drain(self, *, cut: bool = False) -> None:
        """End the drive once no effect is in flight, or at once; the run stays active."""
        self.is_draining, self.is_cut = True, cut
        self.wake()

    def wake(self) -> None:
        """Make the drive look at its commands, and at its journal."""
        if not self.news.done():
            self.news.set_result(None)
