"""`reasonry tools`: what a run can call, and running code in a sandbox by hand."""

from __future__ import annotations

from typing import Any, Literal

from ...errors import NotFoundError, UsageError
from ...extras import has_extra
from ...tools.execution import MAX_CODE_BYTES, ExecutionLimits
from ...tools.sandbox import SANDBOXES, describe_sandboxes, open_sandbox
from .. import present
from .arguments import Text, WholeNumber, read_text
from .output import print_line, print_note
from .settings import OutputOptions, run_async
from .tables import Column

_COLUMNS = (
    Column("NAME", "name"),
    Column(
        "STATE",
        lambda row: ("default" if row.get("default") else "usable") if row["usable"] else "not usable",
    ),
    Column("WHAT IT DOES", "description", narrowest=30, wraps=True),
)


def list_(*, output: OutputOptions = OutputOptions()) -> int:
    """List the tools that come with Reasonry, and the sandboxes."""
    sandboxes = run_async(describe_sandboxes())
    tools = _tools(sandboxes)
    rows = [{**row, "name": f"sandbox {row['name']}", "description": row["summary"]} for row in sandboxes]
    return output.show_rows({"tools": tools, "sandboxes": sandboxes}, _COLUMNS, [*tools, *rows])


def run_(
    name: str,
    /,
    *,
    code: Text,
    sandbox: Literal["monty", "bubblewrap"] | None = None,
    max_seconds: float = 10.0,
    max_memory_mb: WholeNumber = 512,
    max_output_bytes: WholeNumber = 64 * 1024,
    output: OutputOptions = OutputOptions(),
) -> int:
    """Run code in a sandbox and show what became of it.

    Parameters
    ----------
    name
        The tool: py_executor.
    code
        A file with the code; `-` reads standard input.
    sandbox
        Where to run it.
    max_seconds
        Wall-clock seconds until it is stopped.
    max_memory_mb
        MiB of memory it may use.
    max_output_bytes
        Bytes of output, and of the value, that are kept.
    """
    if name != "py_executor":
        raise NotFoundError(f"tools run runs py_executor, not {name[:60]!r}", choices=["py_executor"])
    text = read_text(code, "code", MAX_CODE_BYTES)
    if not text.strip():
        raise UsageError(f"there is no code in {code}", option="code")
    limits = ExecutionLimits(max_seconds, max_memory_mb, max_output_bytes)
    document = run_async(open_sandbox(sandbox).run(text, limits)).document()
    output.show(document, lambda: _show(document))
    return 0 if document["status"] == "ok" else present.EXIT_CODES["sandbox_denied"]


def _tools(sandboxes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    usable = [row["name"] for row in sandboxes if row["usable"]]
    first = usable[0] if usable else "monty"
    return [
        {"name": "py_executor", "description": SANDBOXES[first].description, "usable": bool(usable)},
        {
            "name": "check_claim",
            "description": "Prove or refute a formal claim with Z3.",
            "usable": has_extra("logic"),
        },
        {
            "name": "search_documents",
            "description": "Find passages in the documents given with --context.",
            "usable": True,
            "pdf": has_extra("documents"),
        },
    ]


def _show(document: dict[str, Any]) -> None:
    if document["stdout"]:
        print_line(document["stdout"].rstrip("\n"))
    if document["status"] == "ok":
        print_line(str(document["value"]))
    else:
        print_note(f"{document['status']}: {document['error']}")
    cut = ", cut" if document["truncated"] else ""
    print_note(f"[{document['sandbox']}, {document['duration_ms']} ms{cut}]")
