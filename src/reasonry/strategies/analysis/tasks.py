"""A task's life: converted, carried out, judged; or failed, and tried again within limits.

knowledge      convert → (fetch) → perform → judge      from the user's documents, where there are any
logic_kernel   convert → perform → (run) → judge        a formal claim is checked where there is a checker
py_executor    perform → run → judge                    passed through without conversion
any tool       convert → run → judge
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...core.effects import CallTool
from ...core.evidence import evidence_text

Step = Literal["waiting", "convert", "fetch", "perform", "run", "judge", "over"]
Status = Literal["PENDING", "ACCEPTED", "REJECTED", "FAILED", "SKIPPED"]

BUILT_IN = ("knowledge", "logic_kernel", "py_executor")
PASSED_THROUGH = ("py_executor",)
RETRIEVER, CHECKER = "search_documents", "check_claim"

SHORTEST_QUOTE = 8
"""Characters; shorter texts are words that a reason may need."""

_SENTENCE = re.compile(r"[^\n.!?;]+")


class Task(Struct, frozen=True, omit_defaults=True):
    """One task of the selected plan, and how far it has got."""

    resource_name: str
    task_query: str
    iteration: int
    number: int
    """In its plan, from 1."""
    depends_on: tuple[int, ...] = ()
    step: Step = "waiting"
    status: Status = "PENDING"
    reason: str = ""
    tool_input: dict[str, Any] = {}
    passages: Any = None
    draft: dict[str, Any] = {}
    """What the model wrote and a tool has yet to run or check."""
    result: Any = None
    errors: tuple[str, ...] = ()
    """Of the attempts that failed."""
    verdicts: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    votes_drawn: int = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return self.step == "over"

    @property
    def text(self) -> str:
        """What its resource is given."""
        query = self.tool_input.get("query")
        if isinstance(query, str):
            return query
        return evidence_text(self.tool_input) if self.tool_input else self.task_query

    @property
    def document(self) -> dict[str, Any]:
        """The task as the result document has it."""
        return {
            "resource_name": self.resource_name,
            "query": self.task_query,
            "status": self.status,
            "reason": self.reason,
            "result": self.result,
            "iteration": self.iteration,
            "attempts": len(self.errors) + (self.status != "FAILED" and self.step != "waiting"),
            "errors": list(self.errors),
        }


def opened(task: Task) -> Task:
    """Begin a task."""
    return replace(task, step="perform" if task.resource_name in PASSED_THROUGH else "convert")


def converted(task: Task, tool_input: dict[str, Any], tools: Set[str]) -> Task:
    """Take the input of its resource."""
    if task.resource_name not in BUILT_IN:
        return replace(task, tool_input=tool_input, step="run")
    fetches = task.resource_name == "knowledge" and RETRIEVER in tools
    return replace(task, tool_input=tool_input, step="fetch" if fetches else "perform")


def performed(task: Task, written: dict[str, Any], tools: Set[str]) -> Task:
    """Take what the model wrote; code is run, a formal claim is checked."""
    claims = task.resource_name == "logic_kernel" and written.get("formal_claim") and CHECKER in tools
    if claims or task.resource_name == "py_executor":
        return replace(task, draft=written, step="run")
    if task.passages is not None:
        written = {**written, "passages": task.passages}
    return replace(task, result=written, step="judge")


def call(task: Task) -> CallTool:
    """Return the tool call a task wants."""
    if task.step == "fetch":
        return CallTool(RETRIEVER, {"query": task.text})
    if task.resource_name == "py_executor":
        return CallTool("py_executor", {"code": task.draft["code"]})
    if task.resource_name == "logic_kernel":
        claim = task.draft["formal_claim"]
        return CallTool(CHECKER, claim if isinstance(claim, dict) else {"claim": claim})
    return CallTool(task.resource_name, task.tool_input)


def returned(task: Task, value: Any, retry_limit: int) -> Task:
    """Take what a tool returned."""
    if task.step == "fetch":
        passages = value.get("passages", value) if isinstance(value, dict) else value
        return replace(task, passages=passages, step="perform")
    if task.resource_name == "logic_kernel":
        return replace(task, result={**task.draft, "check": value}, step="judge")
    if task.resource_name != "py_executor":
        return replace(task, result=value, step="judge")
    fault = _execution_fault(value)
    if fault is not None:
        return failed(task, fault, retry_limit)
    return replace(task, result={**task.draft, "output": value}, step="judge")


def failed(task: Task, error: str, retry_limit: int) -> Task:
    """Book a failed attempt; the next one is made where the error can be mended, as long as one is left."""
    if task.step == "run" and task.resource_name == "logic_kernel":
        return replace(
            task, result={**task.draft, "check": {"verdict": "unknown", "detail": error}}, step="judge"
        )
    errors = (*task.errors, error)
    if len(errors) > retry_limit:
        return replace(task, errors=errors, step="over", status="FAILED", reason=error)
    mended_at: dict[Step, Step] = {"run": "perform" if task.resource_name in BUILT_IN else "convert"}
    return replace(task, errors=errors, step=mended_at.get(task.step, task.step))


def judged(task: Task, status: Literal["ACCEPTED", "REJECTED"], reason: str) -> Task:
    """Close a task with the verdict on its result."""
    return replace(task, status=status, reason=reason, step="over")


def skipped(task: Task, reason: str) -> Task:
    """Close a task that will not be carried to its end; one that is over stays as it is."""
    return task if task.is_over else replace(task, status="SKIPPED", reason=reason, step="over")


def setback(task: Task) -> str:
    """Say what became of a task without a word of its result."""
    reason = task.reason if task.status != "REJECTED" else without_quotes(task.reason, task.result)
    return f'- {task.resource_name}, "{task.task_query}": {task.status.lower()}: {reason}'


def without_quotes(reason: str, result: Any) -> str:
    """Return a reason without the sentences of a result that it quotes."""
    quoted = {piece.strip() for text in _texts(result) for piece in (text, *_SENTENCE.findall(text))}
    for piece in sorted(quoted, key=len, reverse=True):
        if len(piece) >= SHORTEST_QUOTE:
            reason = reason.replace(piece, "[…]")
    return reason


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _execution_fault(value: Any) -> str | None:
    """What went wrong in a sandbox that says so in its document."""
    if not isinstance(value, dict) or value.get("status") in (None, "ok"):
        return None
    said = value.get("error") or value.get("stdout") or msgspec.json.encode(value).decode()
    return f"{value['status']}: {said}"
