"""MCP over HTTP: the official client in every protocol version, and requests as others might send them."""

import asyncio
import contextlib
import http.client
import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest

from ..mcp.raw import offer, thought, told
from ..mcp.task_frames import messages_in, posted, web_client
from ..mcp.test_eras import think_look_and_read
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


def think(**changed: Any) -> dict[str, Any]:
    return {"name": "sequentialthinking", "arguments": thought(**changed)}


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_thinks_looks_and_reads(serving: Serving, mode: str) -> None:
    async with connected(serving, mode) as client:
        names = sorted(tool.name for tool in (await client.list_tools()).tools)
        assert names == ["coach", "sequentialthinking", "sessions", "show", "solve"]
        session = await think_look_and_read(client, is_connected=mode == "legacy")
        shown = await told(client, "show", {"id": session})
        assert shown["url"] == f"{serving.url}/#/sessions/{session}"
        assert "path" not in shown


@pytest.mark.anyio
async def test_two_connections_of_a_handshake_version_have_a_session_each(serving: Serving) -> None:
    async with connected(serving, "legacy") as ana, connected(serving, "legacy") as ben:
        sessions = [set[str](), set[str]()]
        for number in (1, 2, 3):
            for own, client in zip(sessions, (ana, ben), strict=True):
                reply = await told(client, "sequentialthinking", thought(number))
                assert "notices" not in reply
                own.add(reply["sessionId"])
        assert (len(sessions[0]), len(sessions[1]), len(sessions[0] | sessions[1])) == (1, 1, 2)
        begun = await told(ana, "coach", {"action": "start", "problem": "What is 6 * 7?"})
        status = await told(ana, "coach", {"action": "status"})
        assert status["run_id"] == begun["run_id"]


@pytest.mark.anyio
async def test_what_is_of_another_principal_is_what_there_is_not(guarded: Serving) -> None:
    async with (
        connected(guarded, "legacy", TOKENS["ana"]) as ana,
        connected(guarded, "2026-07-28", TOKENS["ben"]) as ben,
    ):
        begun = await told(ana, "coach", {"action": "start", "problem": "What is 6 * 7?"})
        mine = (await told(ana, "sequentialthinking", thought()))["sessionId"]
        run_id, nowhere = begun["run_id"], "01a20241-7da4-7000-95ab-50b3ed796bf6"

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
        assert (await told(ben, "sessions", {"action": "list"}))["sessions"] == []
        assert (await told(ben, "coach", {"action": "list"}))["runs"] == []
        taken = await told(ben, "sequentialthinking", {**thought(2), "sessionId": mine})
        assert taken["sessionId"] != mine
        assert taken["thoughtHistoryLength"] == 1
        lost = await told(ben, "sequentialthinking", thought(2))
        assert mine not in str(lost["notices"])
        assert mine not in [r.name for r in (await ben.list_resources()).resources]
        own = await told(ana, "sessions", {"action": "get", "session_id": mine})
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
    before = client.post(**posted("resources/list")).json()["result"]["resources"]
    answer = client.post(**posted("tools/call", think(), **change))
    assert answer.status_code == status, answer.text
    if status == 400 and change.keys() & {"mcp_name", "mcp_method"}:
        assert answer.json()["error"]["code"] == -32020
    assert client.post(**posted("resources/list")).json()["result"]["resources"] == before


def test_space_around_a_headers_value_is_no_part_of_it(serving: Serving) -> None:
    request = posted(
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
        assert refused or "error" in messages_in(answer.text)[-1], (body[:60], answer.text[:200])
    assert client.get("/mcp", headers=headers).status_code in (404, 405), "there is no stream to listen to"
    assert client.post(**posted("tools/list")).status_code == 200


@pytest.mark.anyio
@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
async def test_fifty_clients_with_the_same_ids_get_their_own_replies(serving: Serving, version: str) -> None:
    async def converse(client: httpx2.AsyncClient, number: int) -> list[Any]:
        heard = list[Any]()
        for id in (1, 2):
            marker = f"of-{number}-{id}"
            request = posted("tools/call", think(branchId=marker), id, mcp_protocol_version=version)
            (answer,) = messages_in((await client.post(**request)).text)
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
        resumed = await ben.ask("tools/call", name="solve", arguments={"run_id": task})
        assert resumed["result"]["structuredContent"]["error"]["code"] == "not_found"


def test_a_handshake_is_given_the_id_that_its_later_calls_bring(guarded: Serving) -> None:
    ana, ben = (guarded.client(TOKENS[name]) for name in ("ana", "ben"))
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": offer()}
    accept = {"accept": JSON_OR_EVENTS}
    ids = [ana.post("/mcp", json=hello, headers=accept).headers["mcp-session-id"] for _ in range(2)]
    assert len(set(ids)) == 2
    assert "mcp-session-id" not in ana.request("POST", **posted("tools/list")).headers

    def session_of(client: Any, number: int, connection: str) -> str:
        versions = {"mcp_session_id": connection, "mcp_protocol_version": "2025-06-18"}
        answer = client.post(**posted("tools/call", think(number=number), **versions))
        assert "mcp-session-id" not in answer.headers
        (heard,) = messages_in(answer.text)
        return heard["result"]["structuredContent"]["sessionId"]

    mine = session_of(ana, 1, ids[0])
    assert session_of(ana, 2, ids[0]) == mine
    assert session_of(ana, 2, ids[1]) != mine, "it is the connection's, not the client's"
    assert session_of(ben, 2, ids[0]) != mine, "the id of another principal's connection opens nothing"
