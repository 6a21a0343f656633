"""`reasonry tools`: what a run can call, and running code in a sandbox by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from ...errors import NotFoundError, TooLargeError, UsageError
from ...extras import has_extra
from ...tools.execution import MAX_CODE_BYTES, ExecutionLimits
from ...tools.py_executor import DESCRIPTIONS
from ...tools.sandbox import describe_sandboxes, open_sandbox
from .. import present
from .output import print_document, print_line, print_note
from .settings import run_async
from .tables import Column, print_table
from .whole_numbers import WholeNumber

_FAILED = present.EXIT_CODES["sandbox_denied"]


def list_(*, json: Annotated[bool, Parameter(negative=())] = False) -> int:
    """List the tools that come with Reasonry, and the sandboxes.

    Parameters
    ----------
    json
        Print one JSON document on standard output and nothing else.
    """
    sandboxes = run_async(describe_sandboxes())
    document = {"tools": _tools(sandboxes), "sandboxes": sandboxes}
    if json:
        print_document(document)
        return 0
    columns = (Column("NAME"), Column("STATE"), Column("WHAT IT DOES", narrowest=30, wraps=True))
    tools = [(row["name"], _state(row), row["description"]) for row in document["tools"]]
    print_table(
        columns, tools + [(f"sandbox {row['name']}", _state(row), row["summary"]) for row in sandboxes]
    )
    return 0


def _state(row: dict[str, Any]) -> str:
    if not row["usable"]:
        return "not usable"
    return "default" if row.get("default") else "usable"


def run_(
    name: str,
    /,
    *,
    code: Annotated[str, Parameter(allow_leading_hyphen=True)],
    sandbox: Literal["monty", "bubblewrap"] | None = None,
    max_seconds: float = 10.0,
    max_memory_mb: WholeNumber = 512,
    max_output_bytes: WholeNumber = 64 * 1024,
    json: Annotated[bool, Parameter(negative=())] = False,
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
    json
        Print one JSON document on standard output and nothing else.
    """
    if name != "py_executor":
        raise NotFoundError(f"tools run runs py_executor, not {name[:60]!r}", choices=["py_executor"])
    limits = ExecutionLimits(max_seconds, max_memory_mb, max_output_bytes)
    document = run_async(open_sandbox(sandbox).run(_read(code), limits)).document()
    if json:
        print_document(document)
    else:
        _show(document)
    return 0 if document["status"] == "ok" else _FAILED


def _read(file: str) -> str:
    try:
        if file == "-":
            raw = sys.stdin.buffer.read(MAX_CODE_BYTES + 1)
        else:
            with Path(file).expanduser().open("rb") as opened:
                raw = opened.read(MAX_CODE_BYTES + 1)
        if len(raw) > MAX_CODE_BYTES:
            raise TooLargeError(f"{file} is over {MAX_CODE_BYTES} bytes of code", limit=MAX_CODE_BYTES)
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"the code {file!r} cannot be read: {error.strerror}", option="code") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8 text", option="code") from None
    if not text.strip():
        raise UsageError(f"there is no code in {file}", option="code")
    return text


def _tools(sandboxes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    usable = [row["name"] for row in sandboxes if row["usable"]]
    first = usable[0] if usable else "monty"
    return [
        {"name": "py_executor", "description": DESCRIPTIONS[first], "usable": bool(usable)},
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
