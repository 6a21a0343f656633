"""Commands to a drive while it works."""

import asyncio

from .budget_guard import Allowance


class Control:
    """Gives commands to one drive on the same event loop, and holds the daily limit of the run's owner, if any."""

    def __init__(self, allowance: Allowance | None = None) -> None:
        self.allowance = allowance
        self.is_draining = self.is_cut = False
        """`is_draining`: end the drive, but not the run, once no effect is in flight. `is_cut`: end the drive now."""
        self.cancelled: str | None = None
        """The reason for which the run must end as cancelled. None if the run is not to be cancelled."""
        self.news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """A future that is done once the drive has a new command."""

    def cancel(self, detail: str) -> None:
        """End the run as cancelled."""
        self.cancelled = detail
        self.wake()

    def drain(self, *, cut: bool = False) -> None:
        """End the drive once no effect is in flight, or at once if `cut`. The run stays active."""
        self.is_draining, self.is_cut = True, cut
        self.wake()

    def wake(self) -> None:
        """Make the drive look at its commands and at its journal."""
        if not self.news.done():
            self.news.set_result(None)
