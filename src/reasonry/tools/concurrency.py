"""Limits how many executions run at once on one event loop: others wait, and too many are refused."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

from ..errors import SandboxError

AT_ONCE = max(2, min(8, os.cpu_count() or 2))
WAITING = 256


class _Slots:
    def __init__(self) -> None:
        self.free = asyncio.Semaphore(AT_ONCE)
        self.waiting = 0


_slots_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _Slots] = WeakKeyDictionary()


@asynccontextmanager
async def execution_slot() -> AsyncGenerator[None]:
    """Hold one of the slots; wait until one is free.

    Raises:
        SandboxError: `rate_limited`: too many wait already.
    """
    slots = _slots_of_loop.setdefault(asyncio.get_running_loop(), _Slots())
    if slots.waiting >= WAITING:
        message = f"{AT_ONCE} pieces of code run and {WAITING} wait already; try again later"
        raise SandboxError(message, code="rate_limited", retryable=True, retry_after_s=1.0)
    slots.waiting += 1
    try:
        await slots.free.acquire()
    finally:
        slots.waiting -= 1
    try:
        yield
    finally:
        slots.free.release()
