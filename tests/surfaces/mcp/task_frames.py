"""Clients that take tasks, over both transports, and the form of what they are told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from jsonschema import Draft202012Validator

from reasonry.app.app import App
from reasonry.surfaces.mcp.connection import Connection
from reasonry.surfaces.mcp.mcp_catalog import app_server
from reasonry.surfaces.mcp.run_tasks import RunTasks

from .raw import ENVELOPE

CAPABILITIES: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {}}
PUZZLE = {"problem": "Use 4, 9, 10 and 13 to make 24", "strategy": "tree_of_thoughts"}

_TEXT, _TIME = {"type": "string"}, {"type": "string", "format": "date-time"}
_TASK = {
    "type": "object",
    "required": ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"],
    "properties": {
        "taskId": _TEXT,
        "statusMessage": _TEXT,
        "createdAt": _TIME,
        "lastUpdatedAt": _TIME,
        "ttlMs": {"type": ["integer", "null"]},
        "pollIntervalMs": {"type": "integer"},
    },
}
_QUESTION = {
    "type": "object",
    "required": ["method", "params"],
    "properties": {
        "method": {"const": "elicitation/create"},
        "params": {
            "type": "object",
            "required": ["message", "requestedSchema"],
            "properties": {
                "mode": {"const": "form"},
                "message": _TEXT,
                "requestedSchema": {
                    "type": "object",
                    "required": ["type", "properties"],
                    "properties": {"type": {"const": "object"}, "properties": {"type": "object"}},
                },
            },
        },
    },
}
_CALL = {
    "type": "object",
    "required": ["content", "structuredContent", "isError", "resultType"],
    "properties": {"resultType": {"const": "complete"}},
}


def _status(status: str, **members: Any) -> dict[str, Any]:
    own = {"status": {"const": status}, **members}
    barred = [{"required": [name]} for name in {"result", "error", "inputRequests"} - members.keys()]
    return {"required": ["status", *members], "properties": own, "not": {"anyOf": barred}}


DETAILED = Draft202012Validator(
    {
        **_TASK,
        "oneOf": [
            _status("working"),
            _status("input_required", inputRequests={"additionalProperties": _QUESTION, "minProperties": 1}),
            _status("completed", result=_CALL),
            _status("failed", error={"type": "object", "required": ["code", "message"]}),
            _status("cancelled"),
        ],
    }
)
"""A task as `tasks/get` and `notifications/tasks` tell it."""
BEGUN = Draft202012Validator(
    {
        **_TASK,
        "required": [*_TASK["required"], "resultType"],
        "properties": {**_TASK["properties"], "resultType": {"const": "task"}},
    }
)
DONE = Draft202012Validator(
    {
        "type": "object",
        "properties": {"resultType": {"const": "complete"}, "_meta": {"type": "object"}},
        "required": ["resultType"],
        "additionalProperties": False,
    }
)


class TaskClient:
    """A client of one server."""

    capabilities: Mapping[str, Any] = CAPABILITIES

    async def send(self, method: str, params: dict[str, Any]) -> list[dict[str, Any]]:
        """Send a request; return what is heard until it is answered."""
        raise NotImplementedError

    def beside(self) -> TaskClient:
        """Return another client of the same tasks."""
        raise NotImplementedError

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request of the stateless version; return the answer, which is an error or a result."""
        meta = {**ENVELOPE, "io.modelcontextprotocol/clientCapabilities": self.capabilities}
        return (await self.send(method, {**params, "_meta": meta}))[-1]

    async def solve(self, **arguments: Any) -> str:
        """Begin a task; return its id."""
        answer = await self.ask("tools/call", name="solve", arguments=arguments or PUZZLE)
        BEGUN.validate(answer["result"])
        return answer["result"]["taskId"]

    async def get(self, task: str) -> dict[str, Any]:
        """Return a task as it stands."""
        result = (await self.ask("tasks/get", taskId=task))["result"]
        DETAILED.validate(result)
        assert result["resultType"] == "complete"
        return result

    async def settled(self, task: str) -> dict[str, Any]:
        """Return a task once it has ended or waits for its user."""
        async with asyncio.timeout(60):
            while (found := await self.get(task))["status"] == "working":
                await asyncio.sleep(0.02)
        return found

    async def reply(self, task: dict[str, Any], action: str, **content: Any) -> None:
        """Say something to all that a task asks."""
        reply = {"action": action, **({"content": content} if content else {})}
        await self.tell(task, dict.fromkeys(task["inputRequests"], reply))

    async def tell(self, task: dict[str, Any], responses: dict[str, Any]) -> None:
        """Send answers to a task."""
        answer = await self.ask("tasks/update", taskId=task["taskId"], inputResponses=responses)
        DONE.validate(answer["result"])

    async def cancel(self, task: str) -> None:
        """End a task."""
        DONE.validate((await self.ask("tasks/cancel", taskId=task))["result"])


class LocalClient(TaskClient):
    """Of a connection as standard input and output have it, in this process."""

    def __init__(self, app: App) -> None:
        self.app, agents = app, app.for_agents()
        self.tasks = RunTasks(agents)
        self._heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        server = app_server(self.tasks, app.sessions())
        self.connection = Connection(server, lambda line: self._heard.put_nowait(json.loads(line)))
        self._count = 0
        self.others = [self]

    def beside(self) -> TaskClient:
        """See `TaskClient`; it has a server of its own, over the same store."""
        other = LocalClient(self.app)
        self.others.append(other)
        return other

    async def send(self, method: str, params: dict[str, Any]) -> list[dict[str, Any]]:
        """See `TaskClient`."""
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        self.connection.receive(json.dumps(message).encode())
        heard = [await self._heard.get()]
        while heard[-1].get("id") != self._count:
            heard.append(await self._heard.get())
        return heard


def posted(method: str, params: dict[str, Any] | None = None, id: Any = 1, **headers: str) -> dict[str, Any]:
    """Return the arguments of a POST of a request of 2026-07-28."""
    params = {"_meta": {**ENVELOPE}, **(params or {})}
    name = params.get("name") or params.get("taskId")
    given = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        **({"mcp-name": name} if name else {}),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return {"url": "/mcp", "json": body, "headers": given}


def messages_in(text: str) -> list[dict[str, Any]]:
    """Return the messages of a response that is JSON or a stream of events."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines or [text]]


class WebClient(TaskClient):
    """Of a server over HTTP."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client, self._count = client, 0

    def beside(self) -> TaskClient:
        """See `TaskClient`."""
        return WebClient(self._client)

    async def send(self, method: str, params: dict[str, Any]) -> list[dict[str, Any]]:
        """See `TaskClient`."""
        self._count += 1
        return messages_in((await self._client.post(**posted(method, params, self._count))).text)


@asynccontextmanager
async def local_client(store: str = "memory", **environ: str) -> AsyncGenerator[LocalClient]:
    """Serve a client in this process; at the end, its runs are let go."""
    async with App(store, environ={"REASONRY_MODEL": "offline", **environ}) as app:
        client = LocalClient(app)
        yield client
        for each in client.others:
            await each.tasks.supervisor.drain(1)


@asynccontextmanager
async def web_client(url: str, token: str = "") -> AsyncGenerator[WebClient]:
    """Be a client of a server over HTTP."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(base_url=url, timeout=60, headers=headers) as client:
        yield WebClient(client)
