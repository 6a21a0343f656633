"""Signals that ask a process to end, on systems with and without signal support in event loops."""

import asyncio
import signal
from collections.abc import Callable
from types import FrameType

ENDINGS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name))
"""Ctrl-C, a request to end and, on Windows, Ctrl-Break."""


def on_ending(act: Callable[[], object]) -> None:
    """Call `act` on the running loop at every signal of `ENDINGS`."""
    loop = asyncio.get_running_loop()

    def came(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(act)

    for number in ENDINGS:
        try:
            loop.add_signal_handler(number, act)
        except NotImplementedError:
            signal.signal(number, came)
