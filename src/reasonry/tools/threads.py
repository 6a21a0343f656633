"""Runs a blocking function in a thread of its own."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(name: str, function: Callable[..., T], *values: Any, **named: Any) -> T:
    """Return what a function returns, or raise what it raises.

    The thread is a daemon: unlike one of a pool, it cannot hold up the end of the process. When the caller is
    cancelled, the thread is left alone; nothing waits for it.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: T | None, error: BaseException | None) -> None:
        if not future.done():
            future.set_result((value, error))

    def work() -> None:
        value, error = None, None
        try:
            value = context.run(function, *values, **named)
        except BaseException as raised:
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=work, name=name, daemon=True).start()
    value, error = await future
    if error is not None:
        raise error
    return value  # pyright: ignore[reportReturnType]
