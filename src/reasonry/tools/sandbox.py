"""The sandboxes and their tool `py_executor`. Code runs in a sandbox or not at all."""

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
    """Open a sandbox, by default `monty`. An unavailable sandbox is not replaced by another.

    Raises:
        UsageError: The name is unknown; `choices` lists the sandboxes.
        SandboxError: The sandbox cannot be used here (`sandbox_unavailable`).
    """
    wanted = name or DEFAULT
    if wanted not in SANDBOXES:
        message = f"there is no sandbox {wanted[:60]!r}; there are: {', '.join(SANDBOXES)}"
        raise UsageError(message, option="sandbox", choices=list(SANDBOXES))
    return SANDBOXES[wanted]()


async def describe_sandboxes() -> list[dict[str, Any]]:
    """Try each sandbox. Return whether each works here, with the reason if it does not."""
    rows: list[dict[str, Any]] = []
    for name in SANDBOXES:
        try:
            execution = await open_sandbox(name).run("6 * 7", ExecutionLimits(max_seconds=5.0))
            reason = "" if execution.value == 42 else execution.error or "it does not count right"
        except SandboxError as error:
            reason = error.message
        rows.append({"name": name, "usable": not reason} | ({"reason": reason} if reason else {}))
    return rows


class _Code(Struct, frozen=True):
    code: Annotated[str, Meta(description="The program. End it with the expression whose value is wanted.")]


class PyExecutor:
    """The tool that runs code from a model or a person.

    Args:
        sandbox: The sandbox, by default `monty`. While it is unavailable, calls fail: no code runs unsandboxed.
    """

    name = "py_executor"
    parameters = parameters_of(_Code)

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self.sandbox = sandbox
        self.description = (sandbox or MontySandbox).description

    async def call(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run the code and return its execution.

        The result contains no times or ids. So a question that shows the result is the same if the code runs again.

        Raises:
            SandboxError: The code was not run.
        """
        code = arguments.get("code")
        if {*arguments} != {"code"} or not isinstance(code, str) or not code.strip():
            raise ToolError(f"{self.name} takes Python code as the text `code`, and nothing else")
        return (await (self.sandbox or open_sandbox()).run(code)).document()
