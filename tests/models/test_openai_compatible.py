"""The own transport: what it takes from servers, what it gives back, and what it never does."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.blocks.actions import Action, read_turn, resolve_action
from reasonry.blocks.toolcard import ToolCard, tools_data
from reasonry.core.effects import Ask
from reasonry.core.events import Answered
from reasonry.core.readings import Unreadable
from reasonry.errors import ModelError, UsageError
from reasonry.models.openai_compatible import OpenAICompatibleModel, checked_url
from reasonry.models.openai_wire import (
    Dialect,
    Gathered,
    refusal_of_request,
    request_body,
    retry_after,
    with_calls,
)
from reasonry.models.providers import _to_answer
from tests.servers import ChatRequest, Fault, ModelServer

from .asking import FORM, KEY, model_over, question

pytestmark = pytest.mark.anyio


async def test_connections_are_kept_until_a_side_closes_them() -> None:
    with ModelServer() as server:
        model = OpenAICompatibleModel(server.url, "a")
        for _ in range(3):
            await model.answer(question())
            await model.answer(question(), lambda text: None)
        assert server.connections == 1
        server.drop_connections()
        await asyncio.sleep(0.05)
        assert (await model.answer(question())).text
        await model.close()
        await model.close()
        while server.connections:
            await asyncio.sleep(0.005)
        assert (await model.answer(question())).text
        await model.close()


async def test_a_packed_reply_is_unpacked() -> None:
    with ModelServer(faults=[Fault(kind="gzip")], replies=["packed"]) as server:
        async with model_over(server) as model:
            assert (await model.answer(question())).text == "packed"


async def test_no_server_at_all_is_worth_another_try() -> None:
    model = OpenAICompatibleModel("http://127.0.0.1:9/v1", "a", api_key=KEY)
    with pytest.raises(ModelError, match="no connection to") as caught:
        await model.answer(question())
    assert caught.value.retryable
    await model.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "ftp://host/v1",
        "http://",
        "http://host:99999/v1",
        "http://user:pw@host/v1",
        "http://host/v1?key=abc",
        "http://host/v1\r\nX: y",
        "http://hôst/v1",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked_url(url)
    assert "pw" not in caught.value.message
    assert "abc" not in caught.value.message


def test_a_key_with_line_ends_is_refused_without_showing_it() -> None:
    with pytest.raises(UsageError) as caught:
        OpenAICompatibleModel("http://127.0.0.1/v1", "a", api_key=f"{KEY}\r\nX-Evil: 1")
    assert KEY not in caught.value.message


def test_a_dialect_steps_down_once_for_each_format_however_many_complain_at_once() -> None:
    dialect = Dialect()
    bodies = [request_body("m", Ask("p", form=FORM), "s", dialect, stream=False) for _ in range(3)]
    assert all(dialect.degrade(body, "response_format json_schema is unknown") for body in bodies)
    assert dialect.format == "json_object"
    again = request_body("m", Ask("p", form=FORM), "s", dialect, stream=False)
    assert dialect.degrade(again, "response_format is unknown")
    assert "response_format" not in request_body("m", Ask("p", form=FORM), "s", dialect, stream=False)


def test_a_dialect_swaps_the_limit_once_and_drops_what_is_refused() -> None:
    dialect = Dialect()
    ask = Ask("p", temperature=0.5, max_output_tokens=7)
    bodies = [request_body("m", ask, "s", dialect, stream=True) for _ in range(3)]
    for body in bodies:
        assert (body["max_tokens"], body["temperature"], body["stream"]) == (7, 0.5, True)
        assert dialect.degrade(body, "unsupported parameter: max_tokens, use max_completion_tokens")
    body = request_body("m", ask, "s", dialect, stream=True)
    assert "max_tokens" not in body
    assert body["max_completion_tokens"] == 7
    assert not dialect.degrade(body, "max_completion_tokens is too large")
    assert dialect.degrade(body, "temperature does not support 0.5")
    assert dialect.degrade(body, "unknown field stream_options")
    body = request_body("m", ask, "s", dialect, stream=True)
    assert not {"temperature", "stream_options"} & set(body)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": ""}, None),
        ({"retry-after": "-1"}, 60.0),
        ({"retry-after": "nan"}, 60.0),
        ({"retry-after": "soon"}, 60.0),
        ({"retry-after": "9" * 5000}, 60.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 60.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, 0.0),
    ],
)
def test_retry_after_is_read_in_all_its_forms(
    headers: dict[str, str], seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 40.0)
    assert retry_after(headers) == seconds


def _read(raw: bytes) -> Answered:
    gathered = Gathered()
    gathered.take(raw, "server")
    return gathered.to_answers("m", {}, lambda taken, made, cached: None, "server")[0]


@given(st.binary(max_size=300))
def test_no_bytes_whatever_break_the_reader(raw: bytes) -> None:
    with pytest.raises(ModelError):
        _read(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 100_000,
        b'{"choices": ' + b"[" * 100_000,
        b'{"choices": [{"message": {"content": "\\ud800"}}]}',
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b"null",
        b"NaN",
        b'{"error": {"message": "no", "code": 429}}',
        b'{"error": "out of memory"}',
    ],
)
def test_a_body_that_is_no_answer_is_a_model_error(raw: bytes) -> None:
    with pytest.raises(ModelError) as caught:
        _read(raw)
    assert caught.value.retryable
    assert caught.value.code == ("rate_limited" if b"429" in raw else "provider_error")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.dictionaries(
            st.sampled_from(
                ["prompt_tokens", "completion_tokens", "prompt_tokens_details", "cached_tokens", "cost"]
            ),
            inner,
        ),
        max_leaves=8,
    )
)
def test_usage_is_never_negative_nor_more_cached_than_sent(stated: object) -> None:
    gathered = Gathered()
    gathered.stated = stated
    usage = gathered.usage("", lambda i, o, c: None)
    assert 0 <= usage.cached_input_tokens <= usage.input_tokens <= 1_000_000
    assert 0 <= usage.output_tokens <= 1_000_000
    assert usage.usd is None or 0 <= usage.usd < 1_000_000


@pytest.mark.parametrize(
    ("url", "caches"),
    [
        ("https://api.openai.com/v1", True),
        ("https://mine.openai.azure.com/openai/v1", True),
        ("https://api.deepseek.com/v1", True),
        ("https://notopenai.com/v1", False),
        ("http://127.0.0.1:8000/v1", False),
    ],
)
def test_a_prompt_cache_is_expected_of_those_who_have_one(url: str, caches: bool) -> None:
    assert OpenAICompatibleModel(url, "m").caches_prompts is caches


@pytest.mark.parametrize(
    "complaint",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 8500 tokens (308 in the messages, "
        "8192 in the completion). Please reduce the length of the messages or completion.",
        "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 4096",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 4096]",
        "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 60 `inputs` tokens and 8192 `max_new_tokens`",
        "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for this model",
    ],
)
def test_a_limit_that_a_server_calls_too_high_is_halved(complaint: str) -> None:
    dialect, asked = Dialect(), Ask("p", max_output_tokens=8_192)
    assert dialect.degrade(request_body("m", asked, "s", dialect, stream=False), complaint.lower())
    assert request_body("m", asked, "s", dialect, stream=False)["max_tokens"] == 4_096


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "request (20031 tokens) exceeds the available context size (4096 tokens), try increasing it"),
        (
            400,
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        ),
        (413, "prompt is too long: 210000 tokens > 200000 maximum"),
    ],
)
def test_a_question_that_is_too_long_for_a_model_has_a_code_of_its_own(status: int, message: str) -> None:
    raw = msgspec.json.encode({"error": {"message": message}})
    error = refusal_of_request(status, {}, raw, "small")
    assert (error.code, error.retryable) == ("context_overflow", False)


@pytest.mark.parametrize("key", ["message", "delta"])
def test_calls_of_tools_are_a_reply(key: str) -> None:
    halves = ['{"query": "the', ' mill"}']
    chunks = [
        {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "search", "arguments": halves[0]}}]},
        {"content": None, "tool_calls": [{"index": 0, "function": {"arguments": halves[1]}}]},
    ]
    gathered = Gathered()
    for chunk in chunks:
        choice = {"index": 0, key: chunk, "finish_reason": "tool_calls"}
        gathered.take(json.dumps({"choices": [choice]}).encode(), "server")
    said = json.loads(gathered.to_answers("m", {}, lambda taken, made, cached: None, "server")[0].text)
    assert said == {"tool_calls": [{"name": "search", "arguments": "".join(halves)}]}


TOOL = {"name": "search", "description": "Finds pages.", "parameters": {"type": "object", "properties": {}}}
ASKED = {"mark": "Mark it.", "task": "Now act.", "tools": (TOOL,), "by_hand": "Write a call as JSON."}


async def test_tools_go_along_as_tools_with_no_schema_and_not_a_word_of_how_to_write_them(
    server: ModelServer, model: Any
) -> None:
    server.reset(faults=[], replies=["I know it."])
    ask = Ask("Which?", "You search.", form=FORM, **ASKED).spelled_out(takes_tools=model.takes_tools)
    await model.answer(msgspec.structs.replace(question(), ask=ask))
    (body,) = server.bodies
    assert [tool["function"]["name"] for tool in body["tools"]] == ["search"]
    assert body["tools"][0]["function"]["parameters"]["properties"] == {}
    assert "response_format" not in body
    assert [message["content"] for message in body["messages"]] == [
        "You search.",
        "Which?\n\nMark it.\n\nNow act.",
    ]


@pytest.mark.parametrize(
    "complaint",
    [
        "registry.ollama.ai/library/gemma3 does not support tools",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "no endpoints found that support tool use.",
    ],
)
def test_a_dialect_leaves_tools_out_that_were_refused(complaint: str) -> None:
    dialect, ask = Dialect(), Ask("Which?", **ASKED).spelled_out(takes_tools=True)
    assert dialect.degrade(request_body("m", ask, "s", dialect, stream=False), complaint)
    assert "tools" not in request_body("m", ask, "s", dialect, stream=False)


def test_a_tool_goes_by_a_name_that_providers_take_and_is_found_by_it() -> None:
    card = ToolCard("python.climate", "", {"properties": {"city": {"type": "string"}}})
    ask = Ask("Which?", tools=tools_data((card,)), by_hand="x").spelled_out(takes_tools=True)
    body = request_body("m", ask, "s", Dialect(), stream=False)
    assert body["tools"][0]["function"]["name"] == "python_climate"
    reply = with_calls("", [("python_climate", '{"city": "Oslo"}')])
    reading = read_turn((card,), [reply])
    assert not isinstance(reading, Unreadable)
    assert resolve_action((card,), reading[0].actions[0]) == Action("python.climate", {"city": "Oslo"})


async def test_a_server_that_takes_no_tools_is_told_of_them_in_words_from_then_on() -> None:
    def reply(request: ChatRequest) -> str:
        if "tools" in request.body:
            raise ValueError("tools param requires --jinja flag")
        return "I know it."

    asked = msgspec.structs.replace(question(), ask=Ask("Which?", **ASKED).spelled_out(takes_tools=True))
    with ModelServer(reply=reply) as server:
        async with model_over(server) as model:
            with pytest.raises(ModelError) as caught:
                await model.answer(asked)
            assert (caught.value.retryable, caught.value.details["degraded"]) == (True, True)
            assert (await model.answer(asked)).text == "I know it."
        told = server.bodies[-1]["messages"][-1]["content"]
    assert told == "Which?\n\nWrite a call as JSON.\n\nMark it.\n\nNow act."


def test_calls_that_an_sdk_returns_are_written_as_those_of_the_own_transport() -> None:
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

    parts = [TextPart("I look it up."), ToolCallPart("search", {"query": "mill"}), ToolCallPart("now", "{}")]
    answer = _to_answer(ModelResponse(parts), "m", False, "p", lambda taken, made, cached: None)
    text, _, calls = answer.text.partition("\n")
    assert (text, json.loads(calls)) == (
        "I look it up.",
        {
            "tool_calls": [
                {"name": "search", "arguments": {"query": "mill"}},
                {"name": "now", "arguments": "{}"},
            ]
        },
    )
