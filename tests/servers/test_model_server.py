"""The loopback model server does what its settings say, and its figures are true."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.servers import ChatRequest, Fault, ModelServer, Rule, ServerProcess


def post(server: Any, prompt: str = "hello", **more: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], **more}
    request = urllib.request.Request(f"{server.url}/chat/completions", data=json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


def said(document: dict[str, Any]) -> list[str]:
    return [choice["message"]["content"] for choice in document["choices"]]


def test_the_queue_is_used_first_then_the_rules_then_the_function_then_the_form() -> None:
    def reply(request: ChatRequest) -> Any:
        return {"seen": request.prompt, "number": request.number} if "call" in request.prompt else None

    form = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3, "maximum": 5}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": form}}
    rules = [Rule("capital of (France|Spain)", "one of two", times=1), Rule("capital", {"town": "Rome"})]
    with ModelServer(replies=["queued"], rules=rules, reply=reply) as server:
        assert said(post(server, "capital of France")) == ["queued"]
        assert said(post(server, "capital of France")) == ["one of two"]
        assert said(post(server, "capital of France")) == ['{"town": "Rome"}']
        assert json.loads(said(post(server, "call me"))[0]) == {"seen": "call me", "number": 4}
        filled = json.loads(said(post(server, "a number", response_format=wanted))[0])
        assert 3 <= filled["n"] <= 5
        assert said(post(server, "anything"))[0].startswith("The answer is ")


def test_figures_say_who_asked_what_how_often() -> None:
    with ModelServer(latency_ms=1) as server:
        for prompt in ("one two three", "one two three", "four!"):
            post(server, prompt)
        stats = server.stats()
        assert (stats["requests"], stats["answered"], stats["failed"]) == (3, 3, 0)
        assert (stats["distinct_prompts"], stats["duplicate_requests"]) == (2, 1)
        # `user: one two three` is five tokens, `user: four!` four.
        assert stats["prompt_tokens"] == 14
        assert [body["messages"][0]["content"] for body in server.bodies][-1] == "four!"
        server.reset()
        assert server.stats()["requests"] == 0
        assert server.bodies == []


def test_a_prefix_is_cached_only_once_it_was_answered_and_only_in_whole_blocks() -> None:
    prefix = "word " * 100
    with ModelServer(cache_min_tokens=32, cache_block_tokens=32) as server:
        cached = [
            post(server, prompt)["usage"]["prompt_tokens_details"]["cached_tokens"]
            for prompt in (f"{prefix}a", f"{prefix}b", "other " * 100, "short")
        ]
    assert cached == [0, 96, 0, 0]


def test_a_stream_holds_the_same_text_and_usage_as_the_whole() -> None:
    with ModelServer(replies=["a b c d e f g"] * 2, chunk_words=2) as server:
        whole = post(server)
        body = {"messages": [{"role": "user", "content": "hello"}], "stream": True}
        body["stream_options"] = {"include_usage": True}
        request = urllib.request.Request(f"{server.url}/chat/completions", data=json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as response:
            assert response.headers["content-type"] == "text/event-stream"
            lines = [line[6:].strip() for line in response if line.startswith(b"data: ")]
    assert lines[-1] == b"[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    texts = [choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"]]
    assert "".join(texts) == said(whole)[0]
    assert chunks[-1]["usage"] == whole["usage"]


@pytest.mark.parametrize(
    ("fault", "broken"),
    [
        (Fault(kind="server_error", first=2), [1, 2]),
        (Fault(kind="server_error", every=3), [3, 6]),
        (Fault(kind="server_error", requests=(2, 5)), [2, 5]),
        (Fault(kind="server_error", match="prompt [ab]"), [1, 2, 4, 5]),
        (Fault(kind="server_error", first_per_prompt=1), [1, 2, 3]),
        (Fault(kind="server_error", match="prompt b", first=1), [2]),
    ],
)
def test_faults_hit_the_requests_they_name_and_no_others(fault: Fault, broken: list[int]) -> None:
    hit: list[int] = []
    with ModelServer(faults=[fault]) as server:
        for number, prompt in enumerate(["prompt a", "prompt b", "prompt c"] * 2, start=1):
            try:
                post(server, prompt)
            except urllib.error.HTTPError as error:
                hit.append(number)
                error.close()
        assert server.stats()["faults"] == {"server_error": len(broken)}
        assert server.stats()["failed"] == len(broken)
    assert hit == broken


def test_another_process_is_steered_over_http() -> None:
    with ServerProcess(replies=["one"], models=("m1",)) as server:
        assert said(post(server)) == ["one"]
        assert server.model == f"openai-compatible:{server.url}#m1"
        assert server.stats()["requests"] == 1
        server.reset(rules=[Rule("x", "ruled")], faults=[Fault(kind="unavailable", requests=(2,))])
        assert server.stats()["requests"] == 0
        assert said(post(server, "x")) == ["one"]
        with pytest.raises(urllib.error.HTTPError) as caught:
            post(server, "x")
        caught.value.close()
        assert said(post(server, "x")) == ["ruled"]
        assert len(server.bodies) == 3
