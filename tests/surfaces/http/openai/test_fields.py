"""Which fields are served, taken and refused; and requests of any other shape."""

import re
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from reasonry.surfaces.http.openai.request import ChatFields, ResponseFields, WithoutEffect

from .talking import ASK, Talk

CHAT: dict[str, Any] = {"model": "chain_of_thought@small", "messages": ASK}
REFUSED: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "audio": (),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "include": ([], ["reasoning.encrypted_content"]),
    "conversation": (),
    "prompt": (),
    "max_tool_calls": (),
}
"""Fields that would change what the reply holds, with the values that ask for nothing beyond what is served."""
LEGAL: dict[str, Any] = {
    "temperature": 0.3,
    "top_p": 1,
    "presence_penalty": -2,
    "frequency_penalty": 2.0,
    "seed": 7,
    "user": "u",
    "safety_identifier": "s",
    "prompt_cache_key": "k",
    "prompt_cache_retention": "24h",
    "store": False,
    "service_tier": "flex",
    "truncation": "disabled",
    "verbosity": "low",
    "reasoning_effort": "xhigh",
    "reasoning": {"effort": "minimal", "summary": "auto"},
    "context_management": [],
}
"""Fields without effect, with a value that is legal; of the others it is an object."""
ILLEGAL: dict[str, tuple[Any, ...]] = {
    "temperature": ("hot", -3, 99),
    "top_p": (7, "x"),
    "seed": ("abc",),
    "presence_penalty": (9,),
    "frequency_penalty": ("x",),
    "user": (5,),
    "metadata": ("x",),
    "store": ("maybe",),
    "service_tier": ("gold",),
    "safety_identifier": (7,),
    "tools": ([{"type": "nonsense"}],),
}
ILLEGAL_CHAT = {"reasoning_effort": ("extreme", 5), "verbosity": ("loud",)}
ILLEGAL_RESPONSE = {
    "reasoning": ("high", {"effort": "x"}),
    "truncation": (5,),
    "text": ({"verbosity": "loud"},),
}
RESPONSE: dict[str, Any] = {"model": "chain_of_thought@small", "input": "Where is it warm?"}


@pytest.mark.parametrize(
    ("path", "body", "params", "fields"),
    [
        ("/v1/chat/completions", CHAT, CompletionCreateParamsBase, ChatFields),
        ("/v1/responses", RESPONSE, ResponseCreateParamsBase, ResponseFields),
    ],
)
def test_each_field_of_openai_s_client_is_served_taken_or_refused_by_its_name(
    talk: Talk, path: str, body: dict[str, Any], params: Any, fields: Any
) -> None:
    client = talk.serving.client()
    names = set(get_type_hints(params)) - {"model", "messages", "input"}
    refused = names & REFUSED.keys()
    for name in refused:
        reply = client.post(path, json={**body, name: {"x": 1}})
        error = reply.json()["error"]
        assert (reply.status_code, error["type"], error["param"]) == (400, "invalid_request_error", name)
    passed_over = {name: LEGAL.get(name, {}) for name in names - refused - set(fields.__struct_fields__)}
    assert passed_over.keys() <= {*WithoutEffect.__struct_fields__}
    passed_over["client_metadata"] = 1
    asking_for_nothing = {name: values[0] for name, values in REFUSED.items() if values}
    sent = {**body, **passed_over, **dict.fromkeys(refused), **asking_for_nothing}
    assert client.post(path, json=sent).status_code == 200


def test_what_is_passed_over_is_named_in_a_warning(talk: Talk) -> None:
    tools = [{"type": "namespace", "name": "fs", "tools": []}, {"type": "web_search"}]
    extra = {"client_metadata": {"a": 1}, "thinking": {"type": "enabled"}, "tools": tools, "seed": None}
    for path, body in (("/v1/chat/completions", CHAT), ("/v1/responses", RESPONSE)):
        reply = talk.serving.client().post(path, json={**body, **extra})
        assert reply.json()["reasonry"]["runs"][0]["warnings"][-2:] == [
            "without effect here: client_metadata, thinking",
            "tools: only functions are served, not namespace, web_search",
        ]


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        (path, name, value)
        for path, own in (("/v1/chat/completions", ILLEGAL_CHAT), ("/v1/responses", ILLEGAL_RESPONSE))
        for name, values in (ILLEGAL | own).items()
        for value in values
    ],
)
def test_a_field_without_effect_is_refused_where_its_value_is_illegal(
    talk: Talk, path: str, name: str, value: Any
) -> None:
    _refuse(talk, path, {**(CHAT if "chat" in path else RESPONSE), name: value}, name)


