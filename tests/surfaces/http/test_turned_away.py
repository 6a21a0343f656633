"""What is turned away: nothing is begun for it, and the connection goes on as after any other answer."""

from __future__ import annotations

import re
import time

import msgspec
import pytest

from reasonry.surfaces.http import gate

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


@pytest.mark.parametrize("is_traced", [False, True], ids=["plain", "traced"])
@pytest.mark.parametrize("is_burst", [False, True], ids=["one by one", "at once"])
def test_as_many_runs_begin_as_there_are_places_and_the_others_are_told(
    is_traced: bool, is_burst: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "is_traced", lambda: is_traced)
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


LINES = ("GET /api/runs", "POST /v1/chat/completions", "GET /nowhere", "HEAD /api/runs", "DELETE /mcp")
HEADERS = (
    {},
    {"Connection": "close"},
    {"Host": "evil.example"},
    {"Origin": "https://evil.example"},
    {"Authorization": "Bearer none"},
    {"Content_Length": str(len(BODY)), "Expect": "100-continue"},
)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("headers", HEADERS, ids=lambda headers: "+".join(headers) or "none")
@pytest.mark.parametrize("line", LINES)
def test_nobody_sees_whether_an_answer_was_begun_for_what_was_turned_away(
    line: str, headers: dict[str, str], version: str, guarded: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = list[tuple[bytes, bytes, bool]]()
    for is_traced in (False, True):
        monkeypatch.setattr(gate, "is_traced", lambda traced=is_traced: traced)
        with Wire(guarded) as wire:
            wire.send(as_bytes(guarded, f"{line} HTTP/{version}", **headers))
            head, body = wire.response(has_body=not line.startswith("HEAD"))
            wire.send(BODY if "Content_Length" in headers else b"")
            wire.send(as_bytes(guarded, "GET /healthz HTTP/1.1"))
            names = [re.sub(rb"[0-9a-f]{12}-[0-9a-f]+", b"ID", part) for part in (head, body)]
            answers.append((names[0], names[1], wire.answer()[0] == 200))
    assert answers[0] == answers[1]
    head, _, goes_on = answers[0]
    assert int(head.split()[1]) >= 400
    assert goes_on == (version == "1.1" and "Connection" not in headers)


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


def test_who_is_turned_away_and_reads_nothing_is_cut_off_and_holds_no_memory() -> None:
    with serve_in_thread(tokens=TOKENS, send_timeout_s=0.3) as serving:
        requests, sent = as_bytes(serving, "GET /api/models HTTP/1.1") * 1_000, 0
        deadline = time.monotonic() + 10
        with Wire(serving) as wire:
            wire.socket.settimeout(0.1)
            while time.monotonic() < deadline:
                try:
                    sent += wire.socket.send(requests[sent % len(requests) :])
                except TimeoutError:
                    continue
                except OSError:
                    break
            assert time.monotonic() < deadline, "the connection has been ended"
            assert sent < 30_000_000, "nor was it read on and on"
        assert serving.client().get("/healthz").status_code == 200
