"""Tools of other MCP servers: real servers, good ones and bad ones."""

import asyncio
import gc
import json
from pathlib import Path

import pytest

from reasonry.errors import ToolError, UsageError
from reasonry.tools.catalog import Catalog
from reasonry.tools.mcp_client import McpClient, mcp_tools
from reasonry.tools.mcp_transport import McpTarget, read_targets
from tests.forked import forking_python

from ..surfaces.weather import over_http

pytestmark = pytest.mark.anyio

SERVER = """
import os, sys, time
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("desk")

@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

@server.tool()
def fail(reason: str) -> str:
    raise ToolError(reason)

@server.tool()
def flood(size: int) -> str:
    return "x" * size

@server.tool()
def die() -> str:
    print("out of memory", file=sys.stderr, flush=True)
    os._exit(3)

@server.tool()
async def hang() -> str:
    import asyncio
    await asyncio.sleep(600)
    return "late"

@server.tool()
def secret() -> str:
    return os.environ.get("DESK_SECRET", "none") + os.environ.get("UNRELATED", "none")

if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[-1]))
else:
    server.run()
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("desk") / "desk.py"
    path.write_text(SERVER)
    return path


def target(script: Path, **more: object) -> McpTarget:
    return McpTarget(name="desk", command=forking_python(), args=(str(script),), **more)  # type: ignore[arg-type]


async def test_a_servers_tools_are_tools_of_the_catalog(script: Path) -> None:
    async with mcp_tools([f"{forking_python()} {script}"]) as tools:
        catalog = Catalog(tools)
        card = catalog.cards()[0]
        assert (card.name, card.description) == ("add", "Add two numbers.")
        assert card.parameters["required"] == ["a", "b"]
        assert await catalog.call("add", {"a": 2, "b": 3}) == 5
        together = await asyncio.gather(*(catalog.call("add", {"a": n, "b": 1}) for n in range(5)))
        assert together == [1, 2, 3, 4, 5]
        with pytest.raises(ToolError, match="no such luck"):
            await catalog.call("fail", {"reason": "no such luck"})
        with pytest.raises(ToolError):
            await catalog.call("add", {"a": "two"})


async def test_a_server_is_reached_over_http(script: Path) -> None:
    with over_http(script) as (url, process):
        async with mcp_tools([url]) as tools:
            catalog = Catalog(tools)
            assert await catalog.call("add", {"a": 2, "b": 3}) == 5
            assert len(await catalog.call("flood", {"size": 3_000_000})) < 66_000
            with pytest.raises(ToolError):
                await catalog.call("flood", {"size": 40_000_000})
            process.kill()
            process.wait()
            with pytest.raises(ToolError):
                await catalog.call("add", {"a": 2, "b": 3})


async def test_a_server_gets_its_own_environment_and_not_ours(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNRELATED", "leaked")
    server = McpClient(target(script, env={"DESK_SECRET": "s"}))
    await server.open()
    assert await server.call("secret", {}) == "snone"
    await server.close()


async def test_a_hanging_tool_and_a_dying_server_are_tool_errors(script: Path) -> None:
    server = McpClient(target(script))
    await server.open()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await server.call("hang", {})
    assert await server.call("add", {"a": 1, "b": 1}) == 2
    with pytest.raises(ToolError, match="the MCP server desk failed in die"):
        await server.call("die", {})
    with pytest.raises(ToolError):
        await server.call("add", {"a": 1, "b": 1})
    await server.close()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import sys; sys.exit('no licence')", "no licence"),
        ("print('hello'); import time; time.sleep(60)", "did not answer within 1 s"),
    ],
)
async def test_what_is_no_server_is_a_tool_error_that_says_why(code: str, reason: str) -> None:
    server = McpClient(McpTarget(name="bad", command=forking_python(), args=("-c", code)))
    with pytest.raises(ToolError) as error:
        await server.open(timeout_s=1)
    assert reason in error.value.message


@pytest.mark.parametrize(
    ("spec", "name"), [("/nowhere/nowhere --x", "nowhere"), ("http://127.0.0.1:9/mcp", "127.0.0.1:9")]
)
async def test_where_no_server_is_there_is_a_tool_error(spec: str, name: str) -> None:
    with pytest.raises(ToolError, match=f"the MCP server {name} could not be used"):
        async with mcp_tools([spec]):
            pass


async def test_nothing_is_said_of_a_server_that_has_ended(
    script: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with mcp_tools([f"{forking_python()} {script}"]):
        pass
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_what_mcp_takes() -> None:
    assert read_targets("https://example.org/mcp") == (
        McpTarget(name="example.org", url="https://example.org/mcp"),
    )
    assert read_targets("https://me:secret@example.org/mcp")[0].name == "example.org"
    assert read_targets("npx -y 'my server' --x") == (
        McpTarget(name="npx", command="npx", args=("-y", "my server", "--x")),
    )


def test_a_configuration_file_names_each_server_with_all_it_says_of_it(tmp_path: Path) -> None:
    entry = {"name": "z", "command": "x", "args": ["--port", "80"], "env": {"A": "1"}, "cwd": None}
    config = tmp_path / "c.json"
    config.write_text(json.dumps({"mcpServers": {"a": entry, "b": {"url": "http://x", "type": "http"}}}))
    assert read_targets(str(config)) == (
        McpTarget(name="a", command="x", args=("--port", "80"), env={"A": "1"}),
        McpTarget(name="b", url="http://x"),
    )


@pytest.mark.parametrize(
    ("spec", "text", "reason"),
    [
        ("", None, "takes a command, a URL or a configuration file"),
        ("run 'unclosed", None, "the mcp command cannot be read"),
        ("{}/missing.json", None, "cannot be read"),
        ("{}/c.json", "{", "cannot be read"),
        ("{}/c.json", "[]", "cannot be read"),
        ("{}/c.json", "{}", "has no `mcpServers`"),
        ("{}/c.json", '{"mcpServers": {"a": {"args": []}}}', "server 'a' has neither `command` nor `url`"),
        ("{}/c.json", '{"mcpServers": {"a": 5}}', "server 'a' is not described rightly"),
        ("{}/c.json", '{"mcpServers": {"a": {"command": ["x"]}}}', "got `array` - at `$.command`"),
        ("{}/c.json", '{"mcpServers": {"a": {"command": "x", "args": "-y"}}}', "got `str` - at `$.args`"),
        ("{}/c.json", '{"mcpServers": {"a": {"command": "x", "env": ["A=1"]}}}', "got `array` - at `$.env`"),
        (
            "{}/c.json",
            '{"mcpServers": {"a": {"command": "x", "args": [8]}}}',
            "'a' is not described rightly: Expected",
        ),
        (
            "{}/c.json",
            '{"mcpServers": {"a": {"command": "x", "env": {"A": null}}}}',
            "got `null` - at `$.env[...]`",
        ),
        (
            "{}/c.json",
            '{"mcpServers": {"a": {"url": "http://x", "headers": {"n": 2}}}}',
            "got `int` - at `$.h",
        ),
        ("{}/c.json", '{"mcpServers": {"a": {"command": "x", "cwd": 5}}}', "got `int` - at `$.cwd`"),
        ("{}/c.json", '{"mcpServers": {"a": {"url": "http://x", "headers": [1]}}}', "at `$.headers`"),
    ],
)
def test_a_spec_that_cannot_be_read_is_named(
    spec: str, text: str | None, reason: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "c.json").write_text(text)
    with pytest.raises(UsageError) as error:
        read_targets(spec.format(tmp_path))
    assert reason in error.value.message
