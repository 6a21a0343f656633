"""The thinking tool in Python programs, and in the forms that agent loops take."""

import inspect
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import create_model

import reasonry
from reasonry.errors import StoreError, UsageError
from reasonry.guided.thinking_tool import ThinkingReply, tool_schema
from reasonry.stores.sqlite import MemoryStore
from reasonry.strategies import STRATEGIES
from reasonry.surfaces import sequential_thinking
from reasonry.surfaces.python import adapters
from reasonry.surfaces.python.tool import ThinkingTool, sessions_of

pytestmark = pytest.mark.anyio

CALL: dict[str, Any] = {
    "thought": "It follows.",
    "thoughtNumber": 1,
    "totalThoughts": 1,
    "nextThoughtNeeded": False,
}


@pytest.fixture
def tool() -> ThinkingTool:
    return reasonry.thinking_tool(store=MemoryStore())


# -- the tool


def test_the_tool_says_what_it_is(tool: ThinkingTool) -> None:
    assert tool.name == "sequentialthinking"
    assert len(tool.description) > 100
    schema = tool.input_schema
    assert schema["required"] == ["thought", "nextThoughtNeeded", "thoughtNumber", "totalThoughts"]
    reference = {"isRevision", "revisesThought", "branchFromThought", "branchId", "needsMoreThoughts"}
    ours = {"sessionId", "clearSession", "strategy", "stage", "data", "mergeBranch", "history", "evidence"}
    assert set(schema["properties"]) == reference | ours | set(schema["required"])
    assert all(name in json.dumps(schema) for name in STRATEGIES)


async def test_the_reply_is_what_its_schema_says(tool: ThinkingTool) -> None:
    from jsonschema import validate

    schema = sequential_thinking.in_camel_case(tool_schema(ThinkingReply))
    reply = await tool(**CALL)
    validate(reply, schema)
    assert set(schema["required"]) < set(reply) <= set(schema["properties"])
    more = await tool(**CALL | {"sessionId": reply["sessionId"], "branchFromThought": 1, "revisesThought": 1})
    validate(more, schema)


async def test_an_optional_argument_that_is_none_counts_as_left_out(tool: ThinkingTool) -> None:
    assert (await tool(**CALL, sessionId=None, branchId=None))["branches"] == []
    with pytest.raises(UsageError, match="thought is missing"):
        await tool(**CALL | {"thought": None})


async def test_a_store_named_by_text_is_opened_once_and_shared(tmp_path: Path) -> None:
    place = str(tmp_path / "kept.db")
    sid = (await reasonry.thinking_tool(store=place)(**CALL))["sessionId"]
    store = sessions_of(place).store
    assert sessions_of(place).store is store
    session = await reasonry.get_session(sid, store=place)
    assert session is not None
    assert session["thoughts"][0]["thought"] == "It follows."
    await store.close()


async def test_the_environment_names_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONRY_STORE", str(tmp_path / "named.db"))
    sid = (await reasonry.thinking_tool()(**CALL))["sessionId"]
    assert (tmp_path / "named.db").exists()
    assert [one["session_id"] for one in await reasonry.list_sessions()] == [sid]
    await sessions_of(None).store.close()


async def test_listing_goes_through_all_pages() -> None:
    store = MemoryStore()
    tool = reasonry.thinking_tool(store=store)
    for _ in range(501):
        await tool(**CALL)
    assert len(await reasonry.list_sessions(store=store)) == 501
    assert await reasonry.clear_all_sessions(store=store) == 501


@pytest.mark.parametrize("session_id", ["", "x" * 201, 3, "\ud800"])
def test_an_id_that_cannot_be_is_refused_when_the_tool_is_made(session_id: Any) -> None:
    with pytest.raises(UsageError, match="session_id"):
        reasonry.thinking_tool(session_id, store=MemoryStore())


async def test_a_store_that_cannot_be_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises((StoreError, UsageError)):
        await reasonry.thinking_tool(store=str(tmp_path))(**CALL)
    with pytest.raises(UsageError):
        reasonry.thinking_tool(store="redis://host")


async def test_a_strict_schema_of_the_tool_has_a_type_for_each_argument_and_no_open_object() -> None:
    tool: Any = reasonry.thinking_tool(store=MemoryStore())
    fields: dict[str, Any] = {
        name: (each.annotation, ... if each.default is each.empty else each.default)
        for name, each in inspect.signature(tool).parameters.items()
    }
    model = create_model("Arguments", **fields)
    kinds = {
        form["type"]
        for part in model.model_json_schema()["properties"].values()
        for form in part.get("anyOf", [part])
    }
    assert kinds == {"string", "integer", "boolean", "array", "null"}
    asked = {**CALL, "strategy": "react", "stage": ["initial_reasoning", "action_planning"]}
    for data in ('{"action": "look"}', {"action": "look"}):
        written = model(**asked, data=data).model_dump()  # pyright: ignore[reportArgumentType]
        assert (await tool(**written))["stage"] == "action_planning"


# -- OpenAI


def openai_call(arguments: Any) -> Any:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return SimpleNamespace(id="call_1", function=SimpleNamespace(name="sequentialthinking", arguments=text))


async def test_openai_gets_a_function_and_an_answer(tool: ThinkingTool) -> None:
    entry = adapters.openai_tool(tool)
    assert entry["function"]["parameters"] == tool.input_schema
    message = await adapters.answer_openai(tool, openai_call(CALL))
    assert (message["role"], message["tool_call_id"]) == ("tool", "call_1")
    assert json.loads(message["content"])["thoughtHistoryLength"] == 1


@pytest.mark.parametrize(
    "arguments", ["{", "[]", "", "[" * 100_000, {"thought": "x"}, {**CALL, "stage": "zzz"}]
)
async def test_what_is_refused_is_answered_with_the_error(tool: ThinkingTool, arguments: Any) -> None:
    message = await adapters.answer_openai(tool, openai_call(arguments))
    assert json.loads(message["content"])["error"]["code"] == "invalid_request"


# -- Anthropic


async def test_anthropic_gets_a_tool_and_a_result_block(tool: ThinkingTool) -> None:
    assert adapters.anthropic_tool(tool)["input_schema"] == tool.input_schema
    block = SimpleNamespace(id="toolu_1", name="sequentialthinking", input=CALL)
    result = await adapters.answer_anthropic(tool, block)
    assert (result["type"], result["tool_use_id"], result["is_error"]) == ("tool_result", "toolu_1", False)
    refused = await adapters.answer_anthropic(tool, SimpleNamespace(id="toolu_2", input={}))
    assert refused["is_error"] is True


# -- LangChain


async def test_langchain_gets_a_structured_tool(tool: ThinkingTool) -> None:
    tools = pytest.importorskip("langchain_core.tools")
    made = tools.tool(adapters.return_errors(tool))
    assert made.name == "sequentialthinking"
    reply = await made.ainvoke(CALL)
    assert reply["thoughtHistoryLength"] == 1
    more = await made.ainvoke({**CALL, "sessionId": reply["sessionId"], "revisesThought": 5})
    assert more["error"]["field"] == "revisesThought"