@pytest.mark.parametrize(
    ("path", "written", "meant"),
    [
        ("/v1/chat/completions", "temprature", "temperature"),
        ("/v1/chat/completions", "max_output_tokens", "max_tokens"),
        ("/v1/chat/completions", "strem", "stream"),
        ("/v1/responses", "inputt", "input"),
        ("/v1/responses", "max_tokens", "max_output_tokens"),
        ("/v1/responses", "reasonning", "reasoning"),
    ],
)
def test_a_misspelt_field_is_refused_with_the_one_that_was_meant(
    talk: Talk, path: str, written: str, meant: str
) -> None:
    body = CHAT if "chat" in path else RESPONSE
    message = _refuse(talk, path, {**body, written: 5}, written)
    assert message.startswith(f"there is no field {written!r} here. Did you mean ")
    assert meant in message


def _refuse(talk: Talk, path: str, body: dict[str, Any], name: str) -> str:
    before = talk.calls
    reply = talk.serving.client().post(path, json=body)
    error = reply.json()["error"]
    assert (reply.status_code, error["type"]) == (400, "invalid_request_error"), error
    assert re.split(r"[.\[]", error["param"])[0] == name
    assert talk.calls == before
    return error["message"]


USUAL: dict[str, Any] = {
    "stream": False,
    "stream_options": {"include_usage": True},
    "temperature": 0.0,
    "top_k": 40,
    "min_p": 0.05,
    "repeat_penalty": 1.1,
    "presence_penalty": 0,
    "seed": 42,
    "n": 1,
    "logprobs": False,
    "logit_bias": {},
    "max_tokens": None,
    "max_completion_tokens": 256,
    "user": {"id": "1", "name": "ana"},
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "response_format": {"type": "text", "json_schema": None},
    "metadata": {"a": "b"},
    "prediction": {"type": "content", "content": "x"},
}
"""What Open WebUI, LibreChat, LangChain, aider and the AI SDK send, if it is unlike what OpenAI's client sends."""


@pytest.mark.parametrize("stop", [None, [], ["\nObservation"]])
def test_what_chat_uis_and_frameworks_send_is_served(talk: Talk, stop: Any) -> None:
    reply = talk.serving.client().post("/v1/chat/completions", json={**CHAT, **USUAL, "stop": stop})
    assert (reply.status_code, reply.json()["choices"][0]["message"]["content"]) == (200, "Oslo")


@pytest.mark.parametrize(
    ("changed", "param"),
    [
        ({"messages": "hi"}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [1]}, "messages[0]"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0].type"),
        (
            {"messages": [*ASK, {"role": "assistant", "tool_calls": [{"id": "a"}]}]},
            "messages[1].tool_calls[0]",
        ),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
        ({"model": 3}, "model"),
        ({"model": None}, "model"),
        ({"n": 0}, "n"),
        ({"n": 2.5}, "n"),
        ({"stream": "yes"}, "stream"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
        ({"stop": {"a": 1}}, "stop"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "x"}}}},
            "response_format",
        ),
        ({"tools": [{"type": 3}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        ({"tools": [{"type": "function", "function": {"name": "a"}}] * 2}, "tools"),
        ({"reasonry": {"depth": 3}}, "reasonry"),
        ({"reasonry": {"options": {"depths": 3}}}, "depths"),
        ({"reasonry": {"verifier": "file.py:check"}}, "verifier"),
        ({"reasonry": {"tools": ["/etc/passwd"]}}, "tools"),
        ({"reasonry": {"strategy": "nope"}}, "strategy"),
    ],
)
def test_a_request_of_another_shape_is_a_400_that_names_the_field(
    talk: Talk, changed: Any, param: str
) -> None:
    reply = talk.serving.client().post("/v1/chat/completions", json={**CHAT, **changed})
    error = reply.json()["error"]
    assert reply.status_code == 400, error
    assert error["param"] == param, error
    assert error["message"]
    assert error["request_id"] == reply.headers["x-request-id"]


def test_the_table_of_fields_has_them_all() -> None:
    page = (Path(__file__).parents[4] / "docs" / "openai.md").read_text("utf-8").partition("## Fields")[2]
    fields = {*ChatFields.__struct_fields__, *ResponseFields.__struct_fields__, *REFUSED}
    assert fields - set(re.findall(r"`(\w+)`", page)) == set()
