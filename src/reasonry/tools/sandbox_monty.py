"""The sandbox `monty`: a Python interpreter in Rust, in a process of its own, that has no way to reach the world.

Each execution gets a fresh worker process, so that nothing is left of one for the next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from msgspec.structs import replace

from ..errors import SandboxError
from .execution import FLOOD_MESSAGE, Execution, Limits, Output, Status, concluded, refusal
from .turnstile import turn

if TYPE_CHECKING:
    from pydantic_monty import AsyncMonty, ResourceLimits

_GRACE_S = 1.0
_REACHING_OUT = frozenset(
    {"ctypes", "ftplib", "http", "mmap", "multiprocessing", "pty", "resource", "shutil", "signal", "socket"}
    | {"sqlite3", "ssl", "subprocess", "tempfile", "threading", "urllib", "_thread"}
)
"""Modules that Monty does not have and whose use is an attempt to get out, not a gap of its library."""


class MontySandbox:
    """Runs code with `pydantic-monty`: a subset of Python, without classes' inheritance or third-party packages.

    Raises:
        SandboxError: It is not installed.
    """

    name = "monty"

    def __init__(self) -> None:
        try:
            import pydantic_monty
        except ImportError as error:
            raise SandboxError(
                f"the sandbox monty cannot be used ({error}); install pydantic-monty", sandbox=self.name
            ) from None
        self.version: str = pydantic_monty.__version__

    async def run(self, code: str, limits: Limits = Limits()) -> Execution:
        """Run code. The value of the last expression is its value."""
        refused = refusal(code, self.name)
        if refused is not None:
            return refused
        async with turn():
            started = time.monotonic()
            execution = await self._run(code, limits)
            return replace(execution, duration_ms=round((time.monotonic() - started) * 1000))

    async def _run(self, code: str, limits: Limits) -> Execution:
        from pydantic_monty import MontyError

        output = Output(limits.max_output_bytes)
        try:
            async with (
                asyncio.timeout(limits.max_seconds + 2 * _GRACE_S) as deadline,
                self._pool(limits) as pool,
                pool.checkout(script_name="code.py", limits=_limits(limits)) as session,
            ):
                value = await session.feed_run(code, print_callback=_printer(output, deadline))
        except MontyError as error:
            status, message = _status(error)
            return concluded(status, self.name, output, limits, error=message)
        except TimeoutError:
            if output.flooded:
                return concluded("error", self.name, output, limits, error=FLOOD_MESSAGE)
            message = f"it did not end within {limits.max_seconds:g} s"
            return concluded("timeout", self.name, output, limits, error=message)
        except OSError as error:
            raise SandboxError(
                f"the sandbox monty could not be started: {error}", sandbox=self.name
            ) from None
        except Exception as error:
            # The host's side of the conversation gave up, such as on a value that it cannot take in.
            return concluded("error", self.name, output, limits, error=f"{type(error).__name__}: {error}")
        return _done(value, self.name, output, limits)

    def _pool(self, limits: Limits) -> AsyncMonty:
        from pydantic_monty import AsyncMonty

        return AsyncMonty(max_processes=1, request_timeout=limits.max_seconds + _GRACE_S)


def _limits(limits: Limits) -> ResourceLimits:
    return {
        "max_feed_duration_secs": limits.max_seconds,
        "max_total_sleep_secs": limits.max_seconds,
        "max_memory": limits.max_memory_mb * 2**20,
    }


def _printer(output: Output, deadline: asyncio.Timeout) -> Any:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if not deadline.expired():
            deadline.reschedule(loop.time())

    def add(_: Literal["stdout", "stderr"], text: str) -> None:
        flooded = output.flooded
        output.add(text.encode(errors="replace"))
        if output.flooded and not flooded:
            loop.call_soon_threadsafe(stop)

    return add


def _status(error: Any) -> tuple[Status, str]:
    from pydantic_monty import MontyCrashedError, MontyRuntimeError

    if isinstance(error, MontyCrashedError):
        return ("timeout", "it did not end in time") if error.timed_out else ("error", f"it crashed: {error}")
    cause = error.exception()
    if not isinstance(error, MontyRuntimeError):
        return "error", f"{type(cause).__name__}: {error}"
    return _kind(cause, str(cause)), error.display("traceback")


def _kind(cause: BaseException, message: str) -> Status:
    match cause:
        case TimeoutError() if "limit exceeded" in message:
            return "timeout"
        case MemoryError():
            return "memory"
        case PermissionError():
            return "denied"
        case RuntimeError() if "is not supported in this environment" in message:
            return "denied"
        case ModuleNotFoundError() if _REACHING_OUT & set(message.split("'")):
            return "denied"
        case _:
            return "error"


def _done(value: Any, name: str, output: Output, limits: Limits) -> Execution:
    try:
        return concluded("ok", name, output, limits, value=_data(value))
    except RecursionError:
        return concluded("error", name, output, limits, error="the value is nested too deeply")


def _data(value: Any) -> Any:
    """Return a value with what only Monty knows as plain data: an object is its attributes."""
    from pydantic_monty import MontyClassProxy

    if isinstance(value, MontyClassProxy):
        return _data(value.attributes)
    if isinstance(value, Mapping):
        return {key: _data(item) for key, item in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_data(item) for item in cast(list[Any], value)]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
