"""The sandboxes: which there are, and opening one. Code is run in one of them or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import SandboxError, UsageError
from .execution import Execution, Limits, Sandbox
from .sandbox_bubblewrap import BubblewrapSandbox
from .sandbox_monty import MontySandbox

__all__ = ["SANDBOXES", "Execution", "Limits", "Sandbox", "describe_sandboxes", "open_sandbox"]

SANDBOXES: dict[str, Callable[[], Sandbox]] = {"monty": MontySandbox, "bubblewrap": BubblewrapSandbox}

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
    wanted = name or "monty"
    if wanted not in SANDBOXES:
        names = ", ".join(SANDBOXES)
        raise UsageError(
            f"there is no sandbox {wanted[:60]!r}; there are: {names}",
            option="sandbox",
            choices=list(SANDBOXES),
        )
    return SANDBOXES[wanted]()


def describe_sandboxes() -> list[dict[str, Any]]:
    """Return each sandbox, what it is, and whether it can be used here."""
    rows: list[dict[str, Any]] = []
    for name in SANDBOXES:
        row: dict[str, Any] = {
            "name": name,
            "usable": True,
            "default": name == "monty",
            "summary": _SUMMARIES[name],
        }
        try:
            open_sandbox(name)
        except SandboxError as error:
            row |= {"usable": False, "reason": error.message}
        rows.append(row)
    return rows
