"""Names of tools: what belongs to somebody else, a server cannot have."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.blocks.actions import TurnRead, read_turn
from reasonry.blocks.toolcard import ANSWER
from reasonry.core.budget import Budget
from reasonry.errors import ToolError
from reasonry.strategies import STRATEGIES
from reasonry.strategies.analysis.state import BUILT_IN
from reasonry.strategies.rewoo import LLM
from reasonry.tools.catalog import Catalog, built_in, reserved_names
from reasonry.tools.knowledge import Library
from reasonry.tools.logic_kernel import ClaimChecker
from reasonry.tools.mcp_client import McpClient, RemoteTool, _qualify_clashing, mcp_tools
from reasonry.tools.mcp_transport import McpTarget
from reasonry.tools.sandbox import PyExecutor
from tests.forked import forking_python

from . import hostile_server

pytestmark = pytest.mark.anyio

SERVER = str(Path(hostile_server.__file__))


def command(*words: str) -> str:
    return " ".join([forking_python(), SERVER, *(f"'{word}'" for word in words)])


@asynccontextmanager
async def catalog_of(*kinds: str, taken: Sequence[str] = ()) -> AsyncIterator[Catalog]:
    async with mcp_tools([command(kind) for kind in kinds], taken=taken) as tools:
        yield Catalog(tools)


def test_the_reserved_names_are_those_of_every_tool_and_resource_of_ours() -> None:
    tools = {PyExecutor.name, ClaimChecker.name, Library.name}
    resources = {name for strategy in STRATEGIES.values() for name in strategy.resources}
    assert reserved_names() == tools | resources | {*BUILT_IN} | {LLM.name, ANSWER}
    assert {"py_executor", "check_claim", "search_documents", "knowledge", "logic_kernel"} <= reserved_names()


def test_the_word_for_the_answer_cannot_be_a_call() -> None:
    assert read_turn((), ["Action: Finish[42]"]) == (TurnRead(answer="42"), "lines")


async def test_a_built_in_name_is_written_with_its_server() -> None:
    names = ",".join(sorted(reserved_names()))
    async with catalog_of(f"named climate,{names}") as catalog:
        assert list(catalog.tools) == ["climate", *(f"python.{name}" for name in sorted(reserved_names()))]
        assert await catalog.call("python.py_executor", {}) == "owned, py_executor, 1"
        with pytest.raises(ToolError, match="there is no tool 'py_executor'"):
            await catalog.call("py_executor", {"code": "1"})


async def test_a_strategy_calls_its_own_tool_whatever_a_server_offers() -> None:
    async with App("memory") as app:
        participants = await app.equip(
            Participants(model="offline", mcp=(command("named py_executor,check_claim"),))
        )
        _, performers = app.order(
            RunRequest(
                problem="24 from 1 2 3 4",
                strategy="analysis",
                budget=Budget(),
                participants=participants,
            )
        )
        assert performers.tools is not None
        assert await performers.tools.call("py_executor", {"code": "6 * 7"}) != "owned, py_executor, 1"
        assert (await performers.tools.call("py_executor", {"code": "6 * 7"}))["value"] == 42
        assert await performers.tools.call("python.py_executor", {}) == "owned, py_executor, 1"


async def test_a_tool_of_the_callers_keeps_its_name() -> None:
    def climate() -> str:
        """Say the truth."""
        return "mine"

    async with App("memory") as app:
        participants = await app.equip(Participants(tools=[climate], mcp=(command("named climate"),)))
        catalog = Catalog(participants.tools)
        assert await catalog.call("climate", {}) == "mine"
        assert await catalog.call("python.climate", {}) == "owned, climate, 1"


async def test_a_list_that_changes_later_changes_nothing() -> None:
    async with mcp_tools([command("changes its list")]) as tools:
        catalog = Catalog([*tools, *built_in(["py_executor"])])
        cards = catalog.cards()
        assert await catalog.call("climate", {}) == "owned, climate, 1"
        await asyncio.sleep(0.05)
        assert await catalog.call("climate", {}) == "owned, climate, 2"
        assert catalog.cards() == cards
        assert (await catalog.call("py_executor", {"code": "6 * 7"}))["value"] == 42
        with pytest.raises(ToolError, match="there is no tool 'knowledge'"):
            await catalog.call("knowledge", {})


async def test_two_servers_of_one_name_keep_all_tools_apart() -> None:
    async with catalog_of("named climate,knowledge", "named climate,wind") as catalog:
        assert list(catalog.tools) == ["python1.climate", "python1.knowledge", "python2.climate", "wind"]


async def test_a_name_that_is_written_like_anothers_is_written_out_too(tmp_path: Path) -> None:
    config = tmp_path / "servers.json"
    both = {
        name: {"command": forking_python(), "args": [SERVER, f"named {tools}"]}
        for name, tools in (("good", "knowledge"), ("my desk", "good.knowledge,py_executor"))
    }
    config.write_text(json.dumps({"mcpServers": both}))
    async with mcp_tools([str(config)]) as tools:
        assert [(tool.name, tool.server.target.name) for tool in tools] == [
            ("good.knowledge", "good"),
            ("my_desk.good.knowledge", "my desk"),
            ("my_desk.py_executor", "my desk"),
        ]


names = st.sampled_from(["a", "A", "b", "a.b", "b.a", "a.a.b", "knowledge", "py_executor", "a.knowledge"])


@given(st.lists(st.lists(names, max_size=4, unique=True), max_size=3), st.lists(names, max_size=2))
def test_no_two_tools_share_a_name_and_none_has_one_that_is_taken(
    offers: list[list[str]], taken: list[str]
) -> None:
    servers = [McpClient(McpTarget(name=name, url="http://x")) for name in ("a", "b", "s")]
    tools = [
        RemoteTool(server, name, "", {})
        for server, offered in zip(servers, offers, strict=False)
        for name in offered
    ]
    written = [tool.name for tool in _qualify_clashing(tools, taken)]
    for name, tool in zip(written, tools, strict=True):
        assert name in (tool.remote, f"{tool.server.target.name}.{tool.remote}")
        assert name not in {*taken, *reserved_names()} or "." in name
    assert len(set(written)) == len(written)
