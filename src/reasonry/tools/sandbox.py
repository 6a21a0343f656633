"""The sandboxes, and the tool `py_executor` over them: code is run in one of them or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import SandboxError, ToolError, UsageError
from .execution import ExecutionLimits, Sandbox
from .sandbox_bubblewrap import BubblewrapSandbox
from .sandbox_monty import MontySandbox

SANDBOXES: dict[str, Callable[[], Sandbox]] = {"monty": MontySandbox, "bubblewrap": BubblewrapSandbox}

DEFAULT = "monty"

_SUMMARIES = {
    "monty": "a subset of Python, on every system; starts in milliseconds",
    "bubblewrap": "CPython with numpy and sympy where installed; Linux with bwrap",
}


DESCRIPTIONS = {
    "monty": (
        "Run Python code and return the value of its last line and what it printed. Plain Python with math, re, json, "
        "datetime, decimal and little else of the standard library: no class inheritance, no third-party packages, "
        "no files, no network."
    ),
    "bubblewrap": (
        "Run Python code and return the value of its last line and what it printed. CPython with its standard library, "
        "numpy and sympy; no network, no processes, files only under /tmp and gone afterwards."
    ),
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


class PyExecutor:
    """Runs the code that a model or a person wrote.

    Args:
        sandbox: Where; the default sandbox if None. Each call fails while it cannot be used; no code runs unsandboxed.
        limits: What each call may use.
    """

    name = "py_executor"
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "code": {
                "type": "string",
                "description": "The program. End it with the expression whose value is wanted.",
            }
        },
        "required": ["code"],
    }

    def __init__(self, sandbox: Sandbox | None = None, limits: ExecutionLimits | None = None) -> None:
        self.sandbox = sandbox
        self.limits = limits or ExecutionLimits()
        self.description = DESCRIPTIONS[sandbox.name if sandbox else DEFAULT]

    async def call(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run the code and return what became of it, whatever that is; not how long it took.

        So the same code brings the same result, and a question that shows it is the same question.

        Raises:
            ToolError: There is no code.
            SandboxError: It was not run.
        """
        code = arguments.get("code")
        unknown = [name for name in arguments if name != "code"]
        if unknown:
            raise ToolError(f"{self.name} has no argument {unknown[0][:60]!r}; it takes code")
        if not isinstance(code, str) or not code.strip():
            raise ToolError(f"{self.name} takes Python code as the text `code`")
        sandbox = self.sandbox or open_sandbox()
        document = (await sandbox.run(code, self.limits)).document()
        del document["duration_ms"]
        return document
