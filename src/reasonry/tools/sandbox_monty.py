"""The sandbox `monty`: a Python interpreter in Rust, in a process of its own, without access to the outside.

Each execution gets a fresh worker process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING, Any, Literal

from ..system.plugins import has_extra, install_hint
from ..system.processes import Output
from .execution import Execution, ExecutionLimits, Sandbox, Status, conclude
from .python import in_thread

if TYPE_CHECKING:
    from pydantic_monty import ResourceLimits

_GRACE_S = 1.0
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
_FINDING = threading.Lock()
"""Held while Monty finds its binary, because CPython 3.11 fills `sysconfig` without a lock of its own."""


class MontySandbox(Sandbox):
    """Runs code with `pydantic-monty`: a subset of Python without inheritance and third-party packages."""

    name = "monty"
    description = (
        "Run Python code and return the value of its last line and what it printed. Plain Python with math, re, json, "
        "datetime, decimal and little else of the standard library: no class inheritance, no third-party packages, "
        "no files, no network."
    )

    def __init__(self) -> None:
        if not has_extra("sandbox"):
            raise self.unavailable(f"it is not installed: {install_hint('sandbox')}", extra="sandbox")

    async def _run(self, code: str, limits: ExecutionLimits, output: Output) -> Execution:
        feed = _Feed(code, limits, output)
        # Run in a thread: with Monty's own asyncio support, a process that ends soon after an execution may abort.
        running = asyncio.ensure_future(in_thread("monty", feed.run))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            feed.kill()
            await running
            raise
        except OSError as error:
            raise self.unavailable(f"it could not be started: {error}") from None


class _Feed:
    """An execution of a piece of code in a worker process of its own."""

    def __init__(self, code: str, limits: ExecutionLimits, output: Output) -> None:
        self.code, self.limits, self.output = code, limits, output
        self._worker: int | None = None
        self._killed = False
        self._lock = threading.Lock()

    def run(self) -> Execution:
        """Run the code and block until its end.

        Raises:
            OSError: No worker could be started.
        """
        try:
            return conclude("ok", self.output, value=self._value())
        except OSError:
            raise
        except Exception as error:
            status, message = _status(error, self.limits)
            return conclude(status, self.output, error=message)

    def kill(self) -> None:
        with self._lock:
            self._killed = True
            if self._worker is not None:
                with contextlib.suppress(OSError):
                    os.kill(self._worker, _KILL)

    def _value(self) -> Any:
        patience = self.limits.max_seconds + _GRACE_S
        limits: ResourceLimits = {
            "max_feed_duration_secs": self.limits.max_seconds,
            "max_total_sleep_secs": self.limits.max_seconds,
            "max_memory": self.limits.max_memory_mb * 2**20,
        }
        with contextlib.ExitStack() as stack:
            try:
                from pydantic_monty import Monty

                with _FINDING:
                    pool = stack.enter_context(Monty(max_processes=1, request_timeout=patience))
                session = stack.enter_context(pool.checkout(script_name="code.py", limits=limits))
            except Exception as error:
                raise OSError(f"{type(error).__name__}: {error}") from error
            with self._lock:
                self._worker = session.worker_pid
                if self._killed:
                    return None
            try:
                return session.feed_run(self.code, print_callback=self._print)
            finally:
                with self._lock:
                    self._worker = None

    def _print(self, _: Literal["stdout", "stderr"], text: str) -> None:
        self.output.add(text.encode(errors="replace"))
        if self.output.flooded and not self._killed:
            self.kill()


def _status(error: Exception, limits: ExecutionLimits) -> tuple[Status, str]:
    from pydantic_monty import MontyCrashedError, MontyError, MontyRuntimeError

    match error:
        case MontyCrashedError() if error.timed_out:
            return "timeout", f"it did not end within {limits.max_seconds:g} s"
        case MontyCrashedError():
            return "error", f"it crashed: {error}"
        case MontyRuntimeError():
            return _kind(error.exception()), error.display("traceback")
        case _:
            # The code cannot be parsed, or this process gave up, for example on a value that it cannot accept.
            cause = error.exception() if isinstance(error, MontyError) else error
            return "error", f"{type(cause).__name__}: {error}"


def _kind(cause: BaseException) -> Status:
    match cause:
        case TimeoutError() if "limit exceeded" in str(cause):
            return "timeout"
        case MemoryError():
            return "memory"
        case PermissionError():
            return "denied"
        case RuntimeError() if "is not supported in this environment" in str(cause):
            return "denied"
        case _:
            return "error"
