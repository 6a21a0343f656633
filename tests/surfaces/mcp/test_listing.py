"""What the server says of itself: its tools, resources and prompts."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import reasonry
from reasonry.app.app import App
from reasonry.errors import UsageError
from reasonry.strategies import STRATEGIES

from .raw import Raw, thought


@pytest.fixture(scope="module")
def raw() -> Iterator[Raw]:
    with Raw(DISABLE_THOUGHT_LOGGING="true") as server:
        yield server


def _descriptions(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["description"]] if isinstance(value.get("description"), str) else []
        return own + [one for part in value.values() for one in _descriptions(part)]
    return [one for part in value for one in _descriptions(part)] if isinstance(value, list) else []


def _tokens(text: str) -> int:
    """Return no fewer tokens than any current tokenizer makes of English: long words count double."""
    return sum(1 + len(piece) // 8 for piece in re.findall(r"\w+|[^\w\s]", text))


def test_all_descriptions_together_stay_under_1000_tokens(raw: Raw) -> None:
    assert sum(_tokens(text) for text in _descriptions([*raw.tools().values()])) < 1_000


def _paid(tools: dict[str, dict[str, Any]]) -> float:
    """Return the tokens of what an agent is shown of tools."""
    members = ("name", "description", "inputSchema")
    shown = [{name: tool[name] for name in members} for tool in tools.values()]
    return len(json.dumps(shown, separators=(",", ":"), ensure_ascii=False)) / 4


def test_an_agent_pays_at_most_1800_tokens_for_the_list_with_the_tool_that_needs_a_model() -> None:
    with Raw(REASONRY_MODEL="offline") as raw:
        tools = raw.tools()
    assert {*tools} == {"sequentialthinking", "sessions", "coach", "solve", "show"}
    assert _paid(tools) <= 1_800


def test_the_thinking_tool_says_how_to_think_and_describes_every_parameter(raw: Raw) -> None:
    thinking = raw.tools()["sequentialthinking"]
    parts = ("When to use it:", "Key features:", "Parameters explained:", "You should:\n1. ", "\n7. Only set")
    assert [part for part in parts if part not in thinking["description"]] == []
    assert all(one.get("description") for one in thinking["inputSchema"]["properties"].values())
    assert thinking["description"] == reasonry.thinking_tool(store="memory").description


@pytest.mark.parametrize("models", ["", "anthropic:claude-sonnet-4-6, openai:gpt-5.4-mini"])
def test_the_short_description_is_asked_for_and_the_list_then_stays_under_1200_tokens(models: str) -> None:
    environ = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "REASONRY_MODELS": models}
    with Raw(REASONRY_DESCRIPTION="short", **environ if models else {}) as brief:
        tools = brief.tools()
    assert ("solve" in tools) == bool(models)
    assert _paid(tools) <= 1_200
    assert len(tools["sequentialthinking"]["description"]) / 4 < 150
    with Raw(**environ if models else {}) as raw:
        full = raw.tools()
    assert _paid(full) <= 1_800
    assert [_form(tool) for tool in tools.values()] == [_form(tool) for tool in full.values()]


def _form(tool: dict[str, Any]) -> list[Any]:
    """Return what a tool takes and returns, but for the words and bounds."""
    schema, kept = tool["inputSchema"], ("type", "enum", "items", "anyOf")
    members = {name: [member.get(part) for part in kept] for name, member in schema["properties"].items()}
    return [tool["name"], schema["required"], members, tool["outputSchema"]]


def test_a_bound_that_the_short_description_leaves_out_is_named_by_the_error() -> None:
    with Raw(REASONRY_DESCRIPTION="short") as brief:
        refused = brief.call("sequentialthinking", **thought(thoughtNumber=0))
    assert "thought number must be at least 1, not 0" in refused["error"]["message"]


def test_no_other_description_can_be_asked_for() -> None:
    with pytest.raises(UsageError, match=r"REASONRY_DESCRIPTION must be one of: full, short; not 'brief'"):
        App("memory", environ={"REASONRY_DESCRIPTION": "brief"}).for_agents()


def test_the_annotations_tell_the_truth(raw: Raw) -> None:
    tools = {name: tool["annotations"] for name, tool in raw.tools().items()}
    assert tools["sequentialthinking"]["readOnlyHint"] is False
    assert tools["sequentialthinking"]["idempotentHint"] is False
    assert tools["sessions"]["destructiveHint"] is True
    assert not any(one["openWorldHint"] for one in tools.values())


def test_replies_and_errors_both_fit_the_output_schema(raw: Raw) -> None:
    from jsonschema import Draft202012Validator

    schemas = [raw.tools()[name]["outputSchema"] for name in ("sequentialthinking", "sessions")]
    think, manage = map(Draft202012Validator, schemas)
    session = raw.think(1, branchId="b")["sessionId"]
    think.validate(raw.think(2, strategy="linear", nextThoughtNeeded=False))
    think.validate(raw.call("sequentialthinking", thought=5))
    for action in ("list", "get", "export", "resume", "pin", "no such"):
        manage.validate(raw.call("sessions", action=action, sessionId=session))
    manage.validate(raw.call("sessions", action="search", query="thought"))


def test_there_is_a_resource_and_a_prompt_for_every_strategy(raw: Raw) -> None:
    resources = {one["uri"] for one in raw.ask("resources/list")["result"]["resources"]}
    prompts = {one["name"] for one in raw.ask("prompts/list")["result"]["prompts"]}
    assert {f"reasonry://strategies/{name}" for name in STRATEGIES} <= resources
    assert prompts == set(STRATEGIES)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_prompt_teaches_every_stage_and_field_of_its_strategy(raw: Raw, name: str) -> None:
    params = {"name": name, "arguments": {"problem": "Why is the sky blue?"}}
    message = raw.ask("prompts/get", params)["result"]["messages"][0]
    text = message["content"]["text"]
    assert "Why is the sky blue?" in text
    assert f'strategy: "{name}"' in text
    for stage in STRATEGIES[name].stages:
        assert f"**{stage.name}**" in text
        assert all(f"`data.{one.name}`" in text for one in stage.fields)


def test_a_session_can_be_read_as_a_resource(raw: Raw) -> None:
    session = raw.call("sequentialthinking", **thought(sessionId="resource"))["sessionId"]
    found = raw.ask("resources/read", {"uri": f"reasonry://sessions/{session}"})["result"]["contents"][0]
    assert found["mimeType"] == "application/json"
    assert '"thought 1"' in found["text"]
