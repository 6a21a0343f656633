"""The tool `py_executor`: Python code in a sandbox, never anywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ToolError
from .execution import ExecutionLimits, Sandbox
from .sandbox import open_sandbox

NAME = "py_executor"
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


class PyExecutor:
    """Runs the code that a model or a person wrote.

    Args:
        sandbox: Where; the default sandbox if None. Code fails while none can be used, and is never run unsandboxed.
        limits: What each call may use.

    Raises:
        SandboxError: No sandbox can be used here.
    """

    name = NAME
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
        self.sandbox = sandbox or open_sandbox()
        self.limits = limits or ExecutionLimits()
        self.description = DESCRIPTIONS.get(self.sandbox.name, DESCRIPTIONS["monty"])

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
            raise ToolError(f"{NAME} has no argument {unknown[0][:60]!r}; it takes code")
        if not isinstance(code, str) or not code.strip():
            raise ToolError(f"{NAME} takes Python code as the text `code`")
        document = (await self.sandbox.run(code, self.limits)).document()
        del document["duration_ms"]
        return document
