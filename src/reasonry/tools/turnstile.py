"""How many executions go on at once, on one event loop: the rest wait their turn, and a crowd is sent away."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

from ..errors import SandboxError

AT_ONCE = max(2, min(8, os.cpu_count() or 2))
WAITING = 256


class _Turnstile:
    def __init__(self) -> None:
        self.turns = asyncio.Semaphore(AT_ONCE)
        self.waiting = 0


_turnstiles: WeakKeyDictionary[asyncio.AbstractEventLoop, _Turnstile] = WeakKeyDictionary()


@asynccontextmanager
async def turn() -> AsyncGenerator[None]:
    """Wait for a turn and hold it.

    Raises:
        SandboxError: `rate_limited`: too many wait already.
    """
    stile = _turnstiles.setdefault(asyncio.get_running_loop(), _Turnstile())
    if stile.waiting >= WAITING:
        message = f"{AT_ONCE} pieces of code run and {WAITING} wait already; try again later"
        raise SandboxError(message, code="rate_limited", retryable=True, retry_after_s=1.0)
    stile.waiting += 1
    try:
        await stile.turns.acquire()
    finally:
        stile.waiting -= 1
    try:
        yield
    finally:
        stile.turns.release()
