"""Offers runs as tasks of the protocol (extension `io.modelcontextprotocol/tasks`).

Rule 1: a task is a job of the store, and the id of the task is the id of the run. The status, message, question and
        result of the task are derived from the run's record; nothing else is stored.
Rule 2: if a run reaches a limit or asks a question, it waits `ASK_MS` for the user. After this time, or if the user
        declines, the run is stopped. The user is never asked for secrets.
Rule 3: an ended task stays ended, unless a separate call resumes its run.
"""

import asyncio
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct, structs

from ...app.app import App
from ...app.requests import RunRequest
from ...blocks.toolcard import ToolCard
from ...core.budget import Budget
from ...core.effects import CallTool
from ...engine.engine import BY_USER
from ...engine.open_questions import result_events, waiting_calls
from ...engine.run import Run
from ...errors import ConflictError, NotFoundError, OverloadedError
from ...guided.session_documents import instant
from ...records import JobOptions, RunRow, now_ms
from ...strategies import INQUIRER
from ...supervisor import Supervisor
from ...text import display_line, lazy_pattern
from ...tools.catalog import CallersTool
from .. import present
from ..run_report import thought_title
from .tools import CallContext, Document, tool_result

TASKS: Final = "io.modelcontextprotocol/tasks"
"""The name of the protocol's extension for tasks, which only the stateless version has."""
TASK_METHODS: Final = ("tasks/get", "tasks/update", "tasks/cancel")
ASK_MS: Final = 3_600_000
"""Milliseconds that a task waits for a reply of its user."""
RETRY_S: Final = 0.02
"""Seconds before a retry, if another client or a drive that has just ended still holds the run."""
POLL_MS: Final = 1_000
"""The interval, in milliseconds, at which clients should poll a task."""

ASK_USER = ToolCard(
    "ask_user",
    "Asks the user one question, about what only the user can know. Never for passwords, keys or other secrets.",
    {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]},
)
_NO_SECRETS = "Users are not asked for secrets. Do without."
_SECRET = lazy_pattern(
    r"(?i)\b(?:pass(?:word|phrase|code)s?|secrets?|credentials?|(?:api|private|access|secret|ssh)[ _-]?(?:key|token)s?"
    r"|(?:auth|bearer)[ _-]?tokens?|(?:seed|recovery) phrase|otp|one-time code|pin|cv[cv]|credit card)\b"
)
_UNITS: Final = {"usd": "${:.2f}", "seconds": "{:g} s"}
_LIMITS: Final = {f"max_{name}": name for name in Budget.__struct_fields__ if name != "closes"}
"""Maps the termination reason of a run that reached a limit to the name of the limit in the budget."""


class ElicitReply(Struct, frozen=True):
    """The user's reply to a question."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class TaskParams(Struct, frozen=True, rename="camel"):
    """The parameters of a request about a task."""

    task_id: str
    input_responses: dict[str, ElicitReply] = {}


class UserQuestion(NamedTuple):
    """A task's question to its user.

    Attributes:
        key: The key of the question, unique within the task.
        raised: The new budget if the question is whether to exceed a reached limit. None if the run itself asks.
    """

    key: str
    message: str
    raised: Budget | None = None

    def request(self) -> Document:
        """Return the question as an `elicitation/create` request of the protocol."""
        properties = {} if self.raised else {"answer": {"type": "string", "title": "Answer"}}
        schema = {"type": "object", "properties": properties, "required": [*properties]}
        params = {"mode": "form", "message": self.message, "requestedSchema": schema}
        return {"method": "elicitation/create", "params": params}


def without_search(document: Document) -> Document:
    """Copy a run's document without its candidates, search tree and diagnostics."""
    kept = {
        name: part for name, part in document.items() if name not in ("candidates", "tree", "diagnostics")
    }
    result = kept.get("result")
    return kept | {"result": without_search(result)} if isinstance(result, dict) else kept


