"""The sandboxes, and the tool `py_executor` over them: code is run in one of them or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from ..errors import SandboxError, ToolError, UsageError
from .execution import ExecutionLimits, Sandbox
from .python import parameters_of
from .sandbox_bubblewrap import BubblewrapSandbox
from .sandbox_monty import MontySandbox

SANDBOXES: dict[str, type[MontySandbox | BubblewrapSandbox]] = {
    kind.name: kind for kind in (MontySandbox, BubblewrapSandbox)
}

DEFAULT = MontySandbox.name


def open_sandbox(name: str | None = None) -> Sandbox:
    """Return a sandbox; the default is `monty`, and no other is put in its place.

    Raises:
        UsageError: There is no sandbox of that name; `choices` has those there are.
        SandboxError: It cannot be used here: `sandbox_unavailable`.
    """
    wanted = name or DEFAULT
    if wanted not in SANDBOXES:
        message = f"there is no sandbox {wanted[:60]!r}; there are: {', '.join(SANDBOXES)}"
        raise UsageError(message, option="sandbox", choices=list(SANDBOXES))
    return SANDBOXES[wanted]()


async def describe_sandboxes() -> list[dict[str, Any]]:
    """Return each sandbox, what it is, and whether it can be used here; each is tried out."""
    rows: list[dict[str, Any]] = []
    for name, kind in SANDBOXES.items():
        try:
            execution = await open_sandbox(name).run("6 * 7", ExecutionLimits(max_seconds=5.0))
            reason = "" if execution.value == 42 else execution.error or "it does not count right"
        except SandboxError as error:
            reason = error.message
        row = {"name": name, "usable": not reason, "default": name == DEFAULT, "summary": kind.summary}
        rows.append(row | ({"reason": reason} if reason else {}))
    return rows


class _Code(Struct, frozen=True):
    code: Annotated[str, Meta(description="The program. End it with the expression whose value is wanted.")]


class PyExecutor:
    """Runs the code that a model or a person wrote.

    Args:
        sandbox: Where; the default sandbox if None. Each call fails while it cannot be used; no code runs unsandboxed.
        limits: Of each call.
    """

    name = "py_executor"
    parameters = parameters_of(_Code)

    def __init__(self, sandbox: Sandbox | None = None, limits: ExecutionLimits | None = None) -> None:
        self.sandbox = sandbox
        self.limits = limits or ExecutionLimits()
        self.description = (sandbox or MontySandbox).description

    async def call(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run the code and return the outcome, whatever that is; not how long it took.

        So the same code brings the same result, and a question that shows it is the same question.

        Raises:
            ToolError: There is no code.
            SandboxError: It was not run.
        """
        code = arguments.get("code")
        if {*arguments} != {"code"} or not isinstance(code, str) or not code.strip():
            raise ToolError(f"{self.name} takes Python code as the text `code`, and nothing else")
        document = (await (self.sandbox or open_sandbox()).run(code, self.limits)).document()
        del document["duration_ms"]
        return document
