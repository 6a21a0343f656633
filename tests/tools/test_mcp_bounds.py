"""What a hostile tool server can say: each kind is a clear error, soon, and costs little."""

import contextlib
import gzip
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from reasonry.errors import ToolError
from reasonry.text import escape_unseen
from reasonry.tools.mcp_client import McpClient, read_tool
from reasonry.tools.mcp_transport import McpTarget
from tests.forked import forking_python
from tests.in_process import call_command

from . import hostile_server
from .hostile_server import LINES, LISTS, RESULTS

pytestmark = pytest.mark.anyio

SCRIPT = str(Path(hostile_server.__file__))

LIST_FAULTS = {
    "no tools": "its answer is not of the protocol's form",
    "tools are null": "its answer is not of the protocol's form",
    "empty name": "a tool is 1 to 128 characters that are seen, without a blank at an end, not ''",
    "name is long": "a tool is 1 to 128 characters that are seen, without a blank at an end, not 'xxx",
    "name with escape": r"characters that are seen, without a blank at an end, not 'cli\x1b[2Jmate'",
    "name with bidi": r"characters that are seen, without a blank at an end, not '\u202eetamilc'",
    "name with zero width": r"characters that are seen, without a blank at an end, not 'py\u200b_executor'",
    "name with line end": "characters that are seen",
    "two of one name": "it lists two tools named climate",
    "description of 3 MB": "described in over 1,048,576 bytes in all",
    "schema of 2 MB": "described in over 1,048,576 bytes in all",
    "schema is deep": "nested too deeply",
    "required is a number": "its answer is not of the protocol's form",
    "a property is text": "its answer is not of the protocol's form",
    "500 tools of 4 kB": "described in over 1,048,576 bytes in all",
    "result is a list": "its answer cannot be read",
    "result is text": "its answer cannot be read",
    "same cursor": "its list of tools has over 100 pages",
    "endless empty pages": "its list of tools has over 100 pages",
    "endless pages": "it lists two tools named tool0",
    "pages of 100": "described in over 1,048,576 bytes in all",
    "100,000 deep": "its answer cannot be read",
    "not UTF-8": "its answer cannot be read",
    "half a character": "its answer cannot be read",
    "cut off": "its answer cannot be read",
    "5,000 digits": "its answer cannot be read",
    "20 MB": "it sent a message of over 16777216 bytes",
    "1,000,000 tools": "its answer is not of the protocol's form",
}

CALL_FAULTS = {
    "content is an object": "its answer is not of the protocol's form",
    "content is text": "its answer is not of the protocol's form",
    "content has a number": "its answer is not of the protocol's form",
    "text is a list": "its answer is not of the protocol's form",
    "structure is deep": "nested too deeply",
    "structure is a list": "its answer is not of the protocol's form",
    "result of a list": "its answer cannot be read",
    "result is null": "its answer cannot be read",
    "nothing": "its answer is not of the protocol's form",
}


@pytest.fixture(autouse=True, scope="module")
def sdk() -> None:
    """Have the SDK imported before anything is timed."""
    import mcp.client.streamable_http  # noqa: F401


def server(kind: str) -> McpClient:
    return McpClient(McpTarget(name="hostile", command=forking_python(), args=(SCRIPT, kind)))


def test_every_kind_is_tried() -> None:
    assert {*LISTS, *LINES} <= LIST_FAULTS.keys()
    assert RESULTS.keys() == CALL_FAULTS.keys()


@pytest.mark.parametrize("kind", LIST_FAULTS)
async def test_a_list_of_tools_that_breaks_a_bound_is_a_clear_error_at_once(kind: str) -> None:
    began, used = time.monotonic(), time.process_time()
    with pytest.raises(ToolError) as error:
        await server(kind).open()
    assert LIST_FAULTS[kind] in error.value.message
    assert error.value.message.startswith("the MCP server hostile could not be used: ")
    assert error.value.message.isprintable()
    assert (error.value.code, error.value.details) == ("tool_error", {"server": "hostile"})
    # Beside other tests it may wait for a processor.
    assert time.monotonic() - began < 60
    assert time.process_time() - used < 4


@pytest.mark.parametrize("kind", CALL_FAULTS)
async def test_a_result_that_breaks_a_bound_costs_its_call_alone(kind: str) -> None:
    one = server(kind)
    await one.open()
    try:
        for _ in range(2):
            with pytest.raises(ToolError) as error:
                await one.call("climate", {})
            assert CALL_FAULTS[kind] in error.value.message
            assert error.value.code == "tool_error"
    finally:
        await one.close()


