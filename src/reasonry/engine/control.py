"""Commands that other tasks give to a drive while the drive works."""

import asyncio

from .budget_guard import Allowance


class Control:
    """Passes commands from tasks of one event loop to a drive. `allowance` is the owner's daily limit, if any."""

    def __init__(self, allowance: Allowance | None = None) -> None:
        self.allowance = allowance
        self.is_draining = self.is_cut = False
        """`is_draining`: whether the drive must end once no effect is in flight. `is_cut`: whether it must end now."""
        self.cancelled: str | None = None
        """The reason for the cancellation of the run. None means that no task has cancelled the run."""
        self.news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """A future that is done once the drive has a new command."""

    def cancel(self, detail: str) -> None:
        """Make the drive end the run as cancelled."""
        self.cancelled = detail
        self.wake()

    def drain(self, *, cut: bool = False) -> None:
        """Make the drive end after the effects in flight. If `cut` is True, end it at once. The run stays active."""
        self.is_draining, self.is_cut = True, cut
        self.wake()

    def wake(self) -> None:
        """Make the drive check for new commands, and for changes to the run in the store."""
        if not self.news.done():
            self.news.set_result(None)
