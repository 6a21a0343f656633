"""The tools of coached and driven runs, over the app."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ...app import App
from ...core.budget import Budget
from ...core.machine import Step
from ...engine.journal import Folded
from ...engine.observe import Unwatched
from ...errors import UsageError
from ...strategies import DEFAULT_STRATEGY
from ..agents import AgentAccess, Named
from .tools import CallContext, Document, McpTool, Report

_RUNS = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False}
_STRING = {"type": "string"}
_ACTIONS = ["start", "answer", "status", "cancel"]
_COUNT = {"type": "integer", "minimum": 1}
_AMOUNT = {"type": "number", "exclusiveMinimum": 0}

_ORDER: dict[str, Any] = {
    "problem": _STRING,
    "strategy": {"type": "string", "description": f"Default {DEFAULT_STRATEGY}"},
    "options": {"type": "object", "description": "The strategy's options"},
    "maxCalls": _COUNT,
    "maxSeconds": _AMOUNT,
}

COACH_DESCRIPTION = (
    "Have a strategy run while you do its thinking: `start` with a problem returns questions; `answer` them all, each "
    "in its answerSchema, and get the next ones or the result. `status`, `cancel`."
)
SOLVE_DESCRIPTION = "Have a model solve a problem with a strategy; returns the answer and what it took."


def run_tools(app: App) -> list[McpTool]:
    """Return the tools of runs: `coach` always, `solve` where a model is configured.

    Raises:
        UsageError: A setting lists for agents what cannot be.
    """
    access = AgentAccess(app)
    return [coach_tool(access), *([solve_tool(access)] if access.has_model else [])]


def coach_tool(access: AgentAccess) -> McpTool:
    """Return the tool of coached runs."""
    answers = {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"id": _STRING, "answer": {}},
            "required": ["id", "answer"],
        },
    }
    actions = {"type": "string", "enum": _ACTIONS}
    properties = {
        "action": actions,
        "runId": _STRING,
        "answers": answers,
        **_ORDER,
        **access.check_schemas(),
    }
    return McpTool(
        name="coach",
        title="Coached Run",
        description=COACH_DESCRIPTION,
        input_schema={"type": "object", "properties": properties, "required": ["action"]},
        output_schema=_object(
            {
                "runId": _STRING,
                "status": _STRING,
                "questions": {"type": "array", "items": {"type": "object"}},
                "progress": {"type": "object"},
                "note": _STRING,
                "result": {"type": "object"},
            },
            ["runId", "status", "questions", "progress"],
        ),
        annotations={**_RUNS, "openWorldHint": False},
        call=lambda arguments, context: _coach(access, _known("coach", arguments, properties)),
    )


def solve_tool(access: AgentAccess) -> McpTool:
    """Return the tool of driven runs."""
    properties = {**_ORDER, "maxUsd": _AMOUNT, "model": access.model_schema(), **access.check_schemas()}
    return McpTool(
        name="solve",
        title="Solve",
        description=SOLVE_DESCRIPTION,
        input_schema={"type": "object", "properties": properties, "required": ["problem"]},
        output_schema=_object(
            {"answer": {"type": ["string", "null"]}, "status": _STRING, "termination": {"type": "object"}},
            ["answer", "status", "termination"],
        ),
        annotations={**_RUNS, "openWorldHint": True},
        call=lambda arguments, context: _solve(access, _known("solve", arguments, properties), context),
    )


def _object(properties: Mapping[str, Any], required: list[str]) -> Document:
    return {"type": "object", "properties": dict(properties), "required": required}


async def _coach(access: AgentAccess, arguments: Document) -> Document:
    action = _text(arguments, "action")
    if action not in _ACTIONS:
        raise UsageError(
            f"action must be one of {', '.join(_ACTIONS)}, got {action[:60]!r}",
            field="action",
            choices=_ACTIONS,
        )
    named = Named.read(arguments)
    if action == "start":
        return await access.coach_start(
            _text(arguments, "problem"),
            _text(arguments, "strategy", DEFAULT_STRATEGY),
            _options(arguments),
            _budget(arguments),
            named,
        )
    run_id = _text(arguments, "runId")
    match action:
        case "answer":
            return await access.coach_answer(run_id, _answers(arguments), named)
        case "status":
            return await access.app.coach().status(run_id)
        case _:
            return await access.app.coach().cancel(run_id)


async def _solve(access: AgentAccess, arguments: Document, context: CallContext) -> Document:
    order, who = await access.order(
        _text(arguments, "problem"),
        _text(arguments, "strategy", DEFAULT_STRATEGY),
        _options(arguments),
        _budget(arguments),
        Named.read(arguments),
    )
    watch = _Reporter(context.report) if context.report else None
    result = await access.app.solve(order, who, watch)
    if watch is not None:
        await watch.told()
    return result.document()


class _Reporter(Unwatched):
    """Tells the caller of each thought as it is recorded."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._telling: set[asyncio.Task[None]] = set()
        self._steps = 0

    def stepped(self, run: Folded, step: Step) -> None:
        """See `Observer`."""
        self._steps += 1
        said = step.thoughts[-1].text[:200] if step.thoughts else run.snapshot.stage
        task = asyncio.ensure_future(self._tell(self._steps, said))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _tell(self, number: int, message: str) -> None:
        await self._report(float(number), None, message)

    async def told(self) -> None:
        """Return when everything has been told."""
        await asyncio.gather(*self._telling, return_exceptions=True)


def _known(tool: str, arguments: Document, properties: Mapping[str, Any]) -> Document:
    """Return the arguments; one that would do nothing is refused, so that nobody relies on it."""
    unknown = [name for name in arguments if name not in properties]
    if unknown:
        message = f"{tool} has no argument {unknown[0][:60]!r}; its arguments: {', '.join(properties)}"
        raise UsageError(message, field=unknown[0][:60], choices=list(properties))
    return arguments


def _text(arguments: Document, name: str, default: str | None = None) -> str:
    value = arguments.get(name, default)
    if not isinstance(value, str):
        raise UsageError(f"{name} must be text", field=name)
    return value


def _options(arguments: Document) -> dict[str, Any]:
    options = arguments.get("options", {})
    if not isinstance(options, dict):
        raise UsageError("options must be an object", field="options")
    return options


def _answers(arguments: Document) -> list[dict[str, Any]]:
    answers = arguments.get("answers")
    if not isinstance(answers, list) or not all(isinstance(one, dict) for one in answers):
        raise UsageError("answers must be a list of {id, answer}", field="answers")
    return answers


def _budget(arguments: Document) -> Budget:
    limits: dict[str, Any] = {}
    for name, limit, kind in (
        ("maxCalls", "calls", int),
        ("maxUsd", "usd", float),
        ("maxSeconds", "seconds", float),
    ):
        value = arguments.get(name)
        if value is None:
            continue
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not (whole or (kind is float and isinstance(value, float))) or not 0 < value < float("inf"):
            raise UsageError(f"{name} must be a {'whole ' if kind is int else ''}number above 0", field=name)
        limits[limit] = value
    return Budget(**limits)
