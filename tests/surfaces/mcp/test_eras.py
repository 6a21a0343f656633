"""The official client in every protocol version, and our server beside the SDK's, request by request."""

import json
import os
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from reasonry.app.app import App
from reasonry.records import Store
from reasonry.stores import open_store
from reasonry.strategies import STRATEGIES
from reasonry.surfaces.mcp.connection import Connection
from reasonry.surfaces.mcp.mcp_catalog import app_server
from reasonry.surfaces.mcp.mcp_server import McpServer
from reasonry.surfaces.mcp.run_tasks import RunTasks
from reasonry.surfaces.mcp.tools import CallContext
from tests.forked import forking_python
from tests.guided.walking import filled

from .raw import COMMAND, ENVELOPE, lines_of, offer, thought, told

MODES = ["legacy", "auto", "2026-07-28"]


def _client(mode: str, store: str) -> Any:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    command = StdioServerParameters(
        command=forking_python(), args=COMMAND[1:], env={**os.environ, "REASONRY_STORE": store}
    )
    return Client(stdio_client(command, errlog=sys.__stderr__), mode=mode)


async def think_look_and_read(client: Any, *, is_connected: bool = True) -> str:
    """Think, look back and read by the official client; return the session. Over a connection its calls share one."""
    first = await told(client, "sequentialthinking", thought())
    other = await told(client, "sequentialthinking", thought())
    assert (first["sessionId"] == other["sessionId"]) is is_connected
    second = await told(client, "sequentialthinking", thought(2, sessionId=first["sessionId"]))
    assert second["thoughtHistoryLength"] == 2
    third = await told(client, "sequentialthinking", thought(3))
    if is_connected:
        assert (third["sessionId"], third.get("notices")) == (first["sessionId"], None)
    else:
        (notice,) = third["notices"]
        assert first["sessionId"] in notice["message"], "it is told where it may belong"
        assert "directory" not in notice["message"], "a server's is none of its clients'"
    wrong = await client.call_tool("sequentialthinking", {**thought(), "thoughtNumber": 0})
    assert wrong.is_error
    assert wrong.structured_content["error"]["code"] == "invalid_request"
    uri = f"reasonry://sessions/{first['sessionId']}"
    assert uri in [str(one.uri) for one in (await client.list_resources()).resources]
    kept = json.loads((await client.read_resource(uri)).contents[0].text)
    assert [one["thought_number"] for one in kept["thoughts"]] == ([1, 2, 3] if is_connected else [1, 2])
    lesson = await client.get_prompt("react", {"problem": "why?"})
    assert "why?" in lesson.messages[0].content.text
    return first["sessionId"]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_thinks_looks_and_reads(mode: str, tmp_path: Path) -> None:
    async with _client(mode, str(tmp_path / "store.db")) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert tools == {"coach", "sequentialthinking", "sessions", "show"}
        await think_look_and_read(client)
        prompts = (await client.list_prompts()).prompts
        assert {one.name for one in prompts} == set(STRATEGIES)


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_random_legal_walk_of_each_strategy_reaches_the_end(mode: str) -> None:
    async with _client(mode, "memory") as client:
        for name in STRATEGIES:
            await _walk(client, name)


async def _walk(client: Any, name: str) -> None:
    # That a stage which is not legal is refused, `contract/test_transitions` shows of every pair of stages.
    strategy, chance = STRATEGIES[name], random.Random(name)
    last = next(stage.name for stage in strategy.stages if not stage.to)
    stage, begin = strategy.first, {"strategy": name}
    for number in range(1, 400):
        fields = filled(strategy.by_name[stage])
        if "planning" in fields:
            fields["planning"] = [{"description": "Conclusion", "status": "Done"}]
        more = {"stage": stage, "data": fields, "nextThoughtNeeded": stage != last, **begin}
        reply = await told(client, "sequentialthinking", thought(number, number, **more))
        assert reply.get("stage") == stage, reply
        nexts = [one["name"] for one in reply["nextStages"]]
        assert nexts == list(strategy.by_name[stage].to)
        if stage == last:
            break
        stage, begin = chance.choice(nexts), {"sessionId": reply["sessionId"]}
    assert reply["summary"]


# --- beside the SDK

PLAIN: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    (
        "tools/call",
        {"name": "sequentialthinking", "arguments": thought(sessionId="s", thought="h\u00e9 \u2603")},
    ),
    ("tools/call", {"name": "sequentialthinking", "arguments": {"thought": 5}}),
    ("tools/call", {"name": "sessions", "arguments": {"action": "get", "sessionId": "nobody"}}),
    ("tools/call", {"name": "sessions", "arguments": {"action": "no such"}}),
    ("tools/call", {"name": "sessions"}),
    ("tools/call", {"name": "sessions", "arguments": None}),
    ("tools/call", {"name": "sessions", "arguments": []}),
    ("tools/call", {"name": "no such", "arguments": {}}),
    ("tools/call", {"arguments": {}}),
    ("tools/call", {"name": 5}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "reasonry://strategies/tree_of_thoughts"}),
    ("resources/read", {"uri": "reasonry://sessions/nobody"}),
    ("resources/read", {"uri": "reasonry://no/such"}),
    ("resources/read", {}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "react"}),
    ("prompts/get", {"name": "react", "arguments": {"problem": "why?"}}),
    ("prompts/get", {"name": "react", "arguments": {"problem": 5}}),
    ("prompts/get", {"name": "no such"}),
    ("server/discover", {}),
    ("ping", {}),
    ("no/such", {}),
    ("logging/setLevel", {"level": "info"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "react"}, "argument": {"name": "problem", "value": ""}},
    ),
    ("resources/subscribe", {"uri": "reasonry://no/such"}),
    ("subscriptions/listen", {"notifications": {}}),
]
INITIALIZE = ("initialize", offer())


