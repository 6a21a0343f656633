"""Runs as tasks of the protocol (extension `io.modelcontextprotocol/tasks`).

Rule 1: a task is a job of the store, and its id is the run's. Status, message and result are derived from the run's
        record; nothing else is stored.
Rule 2: an ended task stays ended, unless a separate call resumes its run. A task never asks its user.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from ...app.app import App
from ...app.participants import Participants
from ...app.requests import RunRequest
from ...core.budget import Budget
from ...engine.run import Run
from ...errors import ConflictError, NotFoundError, OverloadedError
from ...guided.session_documents import instant
from ...records import JobOptions, RunRow
from ...supervisor import Supervisor
from .. import present
from ..run_report import thought_title
from .frames import MISSING_CAPABILITY, RefusedError, read_params
from .tools import CallContext, Document, TaskDocument, tool_result

TASKS: Final = "io.modelcontextprotocol/tasks"
"""The extension, available in the stateless version only."""
TASK_METHODS: Final = ("tasks/get", "tasks/update", "tasks/cancel")
LISTEN: Final = "subscriptions/listen"
POLL_MS, LOOK_S = 1_000, 0.5
"""The poll interval of clients, and the interval at which followed tasks are read."""


class TaskParams(Struct, frozen=True, rename="camel"):
    """The parameters of a request about a task."""

    task_id: str


class ListenParams(Struct, frozen=True):
    """The parameters of `subscriptions/listen`. Other kinds of notifications are ignored."""

    notifications: dict[str, Any]


def without_search(document: Document) -> Document:
    """Return a run's document without its search tree, for the text of a result."""
    kept = {
        name: part for name, part in document.items() if name not in ("candidates", "tree", "diagnostics")
    }
    result = kept.get("result")
    return kept | {"result": without_search(result)} if isinstance(result, dict) else kept


class RunTasks:
    """The tasks of a principal.

    Args:
        supervisor: The supervisor of a process that drives the store's jobs. Without it, this object drives requested
            tasks.
    """

    def __init__(self, app: App, supervisor: Supervisor | None = None) -> None:
        self._app, self._drives = app, supervisor is None
        self.supervisor = supervisor or Supervisor(app)

    async def answer(self, method: str, params: Document, context: CallContext) -> Document:
        """Return the result of a method in `TASK_METHODS`. Raises like `McpServer.answer`."""
        _check_takes_tasks(context)
        run_id = read_params(TaskParams, params).task_id
        if method == "tasks/get":
            return await self.read(run_id)
        if (await self._row(run_id)).status == "active" and method == "tasks/cancel":
            with suppress(ConflictError):
                await self.supervisor.cancel(self._app, run_id)
        return {}

    # -- begun

    async def start(self, request: RunRequest) -> TaskDocument:
        """Accept a run as a task, and return the task once durable."""
        order, performers = await self._app.receive(request)
        run_id, _ = await self.supervisor.start(self._app, order, performers, job=JobOptions())
        return TaskDocument(await self.read(run_id))

    async def resume(self, run_id: str, participants: Participants, budget: Budget | None) -> TaskDocument:
        """Resume a run as a task; see `Supervisor.resume`."""
        await self.supervisor.resume(self._app, run_id, participants, budget, job=JobOptions())
        return TaskDocument(await self.read(run_id))

    async def _attend(self, run_id: str) -> None:
        """Drive an idle task if no server or worker drives the jobs."""
        if self._drives and not self.supervisor.is_driven(run_id):
            with suppress(ConflictError, OverloadedError):
                await self.supervisor.take_up(run_id)

    # -- looked at

    async def listen(
        self, id: Any, params: Document, context: CallContext
    ) -> AsyncGenerator[tuple[str, Document]]:
        """Yield messages about tasks until all have ended. `id` is the id of the client's request."""
        _check_takes_tasks(context)
        wanted = read_params(ListenParams, params).notifications.get("taskIds") or []
        shown, left = dict[str, Document](), list[str]()
        for run_id in map(str, wanted):
            with suppress(NotFoundError):
                left.append((await self._row(run_id)).run_id)
        about = about_subscription(id)
        yield "notifications/subscriptions/acknowledged", {"notifications": {"taskIds": [*left]}, **about}
        while left and not self.supervisor.draining:
            for run_id in list(left):
                task = await self.read(run_id)
                if task != shown.get(run_id):
                    yield "notifications/tasks", {**task, **about}
                shown[run_id] = task
                if task["status"] in ("completed", "cancelled"):
                    left.remove(run_id)
            await asyncio.sleep(LOOK_S if left else 0)

    async def read(self, run_id: str) -> Document:
        """Return the current state of a task.

        Raises:
            NotFoundError: The task does not exist.
        """
        row = await self._row(run_id)
        if row.status == "active":
            message = _message((await self._app.engine.read(run_id, whole=False)).run)
            if not row.paused:
                await self._attend(run_id)
            return _task(row, "working", message)
        document = (await self._app.engine.result(run_id)).document(nodes=False)
        message = present.end_text(document)
        if row.status == "cancelled":
            return _task(row, "cancelled", message)
        result = {"resultType": "complete", **tool_result(document, shown=without_search(document))}
        return {**_task(row, "completed", message), "result": result}

    async def _row(self, run_id: str) -> RunRow:
        row = await self._app.store.run(run_id)
        if not row.unattended:
            raise NotFoundError(f"run {run_id} is no task; `coach` shows and resumes it", run_id=run_id)
        return row


def _message(run: Run) -> str:
    """Return the last line of a run's output in a terminal."""
    if not run.thoughts:
        return f"{run.strategy.name} at the stage {run.snapshot.stage}"
    thought = run.thoughts[-1]
    first, *_ = present.thought_lines(thought.text, thought.data, 160)
    return f"{thought_title(run.counts.thoughts, thought)}: {first}"


def about_subscription(id: Any) -> Document:
    """Return the metadata of messages for a subscription."""
    return {"_meta": {"io.modelcontextprotocol/subscriptionId": id}}


def _check_takes_tasks(context: CallContext) -> None:
    """Raise a RefusedError unless a client declares support for tasks."""
    if not context.takes_tasks:
        data = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise RefusedError(MISSING_CAPABILITY, f"Missing required client capability: {TASKS}", data)


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
