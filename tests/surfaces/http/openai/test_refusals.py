"""What is refused before anything is read is refused as OpenAI's clients read it."""

import json
from typing import Any

import pytest

from reasonry.system.masking import SECRETS

from ....servers import Fault, ModelServer
from ..serving import TOKENS, Serving
from .talking import ASK, reply, talking

REFUSED: list[tuple[int, dict[str, Any]]] = [
    (401, {"headers": {"Authorization": "Bearer wrong"}}),
    (403, {"headers": {"Origin": "https://evil.example"}}),
    (404, {"url": "/v1/none"}),
    (405, {"method": "DELETE"}),
    (413, {"content": b" " * 5_000_000}),
    (415, {"content": b"{}", "headers": {"Content-Type": "text/plain"}}),
    (421, {"headers": {"Host": "evil.example"}}),
    (400, {"url": "/v1/chat/completions?x=1", "json": {}}),
    (400, {"json": {}}),
]


@pytest.mark.parametrize(("status", "asked"), REFUSED, ids=[str(status) for status, _ in REFUSED])
def test_a_refusal_has_the_shape_of_openai_whoever_refuses(
    guarded: Serving, status: int, asked: dict[str, Any]
) -> None:
    answer = guarded.client(TOKENS["ana"]).request(
        **{"method": "POST", "url": "/v1/chat/completions", **asked}
    )
    assert answer.status_code == status
    error = answer.json()["error"]
    assert {"message", "type", "param", "code", "request_id"} <= set(error)
    assert error["type"] == ("authentication_error" if status == 401 else "invalid_request_error")
    assert answer.headers["x-should-retry"] == "false"


def test_no_caller_is_told_where_a_model_is() -> None:
    with ModelServer(reply=reply, faults=(Fault(kind="quota"),)) as model, talking(model) as talk:
        client, address = talk.serving.client(), model.url.partition("//")[2].partition("/")[0]
        body = {"model": "chain_of_thought@small", "messages": ASK}
        failed = client.post("/v1/chat/completions", json=body)
        streamed = client.post("/v1/chat/completions", json={**body, "stream": True})
        unknown = client.post("/v1/chat/completions", json={**body, "model": "auto@nobody"})
        listed = client.get("/v1/models")
        assert failed.status_code == 429
        assert ": small: the quota is used up" in failed.json()["error"]["message"]
        assert unknown.json()["error"]["code"] == "model_not_found"
        for answer in (failed, streamed, unknown, listed):
            assert "http" not in answer.text.replace("http://127.0.0.1", "", answer.text.count("#/runs/"))
            assert address not in answer.text
    with ModelServer(reply=reply) as model, talking(model) as talk:
        answered = talk.serving.client().post("/v1/chat/completions", json=body)
        assert answered.json()["reasonry"]["runs"][0]["model"] == "small"


@pytest.mark.parametrize("streamed", [False, True])
def test_a_run_that_its_providers_rate_ends_says_so_and_when_to_come_again(streamed: bool) -> None:
    body = {"model": "chain_of_thought@small", "messages": ASK, "stream": streamed}
    body["reasonry"] = {"budget": {"seconds": 5}}
    fault = Fault(kind="rate_limit", retry_after="120")
    with ModelServer(reply=reply, faults=(fault,)) as model, talking(model) as talk:
        refused = talk.serving.client().post("/v1/chat/completions", json=body)
    if streamed:
        assert '"code":"rate_limited"' in refused.text
    else:
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
        assert refused.json()["error"]["code"] == "rate_limited"
    assert "budget_exceeded" not in refused.text
    assert "resume the run later" in refused.text


def test_a_key_in_the_form_of_an_answer_is_not_sent_on() -> None:
    key = "sk-IntheFORM1234567890abcdef"
    SECRETS.keep(key)
    form = {"type": "object", "properties": {"city": {"type": "string", "description": key}}}
    body = {
        "model": "chain_of_thought@small",
        "messages": ASK,
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": form}},
    }
    with ModelServer(reply=reply) as model, talking(model) as talk:
        answered = talk.serving.client().post("/v1/chat/completions", json=body)
        assert answered.status_code == 200, answered.text
        sent = json.dumps(model.bodies)
    assert '"city"' in sent
    assert key not in sent
