"""MCP over HTTP: the official client in every protocol version, and requests as others might send them."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest

from ..mcp.raw import ENVELOPE, thought
from ..mcp.task_frames import web_client
from .serving import TOKENS, Serving

MODES = ["legacy", "2026-07-28"]
JSON_OR_EVENTS = "application/json, text/event-stream"


@contextlib.asynccontextmanager
async def connected(serving: Serving, mode: str, token: str | None = None) -> AsyncGenerator[Any]:
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=20) as http,
        Client(streamable_http_client(f"{serving.url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def modern(method: str, params: dict[str, Any] | None = None, id: Any = 1, **headers: str) -> dict[str, Any]:
    """Return the arguments of a POST of a request of 2026-07-28."""
    params = {**(params or {}), "_meta": dict(ENVELOPE)}
    named = {"mcp-name": params["name"]} if "name" in params else {}
    given = {
        "accept": JSON_OR_EVENTS,
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        **named,
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return {"url": "/mcp", "json": body, "headers": given}


def think(**changed: Any) -> dict[str, Any]:
    return {"name": "sequentialthinking", "arguments": thought(**changed)}


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_thinks_looks_and_reads(serving: Serving, mode: str) -> None:
    async with connected(serving, mode) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            "coach",
            "sequentialthinking",
            "sessions",
            "show",
            "solve",
        }
        first = (await client.call_tool("sequentialthinking", thought())).structured_content
        other = (await client.call_tool("sequentialthinking", thought())).structured_content
        is_connected = mode == "legacy"
        assert (first["sessionId"] == other["sessionId"]) is is_connected
        second = await client.call_tool("sequentialthinking", {**thought(2), "sessionId": first["sessionId"]})
        assert second.structured_content["thoughtHistoryLength"] == 2
        third = (await client.call_tool("sequentialthinking", thought(3))).structured_content
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
        shown = (await client.call_tool("show", {"id": first["sessionId"]})).structured_content
        assert shown["url"] == f"{serving.url}/#/sessions/{first['sessionId']}"
        assert "path" not in shown


@pytest.mark.anyio
async def test_two_connections_of_a_handshake_version_have_a_session_each(serving: Serving) -> None:
    async with connected(serving, "legacy") as ana, connected(serving, "legacy") as ben:
        sessions = [set[str](), set[str]()]
        for number in (1, 2, 3):
            for own, client in zip(sessions, (ana, ben), strict=True):
                reply = (await client.call_tool("sequentialthinking", thought(number))).structured_content
                assert "notices" not in reply
                own.add(reply["sessionId"])
        assert (len(sessions[0]), len(sessions[1]), len(sessions[0] | sessions[1])) == (1, 1, 2)
        begun = (
            await ana.call_tool("coach", {"action": "start", "problem": "What is 6 * 7?"})
        ).structured_content
        status = (await ana.call_tool("coach", {"action": "status"})).structured_content
        assert status["run_id"] == begun["run_id"]


@pytest.mark.anyio
async def test_what_is_of_another_principal_is_what_there_is_not(guarded: Serving) -> None:
    async with (
        connected(guarded, "legacy", TOKENS["ana"]) as ana,
        connected(guarded, "2026-07-28", TOKENS["ben"]) as ben,
    ):
        begun = await ana.call_tool("coach", {"action": "start", "problem": "What is 6 * 7?"})
        mine = (await ana.call_tool("sequentialthinking", thought())).structured_content["sessionId"]
        run_id, nowhere = begun.structured_content["run_id"], "01a20241-7da4-7000-95ab-50b3ed796bf6"

        async def refusals(session_id: str, run_id: str) -> list[Any]:
            calls = [
                *(
                    ("sessions", {"action": action, "session_id": session_id})
                    for action in ("get", "export", "delete", "pin", "resume")
                ),
                *(
                    ("coach", {"action": action, "run_id": run_id})
                    for action in ("status", "cancel", "read", "resume")
                ),
                ("coach", {"action": "fork", "run_id": run_id, "at": 1}),
                ("coach", {"action": "answer", "run_id": run_id, "answers": {}}),
                ("coach", {"action": "start", "session_id": session_id, "problem": "x"}),
                ("show", {"id": session_id}),
                ("show", {"id": run_id}),
            ]
            answers = [(await ben.call_tool(*call)) for call in calls]
            assert all(answer.is_error for answer in answers)
            text = json.dumps([answer.structured_content for answer in answers])
            return json.loads(text.replace(session_id, "ID").replace(run_id, "ID"))

        assert await refusals(mine, run_id) == await refusals(nowhere, nowhere)
        assert (await ben.call_tool("sessions", {"action": "list"})).structured_content["sessions"] == []
        assert (await ben.call_tool("coach", {"action": "list"})).structured_content["runs"] == []
        taken = (
            await ben.call_tool("sequentialthinking", {**thought(2), "sessionId": mine})
        ).structured_content
        assert taken["sessionId"] != mine
        assert taken["thoughtHistoryLength"] == 1
        lost = (await ben.call_tool("sequentialthinking", thought(2))).structured_content
        assert mine not in str(lost["notices"])
        assert mine not in [r.name for r in (await ben.list_resources()).resources]
        own = (await ana.call_tool("sessions", {"action": "get", "session_id": mine})).structured_content
        assert len(own["thoughts"]) == 1


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1.evil.example"}, 403),
        ({"host": "evil.example"}, 421),
        ({"mcp_name": "solve"}, 400),
        ({"mcp_method": "tools/list"}, 400),
        ({"mcp_protocol_version": "1999-01-01"}, 400),
        ({"mcp_protocol_version": "2031-01-01"}, 400),
        ({"content_type": "text/plain"}, 400),
        ({"accept": "text/html"}, 406),
    ],
)
def test_a_request_that_is_not_as_it_should_be_changes_nothing(
    serving: Serving, change: dict[str, str], status: int
) -> None:
    client = serving.client()
    before = client.post(**modern("resources/list")).json()["result"]["resources"]
    answer = client.post(**modern("tools/call", think(), **change))
    assert answer.status_code == status, answer.text
    if status == 400 and change.keys() & {"mcp_name", "mcp_method"}:
        assert answer.json()["error"]["code"] == -32020
    assert client.post(**modern("resources/list")).json()["result"]["resources"] == before


def test_space_around_a_headers_value_is_no_part_of_it(serving: Serving) -> None:
    request = modern(
        "tools/call", think(), mcp_name=" sequentialthinking \t", content_type="application/json"
    )
    connection = http.client.HTTPConnection(serving.url.removeprefix("http://"))
    connection.request("POST", "/mcp", json.dumps(request["json"]), request["headers"])
    answer = json.loads(connection.getresponse().read())
    connection.close()
    assert answer["result"]["isError"] is False


BODIES = [
    b"{",
    b"[]",
    b"[" * 100_000 + b"]" * 100_000,
    b'{"jsonrpc": "2.0", "id": 1, "method": "no/such", "params": {}}',
    b'{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}',
    b'"\xff"',
    b"x" * (5 << 20),
]


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25", None])
def test_bytes_of_any_kind_are_refused_and_the_next_request_is_answered(
    serving: Serving, version: str | None
) -> None:
    client = serving.client()
    headers = {"accept": JSON_OR_EVENTS, "content-type": "application/json", "mcp-method": "no/such"}
    if version is not None:
        headers["mcp-protocol-version"] = version
    for body in BODIES:
        answer = client.post("/mcp", content=body, headers=headers)
        refused = 400 <= answer.status_code < 500 or answer.status_code == 202
        assert refused or "error" in events(answer.text)[-1], (body[:60], answer.text[:200])
    assert client.get("/mcp", headers=headers).status_code in (404, 405), "there is no stream to listen to"
    assert client.post(**modern("tools/list")).status_code == 200


def events(text: str) -> list[dict[str, Any]]:
    """Return the messages of a response that is JSON or a stream of events."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines or [text]]


