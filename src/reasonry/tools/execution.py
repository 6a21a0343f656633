"""The interface of a sandbox: it takes code and limits, and returns an execution even if the code fails."""

import asyncio
import os
from abc import ABC, abstractmethod
from typing import Any, Literal
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import asdict, replace

from ..errors import SandboxError, ToolError, UsageError
from ..system.processes import FLOOD_BYTES, Output
from ..text import without_surrogates
from .results import cut_data

Status = Literal["ok", "error", "timeout", "memory", "denied"]

AT_ONCE = max(2, min(8, os.cpu_count() or 2))
"""How many executions may run at the same time on one event loop. Additional executions wait."""
MAX_CODE_BYTES = 1024 * 1024

_slots_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

_RANGES: dict[str, tuple[float, float]] = {
    "max_seconds": (0.01, 600),
    "max_memory_mb": (32, 16 * 1024),
    "max_output_bytes": (64, 16 * 1024 * 1024),
    "max_processes": (1, 256),
}


class ExecutionLimits(Struct, frozen=True):
    """The limits of an execution. The limits on time and output are also enforced from outside the sandbox.

    Attributes:
        max_seconds: Wall-clock seconds, 0.01 to 600.
        max_memory_mb: MiB of memory, 32 to 16,384.
        max_output_bytes: How many bytes of the output, and how many of the value, are kept: 64 bytes to 16 MiB.
        max_processes: How many processes and threads may exist, in sandboxes that allow them: 1 to 256.
    """

    max_seconds: float = 10.0
    max_memory_mb: int = 512
    max_output_bytes: int = 64 * 1024
    max_processes: int = 16

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:
                message = f"{name} must be between {low:g} and {high:g}, got {value:g}"
                raise UsageError(message, option=name, low=low, high=high)


class Execution(Struct, frozen=True):
    """The result of an execution.

    Attributes:
        status: `denied` means that the sandbox refused an operation; `timeout` and `memory` name the exceeded limit.
        value: The value of the last line as JSON data, if that line is an expression.
        stdout: The printed text, standard error included.
        error: The error message, for the author of the code.
        truncated: Whether part of `stdout` or `value` was cut off.
    """

    status: Status
    value: Any = None
    stdout: str = ""
    error: str | None = None
    truncated: bool = False
    sandbox: str = ""

    def document(self) -> dict[str, Any]:
        """Return the execution as JSON data, which every surface shows."""
        return asdict(self)


class Sandbox(ABC):
    """A place where code can do no harm. An execution cannot see earlier executions.

    The constructor raises SandboxError if the sandbox cannot be used here.

    Attributes:
        name: The sandbox's name in the option `--sandbox`.
        description: The description of the sandbox's tool, for models.
    """

    name: str
    description: str

    async def run(self, code: str, limits: ExecutionLimits = ExecutionLimits()) -> Execution:
        """Run code and return its execution, even if the code fails. If the call is cancelled, the code ends.

        Args:
            code: The program. The value of its last expression becomes the value of the execution.

        Raises:
            SandboxError: Two tries to run the code failed (`sandbox_unavailable`).
        """
        fault = ""
        if without_surrogates(code) != code:
            fault = "the code holds half a character and cannot be read"
        elif (size := len(code.encode())) > MAX_CODE_BYTES:
            fault = f"the code is {size} bytes long; at most {MAX_CODE_BYTES} are run"
        if fault:
            return Execution("error", error=fault, sandbox=self.name)
        async with _slots_of_loop.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE)):
            try:
                execution = await self._run(code, limits, Output(limits.max_output_bytes))
            except SandboxError:
                # Try once more: the code is not at fault, and the cause may have passed.
                execution = await self._run(code, limits, Output(limits.max_output_bytes))
            return replace(execution, sandbox=self.name)

    @abstractmethod
    async def _run(self, code: str, limits: ExecutionLimits, output: Output) -> Execution:
        """Run code that `run` has checked. Printed text goes to `output`."""

    def unavailable(self, reason: str, **details: Any) -> SandboxError:
        """Return the error of a sandbox that cannot be used here."""
        return SandboxError(f"the sandbox {self.name} cannot be used: {reason}", sandbox=self.name, **details)


def conclude(status: Status, output: Output, *, value: Any = None, error: str | None = None) -> Execution:
    """Build an execution whose output, value and error are cut to their limits."""
    if output.flooded:
        status, value = "error", None
        error = f"it was stopped after it had printed {FLOOD_BYTES // 2**20} MiB"
    try:
        kept, size = cut_data(value, output.limit_bytes)
    except ToolError as fault:
        return Execution("error", None, output.text(), fault.message, output.truncated)
    if error is not None:
        error = without_surrogates(error)[-4_000:]
    return Execution(status, kept, output.text(), error, size > output.limit_bytes or output.truncated)
