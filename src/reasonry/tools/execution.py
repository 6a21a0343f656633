"""A sandbox: code and limits go in, an execution comes out, whatever the code did."""

from __future__ import annotations

import asyncio
import os
import time
from abc import ABC, abstractmethod
from typing import Any, Literal
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from ..errors import ToolError, UsageError
from ..reading.json_in_text import without_surrogates
from .results import cut_data

Status = Literal["ok", "error", "timeout", "memory", "denied"]

AT_ONCE = max(2, min(8, os.cpu_count() or 2))
"""Executions on one event loop; others wait."""
MAX_CODE_BYTES = 1024 * 1024
FLOOD_BYTES = 16 * 1024 * 1024
"""Code that prints this much is stopped; what is over the limit of the output but under this is only cut."""

FLOOD_MESSAGE = f"it was stopped after it had printed {FLOOD_BYTES // 2**20} MiB"


_slots_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class ExecutionLimits(Struct, frozen=True):
    """What an execution may use. Hard: the host enforces them from outside as well.

    Attributes:
        max_seconds: Wall-clock seconds, 0.01 to 600.
        max_memory_mb: MiB of memory, 32 to 16,384.
        max_output_bytes: Of output kept, and of the value; 64 to 16 MiB.
        max_processes: Processes and threads, where the sandbox has such; 1 to 256.
    """

    max_seconds: float = 10.0
    max_memory_mb: int = 512
    max_output_bytes: int = 64 * 1024
    max_processes: int = 16

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise UsageError(
                    f"{name} must be between {low:g} and {high:g}, got {value:g}",
                    option=name,
                    low=low,
                    high=high,
                )


_RANGES: dict[str, tuple[float, float]] = {
    "max_seconds": (0.01, 600),
    "max_memory_mb": (32, 16 * 1024),
    "max_output_bytes": (64, 16 * 1024 * 1024),
    "max_processes": (1, 256),
}


class Execution(Struct, frozen=True):
    """What became of some code.

    Attributes:
        status: `denied` is what the sandbox refused to do for the code; `timeout` and `memory` are its limits.
        sandbox: Which one ran it.
        value: JSON data: the value of the last line, if that is an expression.
        stdout: What it printed, also on standard error.
        error: What went wrong, for the one who wrote the code.
        truncated: Whether something of `stdout` or `value` was cut off.
    """

    status: Status
    sandbox: str
    value: Any = None
    stdout: str = ""
    error: str | None = None
    truncated: bool = False
    duration_ms: int = 0

    def document(self) -> dict[str, Any]:
        """Return it as the document that every surface shows."""
        names = ("status", "value", "stdout", "error", "truncated", "sandbox", "duration_ms")
        return {name: getattr(self, name) for name in names}


class Sandbox(ABC):
    """A place where code can do no harm. Nothing is left of one execution for the next.

    Attributes:
        name: As a user would write it after `--sandbox`.
    """

    name: str

    async def run(self, code: str, limits: ExecutionLimits = ExecutionLimits()) -> Execution:
        """Run code. Whatever it does is an `Execution`; cancelling ends it.

        Args:
            code: The value of its last expression is its value.

        Raises:
            SandboxError: It was not run: `sandbox_unavailable`.
        """
        refused = _refusal(code)
        if refused is not None:
            return Execution("error", self.name, error=refused)
        async with _slots_of_loop.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE)):
            started = time.monotonic()
            execution = await self._run(code, limits)
            return replace(execution, duration_ms=round((time.monotonic() - started) * 1000))

    @abstractmethod
    async def _run(self, code: str, limits: ExecutionLimits) -> Execution:
        """Run code that is worth starting."""


def _refusal(code: str) -> str | None:
    """Return why code is not worth starting, if it is such."""
    try:
        size = len(code.encode())
    except UnicodeEncodeError:
        return "the code holds half a character and cannot be read"
    return (
        f"the code is {size} bytes long; at most {MAX_CODE_BYTES} are run" if size > MAX_CODE_BYTES else None
    )


class Output:
    """What code prints, kept up to a limit.

    Args:
        limit_bytes: How much is kept.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.kept = bytearray()
        self.seen_bytes = 0

    def add(self, piece: bytes) -> None:
        """Take in a piece."""
        self.seen_bytes += len(piece)
        self.kept += piece[: self.limit_bytes - len(self.kept)]

    @property
    def flooded(self) -> bool:
        """Whether the code should be stopped for it."""
        return self.seen_bytes > FLOOD_BYTES

    @property
    def truncated(self) -> bool:
        """Whether something was dropped."""
        return self.seen_bytes > len(self.kept)

    def text(self) -> str:
        """Return what was kept."""
        return without_surrogates(self.kept.decode(errors="ignore" if self.truncated else "replace"))


def conclude(
    status: Status,
    sandbox: str,
    output: Output,
    limits: ExecutionLimits,
    *,
    value: Any = None,
    error: str | None = None,
) -> Execution:
    """Put an execution together, bounded in every part."""
    try:
        kept, size = cut_data(value, limits.max_output_bytes)
    except ToolError as fault:
        return Execution("error", sandbox, None, output.text(), fault.message, output.truncated)
    if error is not None:
        error = without_surrogates(error)[-4_000:]
    return Execution(
        status, sandbox, kept, output.text(), error, size > limits.max_output_bytes or output.truncated
    )
