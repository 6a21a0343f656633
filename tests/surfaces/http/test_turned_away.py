"""Requests that are turned away: nothing is begun for them, and the connection continues as after any other answer."""

import re

import msgspec
import pytest

from ...servers import ModelServer
from .openai.talking import ASK, reply, talking
from .serving import TOKENS, Serving, serve_in_thread
from .wire import Wire, head, wires

BODY = msgspec.json.encode({"model": "chain_of_thought@small", "messages": ASK})
PLACES, ASKING = 3, 25


@pytest.mark.parametrize("is_burst", [False, True], ids=["one by one", "at once"])
def test_as_many_runs_begin_as_there_are_places_and_the_others_are_told(is_burst: bool) -> None:
    with ModelServer(reply=reply, latency_ms=1_000) as model, talking(model, max_runs=PLACES) as talk:
        serving = talk.serving
        of_body = f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n"
        asked = head(serving, "POST /v1/chat/completions", of_body) + BODY
        with wires(serving, ASKING, asked, 0 if is_burst else 0.01) as asking:
            answers = [wire.answer() for wire in asking]
            served = [document for status, document in answers if status == 200]
            refused = [document["error"] for status, document in answers if status == 503]
            assert (len(served), len(refused)) == (PLACES, ASKING - PLACES)
            assert {document["choices"][0]["message"]["content"] for document in served} == {"Oslo"}
            assert {(error["code"], error["retryable"]) for error in refused} == {("overloaded", True)}
            assert len({error["request_id"] for error in refused}) == len(refused)
            for wire in asking[:PLACES]:
                wire.send(asked)
            again = [wire.answer()[0] for wire in asking[:PLACES]]
            assert again == [200] * PLACES, "the places are free again"
        metrics = serving.client().get("/metrics").text
    counts = re.findall(r'^reasonry_requests_total\{.*status="503"\} (\S+)$', metrics, re.MULTILINE)
    assert sum(map(float, counts)) == ASKING - PLACES
    assert "\nreasonry_requests_in_flight 1.0\n" in metrics, "this question alone"


def test_requests_that_were_sent_all_at_once_are_answered_in_their_order() -> None:
    with serve_in_thread(tokens=TOKENS) as serving:
        known = head(serving, "GET /api/models", f"Authorization: Bearer {TOKENS['ana']}\r\n")
        unknown = head(serving, "GET /api/models")
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