@pytest.mark.anyio
@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
async def test_fifty_clients_with_the_same_ids_get_their_own_replies(serving: Serving, version: str) -> None:
    async def converse(client: httpx2.AsyncClient, number: int) -> list[Any]:
        heard = list[Any]()
        for id in (1, 2):
            marker = f"of-{number}-{id}"
            request = modern("tools/call", think(branchId=marker), id, mcp_protocol_version=version)
            (answer,) = events((await client.post(**request)).text)
            heard.append((answer["id"], answer["result"]["structuredContent"]["branches"]))
        return heard

    limits = httpx2.Limits(max_connections=50)
    async with httpx2.AsyncClient(base_url=serving.url, timeout=20, limits=limits) as client:
        heard = await asyncio.gather(*(converse(client, number) for number in range(50)))
    assert heard == [[(id, [f"of-{number}-{id}"]) for id in (1, 2)] for number in range(50)]


@pytest.mark.anyio
async def test_a_task_of_another_principal_is_none(guarded: Serving) -> None:
    async with (
        web_client(guarded.url, TOKENS["ana"]) as ana,
        web_client(guarded.url, TOKENS["ben"]) as ben,
    ):
        task = await ana.solve()
        assert (await ana.settled(task))["status"] == "completed"
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            mine = await ben.ask(method, taskId=task, inputResponses={})
            nobodys = await ben.ask(method, taskId="nobody", inputResponses={})
            assert mine["error"]["code"] == nobodys["error"]["code"] == -32602
            assert mine["error"]["message"].replace(task, "nobody") == nobodys["error"]["message"]
        heard = await ben.told("subscriptions/listen", notifications={"taskIds": [task]})
        assert heard[0]["params"]["notifications"] == {"taskIds": []}
        resumed = await ben.ask("tools/call", name="solve", arguments={"run_id": task})
        assert resumed["result"]["structuredContent"]["error"]["code"] == "not_found"


HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}


def test_a_handshake_is_given_the_id_that_its_later_calls_bring(guarded: Serving) -> None:
    ana, ben = (guarded.client(TOKENS[name]) for name in ("ana", "ben"))
    accept = {"accept": JSON_OR_EVENTS}
    ids = [ana.post("/mcp", json=HELLO, headers=accept).headers["mcp-session-id"] for _ in range(2)]
    assert len(set(ids)) == 2
    assert "mcp-session-id" not in ana.request("POST", **modern("tools/list")).headers

    def session_of(client: Any, number: int, connection: str) -> str:
        headers = {**accept, "mcp-session-id": connection, "mcp-protocol-version": "2025-06-18"}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": think(number=number)}
        answer = client.post("/mcp", json=call, headers=headers)
        assert "mcp-session-id" not in answer.headers
        (line,) = [line for line in answer.text.splitlines() if line.startswith("data: ")]
        return json.loads(line.removeprefix("data: "))["result"]["structuredContent"]["sessionId"]

    mine = session_of(ana, 1, ids[0])
    assert session_of(ana, 2, ids[0]) == mine
    assert session_of(ana, 2, ids[1]) != mine, "it is the connection's, not the client's"
    assert session_of(ben, 2, ids[0]) != mine, "the id of another principal's connection opens nothing"
