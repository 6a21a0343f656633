"""Calls in flight: progress, cancellation, and a current session that has gone."""

import asyncio
import gc
import json
import time
from typing import Any

import pytest

from reasonry.app.app import App
from reasonry.stores import open_store
from reasonry.surfaces.mcp.connection import Connection
from reasonry.surfaces.mcp.mcp_catalog import app_server
from reasonry.surfaces.mcp.run_tasks import RunTasks
from reasonry.surfaces.mcp.tools import CallContext, McpTool

from .raw import ENVELOPE, Raw, document, thought

SCHEMA = {"type": "object", "properties": {}}


async def _work(arguments: dict[str, Any], context: CallContext) -> dict[str, Any]:
    if context.report is not None:
        await context.report(1, 2, "half")
    if arguments.get("crash"):
        raise ValueError("a secret detail")
    if arguments.get("odd"):
        return {"number": object()}
    await asyncio.sleep(arguments.get("seconds", 0))
    return {"done": True}


async def _converse(*frames: dict[str, Any], seconds: float = 0.05) -> list[dict[str, Any]]:
    heard: list[dict[str, Any]] = []
    store = open_store("memory")
    tool = McpTool("work", "Work", "Works.", SCHEMA, SCHEMA, _work)
    app = App(store, environ={})
    server = app_server(RunTasks(app.for_agents()), app.sessions())
    server.tools["work"] = tool
    connection = Connection(server, lambda line: heard.append(json.loads(line)))
    for frame in frames:
        connection.receive(json.dumps({"jsonrpc": "2.0", **frame}).encode())
        await asyncio.sleep(0.01)
    await asyncio.sleep(seconds)
    await connection.finish()
    await store.close()
    return heard


def _work_frame(id: int, meta: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    params = {"name": "work", "arguments": arguments, "_meta": {**ENVELOPE, **(meta or {})}}
    return {"id": id, "method": "tools/call", "params": params}


@pytest.mark.anyio
@pytest.mark.filterwarnings("error")
async def test_a_call_that_is_cancelled_before_it_begins_leaves_nothing_behind() -> None:
    app = App("memory", environ={})
    server = app_server(RunTasks(app.for_agents()), app.sessions())
    heard = list[bytes]()
    connection = Connection(server, heard.append)
    connection.receive(json.dumps({"jsonrpc": "2.0", **_work_frame(1)}).encode())
    for task in connection._working:
        task.cancel()
    await asyncio.gather(*connection._working, return_exceptions=True)
    gc.collect()
    assert heard == []


@pytest.mark.anyio
async def test_progress_is_told_to_who_asked_for_it() -> None:
    told, answer = await _converse(_work_frame(1, {"progressToken": "t"}))
    assert told["method"] == "notifications/progress"
    assert told["params"] == {"progressToken": "t", "progress": 1, "total": 2, "message": "half"}
    assert document(answer) == {"done": True}


@pytest.mark.anyio
async def test_a_cancelled_call_is_never_answered() -> None:
    heard = await _converse(
        _work_frame(1, seconds=0.1),
        _work_frame(2, seconds=0.02),
        {"method": "notifications/cancelled", "params": {"requestId": 1}},
        seconds=0.2,
    )
    assert [answer["id"] for answer in heard] == [2]


@pytest.mark.anyio
async def test_what_nobody_foresaw_is_an_error_that_tells_no_details(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = await _converse(_work_frame(1, crash=True), _work_frame(2, odd=True))
    crash, odd = answers
    assert document(crash)["error"]["code"] == "internal_error"
    assert "secret" not in json.dumps(crash)
    assert odd["error"]["code"] == -32603
    assert "a secret detail" in caplog.text


def test_calls_after_the_session_has_expired_go_on_together_in_one_new_session() -> None:
    with Raw(REASONRY_SESSION_TTL_S="1") as raw:
        old = raw.think()["sessionId"]
        time.sleep(1.3)
        for number in range(1, 9):
            raw.send("tools/call", {"name": "sequentialthinking", "arguments": thought(number)})
        replies = [document(raw.hear()) for _ in range(8)]
    assert len({one["sessionId"] for one in replies}) == 1
    assert replies[0]["sessionId"] != old
    assert [len(one.get("notices", ())) for one in replies] == [1] + [0] * 7
