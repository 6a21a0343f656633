"""The sandboxes: which there are, and opening one. Code is run in one of them or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import SandboxError, UsageError
from .execution import Execution, ExecutionLimits, Sandbox
from .sandbox_bubblewrap import BubblewrapSandbox
from .sandbox_monty import MontySandbox

__all__ = [
    "DEFAULT",
    "SANDBOXES",
    "Execution",
    "ExecutionLimits",
    "Sandbox",
    "describe_sandboxes",
    "open_sandbox",
]

SANDBOXES: dict[str, Callable[[], Sandbox]] = {"monty": MontySandbox, "bubblewrap": BubblewrapSandbox}

DEFAULT = "monty"

_SUMMARIES = {
    "monty": "a subset of Python, on every system; starts in milliseconds",
    "bubblewrap": "CPython with numpy and sympy where installed; Linux with bwrap",
}


def open_sandbox(name: str | None = None) -> Sandbox:
    """Return a sandbox; the default is `monty`, and no other is put in its place.

    Raises:
        UsageError: There is no sandbox of that name; `choices` has those there are.
        SandboxError: It cannot be used here: `sandbox_unavailable`.
    """
    wanted = name or DEFAULT
    if wanted not in SANDBOXES:
        names = ", ".join(SANDBOXES)
        raise UsageError(
            f"there is no sandbox {wanted[:60]!r}; there are: {names}",
            option="sandbox",
            choices=list(SANDBOXES),
        )
    return SANDBOXES[wanted]()


async def describe_sandboxes() -> list[dict[str, Any]]:
    """Return each sandbox, what it is, and whether it can be used here; each is tried out."""
    return [await _describe(name) for name in SANDBOXES]


async def _describe(name: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": name,
        "usable": True,
        "default": name == DEFAULT,
        "summary": _SUMMARIES[name],
    }
    try:
        execution = await open_sandbox(name).run("6 * 7", ExecutionLimits(max_seconds=5.0))
    except SandboxError as error:
        return row | {"usable": False, "reason": error.message}
    if execution.value != 42:
        return row | {"usable": False, "reason": execution.error or "it does not count right"}
    return row