class RunTasks:
    """The tasks of a principal.

    Args:
        supervisor: The supervisor of a process that drives the store's jobs. If None, this object drives each task that
            a client asks about.
    """

    def __init__(self, app: App, supervisor: Supervisor | None = None) -> None:
        self.app, self._drives = app, supervisor is None
        self.supervisor = supervisor or Supervisor(app)
        handlers = zip(TASK_METHODS, (self._get, self._update, self._cancel), strict=True)
        self.methods = {name: (TaskParams, handler) for name, handler in handlers}

    # -- starting

    async def start(self, request: RunRequest, job: JobOptions | None, *, can_ask: bool) -> str:
        """Begin a run and return the run's id. If `job` is given, the run is an MCP task."""
        order, performers = await self.app.receive(request)
        if job is not None and can_ask and order.strategy == INQUIRER:
            tools = [*request.participants.tools, CallersTool(ASK_USER)]
            parts = structs.replace(request.participants, tools=tools)
            asking = structs.replace(request, strategy=INQUIRER, participants=parts)
            order, performers = await self.app.receive(asking)
        run_id, _ = await self.supervisor.start(self.app, order, performers, job=job)
        return run_id

    async def _attend(self, run_id: str) -> None:
        """Drive a task that is not yet driven. If the supervisor of the process drives the tasks, do nothing."""
        if self._drives and not self.supervisor.is_driven(run_id):
            with suppress(ConflictError, OverloadedError):
                await self.supervisor.drive_job(run_id)

    # -- reading

    async def _get(self, wanted: TaskParams, context: CallContext) -> Document:
        return await self.read(wanted.task_id, can_ask=context.can_ask)

    async def read(self, run_id: str, *, can_ask: bool = True) -> Document:
        """Return the current state of a task, or raise NotFoundError.

        Args:
            can_ask: Whether the client can ask its user. If not, a reached limit ends the task.
        """
        row, run, question = await self._settle(run_id, can_ask=can_ask)
        if question is not None:
            asked = {question.key: question.request()}
            return {**_task(row, "input_required", question.message), "inputRequests": asked}
        if row.status == "active":
            if not row.paused and row.outcome != "waiting":
                await self._attend(run_id)
            return _task(row, "working", _message(run) if run is not None else "")
        document = (await self.app.engine.result(run_id)).document(nodes=False)
        message = present.end_text(document)
        if row.status == "cancelled":
            return _task(row, "cancelled", message)
        result = {"resultType": "complete", **tool_result(document, shown=without_search(document))}
        return {**_task(row, "completed", message), "result": result}

    # -- commands

    async def _cancel(self, wanted: TaskParams, context: CallContext) -> Document:
        """Cancel a task. An ended task stays unchanged."""
        run_id = wanted.task_id
        row, _, question = await self._settle(run_id)
        while question is not None:
            await self._stop(run_id, question, "cancelled", BY_USER)
            row, _, question = await self._settle(run_id)
        if row.status == "active":
            with suppress(ConflictError):
                await self.supervisor.cancel(self.app, run_id)
        return {}

    async def _update(self, wanted: TaskParams, context: CallContext) -> Document:
        """Accept the user's reply to a task's open question. Replies to any other question are ignored."""
        run_id, replies = wanted.task_id, wanted.input_responses
        _, _, question = await self._settle(run_id)
        while question is not None and (reply := replies.get(question.key)) is not None:
            if reply.action != "accept":
                await self._stop(run_id, question, "declined", f"the user declined: {question.message}")
            elif question.raised:
                with suppress(ConflictError):
                    await self.supervisor.resume(self.app, run_id, None, question.raised, job=JobOptions())
            else:
                await self._answer(run_id, question.key, str((reply.content or {}).get("answer", "")))
            # If another client holds the run, the question is still open.
            await asyncio.sleep(RETRY_S)
            _, _, question = await self._settle(run_id)
        await self._attend(run_id)
        return {}

    async def _settle(
        self, run_id: str, *, can_ask: bool = True
    ) -> tuple[RunRow, Run | None, UserQuestion | None]:
        """Close a task's question if it is too old or cannot be asked. Return the task's row, run and open question."""
        while True:
            row = await self.app.store.run(run_id)
            if not row.unattended:
                raise NotFoundError(f"run {run_id} is no task; `coach` shows and resumes it", run_id=run_id)
            is_met = row.outcome == "stopped" and row.reason in _LIMITS
            if row.status != "active" and not is_met:
                return row, None, None
            read = await self.app.engine.read(run_id, whole=False)
            question = _question_of(read.row, read.run, read.chain.seq)
            if question is None:
                return read.row, read.run, None
            if not question.raised and _SECRET.search(question.message):
                await self._answer(run_id, question.key, _NO_SECRETS)
            elif now_ms() > row.updated_at_ms + ASK_MS:
                await self._stop(run_id, question, "unanswered", f"nobody answered: {question.message}")
            elif question.raised and not can_ask:
                await self._stop(run_id, question, "declined", f"nobody could be asked: {question.message}")
            else:
                return read.row, read.run, question
            await asyncio.sleep(RETRY_S)

    async def _stop(self, run_id: str, question: UserQuestion, reason: str, detail: str) -> None:
        """Stop a run if its `question` is still open. The run's task then ends."""
        with suppress(ConflictError):
            async with self.app.engine.open(run_id) as opened:
                if _question_of(opened.row, opened.run, opened.chain.seq) != question:
                    return
                await opened.stop(reason, detail)

    async def _answer(self, run_id: str, key: str, text: str) -> None:
        """Record the user's reply in a run, and let the run continue. A reply that is already recorded is ignored."""
        with suppress(ConflictError):
            async with self.app.engine.open(run_id) as opened:
                at_ms = max(opened.run.snapshot.at_ms, 0)
                await opened.take_answers(result_events(opened.run, {key: text}, at_ms))
                await opened.reopen(job=JobOptions())
        self.supervisor.has_job.set()


