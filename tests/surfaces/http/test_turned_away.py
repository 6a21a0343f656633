"""Requests that are turned away: nothing is begun for them, and the connection continues as after any other answer."""

from __future__ import annotations

import re

import msgspec
import pytest

from ...servers import ModelServer
from .openai.talking import ASK, reply
from .serving import TOKENS, Serving, serve_in_thread
from .wire import Wire

BODY = msgspec.json.encode({"model": "chain_of_thought@small", "messages": ASK})
PLACES, ASKING = 3, 25


def as_bytes(serving: Serving, line: str, **headers: str) -> bytes:
    """Return a request as it is sent, without a body."""
    given = {"Host": serving.url.partition("//")[2], **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items())
    return f"{line}\r\n{lines}\r\n".encode()


def completion(serving: Serving) -> bytes:
    """Return a request for a completion."""
    of_body = {"Content_Type": "application/json", "Content_Length": str(len(BODY))}
    return as_bytes(serving, "POST /v1/chat/completions HTTP/1.1", **of_body) + BODY


@pytest.mark.parametrize("is_burst", [False, True], ids=["one by one", "at once"])
def test_as_many_runs_begin_as_there_are_places_and_the_others_are_told(
    is_burst: bool,
) -> None:
    with ModelServer(reply=reply, latency_ms=1_000) as model:
        environ = {"REASONRY_MODELS": f"small={model.model}"}
        with serve_in_thread(environ=environ, max_runs=PLACES) as serving:
            wires = [Wire(serving) for _ in range(ASKING)]
            asked = completion(serving)
            for wire in wires:
                wire.send(asked, pause_s=0 if is_burst else 0.01)
            answers = [wire.answer() for wire in wires]
            served = [document for status, document in answers if status == 200]
            refused = [document["error"] for status, document in answers if status == 503]
            assert (len(served), len(refused)) == (PLACES, ASKING - PLACES)
            assert {document["choices"][0]["message"]["content"] for document in served} == {"Oslo"}
            assert {(error["code"], error["retryable"]) for error in refused} == {("overloaded", True)}
            assert len({error["request_id"] for error in refused}) == len(refused)
            for wire in wires[:PLACES]:
                wire.send(asked)
            assert [wire.answer()[0] for wire in wires[:PLACES]] == [200] * PLACES, (
                "the places are free again"
            )
            for wire in wires:
                wire.__exit__()
            metrics = serving.client().get("/metrics").text
    counts = re.findall(r'^reasonry_requests_total\{.*status="503"\} (\S+)$', metrics, re.MULTILINE)
    assert sum(map(float, counts)) == ASKING - PLACES
    assert "\nreasonry_requests_in_flight 1.0\n" in metrics, "this question alone"


def test_requests_that_were_sent_all_at_once_are_answered_in_their_order() -> None:
    with serve_in_thread(tokens=TOKENS) as serving:
        known = as_bytes(serving, "GET /api/models HTTP/1.1", Authorization=f"Bearer {TOKENS['ana']}")
        unknown = as_bytes(serving, "GET /api/models HTTP/1.1")
        kinds = [known, *[unknown] * 400, known, unknown, known]
        with Wire(serving) as wire:
            wire.send(b"".join(kinds))
            assert [wire.answer()[0] for _ in kinds] == [200 if kind is known else 401 for kind in kinds]
            wire.send(unknown * 1_500)
            assert [wire.answer()[0] for _ in range(1_500)] == [401] * 1_500


def test_the_log_has_why_a_request_was_refused_and_who_sent_it(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    asked = {"model": "react@small", "messages": ASK, "n": 2}
    headers = {"User-Agent": "chat-ui/1"}
    refused = serving.client().post("/v1/chat/completions", json=asked, headers=headers)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "reasonry.http"]
    assert refused.json()["error"]["request_id"] in line
    assert "400 invalid_request: n must be one of: 1; not '2'" in line
    assert "(POST /v1/chat/completions by chat-ui/1)" in line
