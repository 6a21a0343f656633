"""Handles the signals that ask a process to end, on every system."""

import asyncio
import signal
from collections.abc import Callable

ENDINGS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name))
"""The signals that ask a process to end: Ctrl-C (SIGINT), SIGTERM and, on Windows, Ctrl-Break (SIGBREAK)."""


def on_ending(act: Callable[[], object]) -> None:
    """Call `act` in the running event loop each time the process receives a signal in `ENDINGS`."""
    loop = asyncio.get_running_loop()
    for number in ENDINGS:
        try:
            loop.add_signal_handler(number, act)
        except NotImplementedError:
            signal.signal(number, lambda number, frame: loop.call_soon_threadsafe(act))