def _question_of(row: RunRow, run: Run, seq: int) -> UserQuestion | None:
    if row.status == "active":
        calls = [] if run.paused or row.outcome != "waiting" else waiting_calls(run)
        asked = [(call.id, call.effect) for call in calls if isinstance(call.effect, CallTool)]
        return next((UserQuestion(id, str(call.arguments.get("question"))) for id, call in asked), None)
    name = _LIMITS.get(row.reason or "")
    if name is None:
        return None
    limit = getattr(run.budget, name)
    more = getattr(run.begun.budget, name) or limit
    used = _UNITS.get(name, f"{{:,}} {name if limit > 1 else name[:-1]}").format(limit)
    best = f"best so far: {display_line(row.answer, 200)}" if row.answer else "no answer so far"
    message = f"{used} used, {best}; continue with {_UNITS.get(name, '{:,}').format(more)} more?"
    raised = structs.replace(run.budget, **{name: limit + more})
    return UserQuestion(f"limit-{seq}", message, raised)


def _message(run: Run) -> str:
    """Return the title and the first line of a run's latest thought. If there is no thought, return the stage."""
    if not run.thoughts:
        return f"{run.strategy.name} at the stage {run.snapshot.stage}"
    thought = run.thoughts[-1]
    first, *_ = present.thought_lines(thought.text, thought.data, 160)
    return f"{thought_title(run.counts.thoughts, thought)}: {first}"


def _task(row: RunRow, status: str, message: str) -> Document:
    return {
        "taskId": row.run_id,
        "status": status,
        "statusMessage": message,
        "createdAt": instant(row.created_at_ms),
        "lastUpdatedAt": instant(row.updated_at_ms),
        "ttlMs": None,
        "pollIntervalMs": POLL_MS,
    }