@pytest.mark.parametrize(
    "kind", ["drip", *(f"flood of {what}" for what in ("notices", "noise", "requests", "answers"))]
)
async def test_a_server_that_never_comes_to_the_point_is_left_in_time(kind: str) -> None:
    began = time.monotonic()
    with pytest.raises(ToolError) as error:
        await server(kind).open(timeout_s=0.6)
    assert "did not answer within 0.6 s" in error.value.message
    assert error.value.code == "tool_timeout"
    assert time.monotonic() - began < 10


async def test_what_a_server_says_of_its_results_is_not_acted_upon() -> None:
    one = server("slow pattern")
    await one.open()
    try:
        assert await one.call("climate", {}) == {"word": "a" * 40 + "!"}
    finally:
        await one.close()


# -- over HTTP


def packed() -> web.Response:
    return web.Response(
        body=gzip.compress(b" " * 20_000_000, 1),
        headers={"Content-Encoding": "gzip", "Content-Type": "application/json"},
    )


async def streamed(request: web.Request) -> web.StreamResponse:
    stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await stream.prepare(request)
    with contextlib.suppress(ConnectionError):
        while True:
            await stream.write(NOTICE * 1_000)
    return stream


NOTICE = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n\n'
HTTP_FAULTS = {
    "packed": "packed its reply in a way that was not asked for",
    "20 MB": "sent over 16777216 bytes",
    "HTML": "Unexpected content type: text/html",
    "flood of notices": "did not answer within 0.6 s",
}


async def list_over_http(kind: str, request: web.Request) -> web.StreamResponse:
    match kind:
        case "packed":
            return packed()
        case "20 MB":
            return web.Response(body=LINES[kind].replace(b"ID", b"3", 1), content_type="application/json")
        case "HTML":
            return web.Response(body=b"<html>", content_type="text/html")
        case _:
            return await streamed(request)


@asynccontextmanager
async def hostile_http(kind: str) -> AsyncIterator[str]:
    async def answer(request: web.Request) -> web.StreamResponse:
        message = await request.json() if request.method == "POST" else {}
        id, method = message.get("id"), message.get("method")
        if method == "initialize":
            about = {"name": "hostile", "version": "1"}
            version = message["params"]["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
            return web.json_response({"jsonrpc": "2.0", "id": id, "result": result})
        if method == "tools/list":
            return await list_over_http(kind, request)
        return web.Response(status=202 if id is None and message else 404)

    app = web.Application()
    app.router.add_route("*", "/mcp", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("kind", HTTP_FAULTS)
async def test_over_http_the_bounds_are_the_same(kind: str) -> None:
    began = time.monotonic()
    async with hostile_http(kind) as url:
        hostile = McpClient(McpTarget(name="hostile", url=url))
        with pytest.raises(ToolError) as error:
            await hostile.open(timeout_s=0.6 if "flood" in kind else 30)
    assert HTTP_FAULTS[kind] in error.value.message
    # Beside other tests it may wait for a processor.
    assert time.monotonic() - began < 60


def test_the_shell_shows_one_clear_error_and_no_traceback(tmp_path: Path) -> None:
    server = f"{forking_python()} {SCRIPT} 'result is text'"
    words = ["solve", "x", "--strategy", "react", "--store", "memory", "--model", "offline", "--mcp", server]
    done = call_command(words, env=dict(os.environ), cwd=tmp_path)
    said = "reasonry: the MCP server python could not be used: its answer cannot be read"
    assert (done.returncode, done.stderr.splitlines()) == (9, [said])


# -- whatever is said


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = ("description", "title", "properties", "required", "type")
schemas = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=8), json_values, max_size=6)


@given(st.text(max_size=6), st.none() | st.text(), schemas)
def test_whatever_is_listed_is_taken_whole_and_legible_or_refused(
    name: str, description: str | None, schema: dict[str, Any]
) -> None:
    try:
        tool = read_tool(name, description, schema)
    except ToolError:
        return
    assert tool[0] == name == escape_unseen(name)
    assert 0 < len(name) <= 128
    assert escape_unseen(tool[1]) == tool[1]
    assert tool[2].keys() == schema.keys()
    json.dumps(tool, allow_nan=False).encode()
