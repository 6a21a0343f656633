"""The loopback model server does what its settings say, and its figures are true."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.servers import ChatRequest, Fault, ModelServer


def post(server: Any, prompt: str = "hello", **more: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], **more}
    request = urllib.request.Request(f"{server.url}/chat/completions", data=json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


def said(document: dict[str, Any]) -> list[str]:
    return [choice["message"]["content"] for choice in document["choices"]]


def test_the_queue_is_used_first_then_the_function_then_the_form() -> None:
    def reply(request: ChatRequest) -> Any:
        return {"seen": request.prompt, "number": request.number} if "call" in request.prompt else None

    form = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3, "maximum": 5}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": form}}
    with ModelServer(replies=["queued"], reply=reply) as server:
        assert said(post(server, "call me")) == ["queued"]
        assert json.loads(said(post(server, "call me"))[0]) == {"seen": "call me", "number": 2}
        filled = json.loads(said(post(server, "a number", response_format=wanted))[0])
        assert 3 <= filled["n"] <= 5
        assert said(post(server, "anything"))[0].startswith("The answer is ")


@pytest.mark.parametrize(
    ("fault", "broken"),
    [
        (Fault(kind="server_error", first=2), [1, 2]),
        (Fault(kind="server_error", every=3), [3, 6]),
        (Fault(kind="server_error", requests=(2, 5)), [2, 5]),
        (Fault(kind="server_error", match="prompt [ab]"), [1, 2, 4, 5]),
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
