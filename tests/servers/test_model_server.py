"""The loopback model server does what its settings say, and its figures are true."""

from __future__ import annotations

import http.client
import json
import socket
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from tests.servers import Behaviour, ChatRequest, Fault, ModelServer, Rule, ServerProcess


def post(server: Any, prompt: str = "hello", **more: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], **more}
    request = urllib.request.Request(f"{server.url}/chat/completions", data=json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


def said(document: dict[str, Any]) -> list[str]:
    return [choice["message"]["content"] for choice in document["choices"]]


def get(server: Any, path: str) -> Any:
    with urllib.request.urlopen(server.url.removesuffix("/v1") + path, timeout=10) as response:
        return json.load(response)


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


def test_a_reply_function_that_raises_is_a_server_error_and_the_server_lives_on() -> None:
    def reply(request: ChatRequest) -> Any:
        return {"fine": 1 / (request.number - 1)}

    with ModelServer(reply=reply) as server:
        with pytest.raises(urllib.error.HTTPError) as caught:
            post(server)
        assert caught.value.code == 500
        assert "ZeroDivisionError" in json.load(caught.value)["error"]["message"]
        assert said(post(server)) == ['{"fine": 1.0}']
        assert (server.stats()["failed"], server.stats()["answered"]) == (1, 1)


def test_the_same_prompt_gets_the_same_reply_whenever_it_comes_and_samples_differ() -> None:
    with ModelServer() as server:
        first = said(post(server, "p", n=8))
        post(server, "something else")
        assert said(post(server, "p", n=8)) == first
        assert len(set(first)) > 1
        assert server.stats()["samples"] == 17


def test_latency_runs_from_the_request_and_requests_do_not_wait_for_each_other() -> None:
    with ModelServer(latency_ms=500) as server, ThreadPoolExecutor(20) as pool:
        began = time.perf_counter()
        list(pool.map(lambda at: post(server, f"prompt {at}"), range(20)))
        took = time.perf_counter() - began
        stats = server.stats()
        # One after the other they would take ten seconds.
        assert took < 5.0
        assert stats["max_inflight"] == 20
        assert stats["rounds"] == 1
        assert 500 <= stats["span_ms"] < 5_000
        post(server)
        assert server.stats()["rounds"] == 2


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


def test_a_limit_on_output_tokens_cuts_and_says_so() -> None:
    with ModelServer(replies=["one two three four five"]) as server:
        document = post(server, max_tokens=3)
    assert said(document) == ["one two three"]
    assert document["choices"][0]["finish_reason"] == "length"
    assert document["usage"]["completion_tokens"] == 3


def test_tools_are_taken_and_counted_and_do_no_harm() -> None:
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]
    with ModelServer(replies=["no tool needed"]) as server:
        assert said(post(server, tools=tools)) == ["no tool needed"]
        assert server.bodies[0]["tools"] == tools
        assert server.stats()["prompt_tokens"] > 10


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


def test_too_many_at_once_are_refused() -> None:
    def status(at: int) -> int:
        try:
            post(server, f"prompt {at}")
        except urllib.error.HTTPError as error:
            error.close()
            return error.code
        return 200

    with ModelServer(latency_ms=200, max_parallel=2) as server, ThreadPoolExecutor(5) as pool:
        assert sorted(pool.map(status, range(5))) == [200, 200, 429, 429, 429]


def test_models_are_listed() -> None:
    with ModelServer(models=("a", "b")) as server:
        assert [one["id"] for one in get(server, "/v1/models")["data"]] == ["a", "b"]
        assert server.model.endswith("/v1#a")


def test_what_is_no_request_is_refused_and_the_server_lives_on() -> None:
    with ModelServer(replies=["alive"]) as server:
        port = urlsplit(server.url).port or 0
        for raw in (
            b"\x00\xff\r\n\r\n",
            b"GET\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
            b"",
        ):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(raw)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1000)
        for body in (b"", b"[]", b'{"messages": 3}', b"[" * 100_000):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("POST", "/v1/chat/completions", body)
            assert connection.getresponse().status == 400
            connection.close()
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/nowhere")
        assert connection.getresponse().status == 404
        connection.close()
        assert said(post(server)) == ["alive"]


def test_a_request_in_chunks_is_read() -> None:
    with ModelServer(replies=["chunked"]) as server:
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(server.url).port or 0)
        pieces = [b'{"messages": [{"role": "user",', b' "content": "x"}]}']
        connection.request("POST", "/v1/chat/completions", iter(pieces), encode_chunked=True)
        assert said(json.load(connection.getresponse())) == ["chunked"]
        connection.close()


def test_a_port_that_is_taken_is_an_error_at_once() -> None:
    with ModelServer() as server, pytest.raises(OSError, match="in use"):
        ModelServer(port=urlsplit(server.url).port or 0).__enter__()


@pytest.mark.parametrize("settings", [{"latency": 5}, {"faults": [{"kind": "nonsense"}]}, {"latency_ms": -1}])
def test_settings_that_do_not_exist_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        ModelServer(**settings)


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


def test_behaviour_survives_json() -> None:
    behaviour = Behaviour(faults=(Fault(kind="hang", first=1),), rules=(Rule("a", {"b": 1}),), latency_ms=5)
    assert msgspec.json.decode(msgspec.json.encode(behaviour), type=Behaviour) == behaviour