def _modern(frames: list[tuple[str, dict[str, Any]]], **changed: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(method, {**params, "_meta": {**ENVELOPE, **changed}}) for method, params in frames]


_KEY = "io.modelcontextprotocol/"
CONVERSATIONS = {
    "handshake": [INITIALIZE, *PLAIN],
    "the first handshake version": [("initialize", offer("2024-11-05")), *PLAIN],
    "an unknown handshake version": [("initialize", offer("2019-01-01")), *PLAIN[:2]],
    "stateless": _modern(PLAIN),
    "stateless, opened by an odd request": _modern(list(reversed(PLAIN))),
    "no handshake": PLAIN[:4],
    "a handshake too late": [*_modern(PLAIN[:1]), INITIALIZE, *_modern(PLAIN[:1])],
    "eras mixed": [INITIALIZE, *_modern(PLAIN[:2]), *PLAIN[:2]],
    "eras mixed the other way": [*_modern(PLAIN[:2]), *PLAIN[:2]],
    "an unknown stateless version": _modern(PLAIN[:2], **{f"{_KEY}protocolVersion": "2031-01-01"}),
    "no capabilities": _modern(PLAIN[:2], **{f"{_KEY}clientCapabilities": None}),
    "a bad handshake": [("initialize", {"protocolVersion": 5}), *PLAIN[:2]],
    "a late ping": [("ping", {}), INITIALIZE, ("ping", {})],
    "bad clients": [
        ("initialize", {**INITIALIZE[1], **odd})
        for odd in (
            {"clientInfo": {"name": "x"}},
            {"clientInfo": None},
            {"capabilities": []},
            {"protocolVersion": 5},
        )
    ],
    "two handshakes": [INITIALIZE, INITIALIZE, *PLAIN[:2]],
    "cursors and progress": [
        INITIALIZE,
        ("tools/list", {"cursor": "x"}),
        ("tools/list", {"cursor": 5}),
        ("tools/list", {"_meta": {"progressToken": 1.5}}),
        ("tools/list", {"_meta": 5}),
        ("tools/list", {"_meta": None}),
        ("tools/list", {"unknown": 5}),
        ("tools/call", {**PLAIN[1][1], "_meta": {"progressToken": "t"}}),
    ],
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_results_are_those_of_the_sdk_and_so_are_the_codes_of_errors(name: str) -> None:
    lines = lines_of(*CONVERSATIONS[name])
    ours, sdk = await _converse_with_ours(lines), await _converse_with_the_sdk(lines)
    for id, (method, params) in enumerate(CONVERSATIONS[name]):
        assert ours[id].get("result") == sdk[id].get("result"), (method, params)
        assert _code(ours[id]) == _code(sdk[id]), (method, params)
        if "error" in ours[id]:
            assert ours[id]["error"]["message"]


def _code(answer: dict[str, Any]) -> Any:
    """Return the code of an error, and what programs go by besides."""
    error = answer.get("error", {})
    return error.get("code"), error.get("data") or None


def server_over(store: Store) -> McpServer:
    app = App(store, environ={})
    return app_server(RunTasks(app.for_agents()), app.sessions())


def sdk_over(store: Store) -> Any:
    from reasonry.surfaces.mcp.http_server import sdk_server

    server = server_over(store)
    return sdk_server(lambda _: server, lambda _: CallContext(), has_tasks=False)


async def _converse_with_ours(lines: list[bytes]) -> dict[int, Any]:
    store, heard = open_store("memory"), dict[int, Any]()
    server = server_over(store)
    connection = Connection(server, lambda line: _keep(heard, line))
    for line in lines:
        connection.receive(line)
        await connection.finish()
    await store.close()
    return heard


async def _converse_with_the_sdk(lines: list[bytes]) -> dict[int, Any]:
    import anyio
    import mcp_types
    from mcp.shared._context_streams import create_context_streams
    from mcp.shared.message import SessionMessage

    store, heard = open_store("memory"), dict[int, Any]()
    server = sdk_over(store)
    to_server, read_stream = create_context_streams[Any](0)
    write_stream, from_server = create_context_streams[Any](0)
    async with anyio.create_task_group() as group:
        group.start_soon(server.run, read_stream, write_stream, server.create_initialization_options())
        async with to_server, from_server:
            for line in lines:
                message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                await to_server.send(SessionMessage(message))
                sent = (await from_server.receive()).message
                _keep(heard, sent.model_dump_json(by_alias=True, exclude_unset=True).encode())
    await store.close()
    return heard


def _keep(heard: dict[int, Any], line: bytes) -> None:
    answer = json.loads(line)
    if "id" in answer:
        heard[answer["id"]] = _timeless(answer)


def _timeless(value: Any) -> Any:
    """Leave out what differs from call to call: ids and instants that were made."""
    text = json.dumps(value, sort_keys=True)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "ID", text)
    return json.loads(re.sub(r"20\d\d-\d\d-\d\dT[\d:.]+Z", "INSTANT", text))


@pytest.mark.anyio
async def test_over_a_transport_with_many_clients_nothing_binds() -> None:
    from mcp import Client

    store = open_store("memory")
    server = sdk_over(store)
    async with Client(server) as client:
        ids = [(await told(client, "sequentialthinking", thought()))["sessionId"] for _ in range(2)]
    await store.close()
    assert ids[0] != ids[1]
