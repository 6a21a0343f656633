"""Clients that send slowly, much, nothing or too often, or read nothing: they shut nobody else out."""

import logging
import re
from typing import Any

import pytest

from reasonry.surfaces.http.admission import RequestRate
from reasonry.surfaces.http.protocol import BoundedProtocol

from .serving import TOKENS, Serving, eventually, in_flight, serve_in_thread
from .test_sessions_api import begin
from .wire import Wire, head, wires

ANA, BEN = f"Authorization: Bearer {TOKENS['ana']}\r\n", f"Authorization: Bearer {TOKENS['ben']}\r\n"
BODY = b'{"thought": "1", "thought_number": 1, "total_thoughts": 1, "next_thought_needed": false}'


def posting(server: Serving, *headers: str) -> bytes:
    """Return the head of a request that brings `BODY`."""
    of_body = f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n"
    return head(server, "POST /api/sessions", *headers, of_body)


def followed(server: Serving, token: str | None = None) -> bytes:
    """Return a request whose answer continues: it follows a run that waits for its answers."""
    asked = {"problem": "x", "strategy": "chain_of_thought", "mode": "coached"}
    run = server.client(token).post("/api/runs", json=asked).json()["run_id"]
    authorization = "" if token is None else f"Authorization: Bearer {token}\r\n"
    return head(server, f"GET /api/runs/{run}/events", authorization)


def test_bodies_that_come_slowly_take_no_places() -> None:
    with serve_in_thread(tokens=TOKENS, max_in_flight=4) as server:
        ben = server.client(TOKENS["ben"])
        with wires(server, 12, posting(server, ANA) + BODY[:1]) as slow:
            assert in_flight(ben) == 1, "only this question is under way"
            assert server.client().get("/healthz").status_code == 200
            for wire in slow:
                wire.send(BODY[1:])
                assert wire.answer()[0] == 201


def test_a_principal_holds_half_of_the_places_at_most() -> None:
    with serve_in_thread(tokens=TOKENS, max_in_flight=4) as server:
        ben = server.client(TOKENS["ben"])
        asked = followed(server, TOKENS["ana"])
        with wires(server, 1, asked), wires(server, 1, asked) as second:
            assert eventually(lambda: in_flight(ben) == 3)
            for sent in (head(server, "GET /api/sessions", ANA), posting(server, ANA) + BODY):
                with wires(server, 1, sent) as (third,):
                    status, document = third.answer()
                    assert (status, document["error"]["code"]) == (429, "rate_limited")
            assert begin(ben, "x"), "the other half is free"
            assert server.client().get("/healthz").status_code == 200
            second[0].__exit__()
            ana = server.client(TOKENS["ana"])
            assert eventually(lambda: ana.get("/api/sessions").status_code == 200)


def test_requests_that_came_all_at_once_take_no_more_places_than_there_are() -> None:
    with serve_in_thread(max_in_flight=3) as server:
        follow = followed(server)
        with wires(server, 8, follow) as asking:
            begun = [wire.head() for wire in asking]
            assert sum(b" 200 " in each.split(b"\r\n")[0] for each in begun) == 3
            assert sum(b" 503 " in each.split(b"\r\n")[0] for each in begun) == 5


@pytest.mark.parametrize("sent", ["nothing", "half a head", "half a body", "a request", "requests, unread"])
def test_a_connection_that_waits_for_its_client_gives_its_place_to_the_next(
    sent: str, caplog: pytest.LogCaptureFixture
) -> None:
    with serve_in_thread(max_connections=20) as server:
        client = server.client()
        long = begin(client, "x" * 45_000, *["y" * 45_000] * 30)
        pieces = {
            "nothing": b"",
            "half a head": head(server, "GET /healthz")[:-2],
            "half a body": posting(server) + BODY[:1],
            "a request": head(server, "GET /healthz"),
            "requests, unread": head(server, f"GET /api/sessions/{long}") * 12,
        }
        follow = followed(server)
        with wires(server, 1, follow) as (following,), wires(server, 25, pieces[sent]):
            with server.client() as other:
                assert other.get("/healthz").status_code == 200
                assert begin(other, "x")
            assert b" 200 " in following.head(), "who is being answered is not cut off"
    assert not [record for record in caplog.records if record.name == "reasonry.http"]


def test_a_connection_is_refused_where_all_are_being_answered() -> None:
    with serve_in_thread(max_connections=3) as server:
        follow = followed(server)
        with wires(server, 3, follow) as following:
            assert all(b" 200 " in wire.head() for wire in following)
            with wires(server, 1, b"") as (refused,):
                status, document = refused.answer()
                assert (status, document["error"]["code"]) == (503, "overloaded")


def test_who_has_no_token_takes_no_place_and_no_request_of_a_principal() -> None:
    tokens = {"": "op-token-55ccEE77==", **TOKENS}
    with serve_in_thread(tokens=tokens, requests_per_minute=12, max_in_flight=1) as server:
        nobody = server.client()
        assert [nobody.get("/healthz").status_code for _ in range(9)] == [200] * 9
        assert server.client(tokens[""]).get("/api/models").status_code == 200


def test_a_body_that_was_cut_short_is_no_fault_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "reasonry")
    with serve_in_thread() as server:
        client = server.client()
        for path in ("/api/sessions", "/api/runs", "/v1/chat/completions", "/mcp", "/"):
            sent = posting(server).replace(b"/api/sessions", path.encode()) + BODY[:-1]
            with wires(server, 3, sent):
                pass
        cut = r'^reasonry_requests_total\{method="POST",route="none",status="0"\} 15\.0$'
        assert eventually(lambda: re.search(cut, client.get("/metrics").text, re.MULTILINE))
        assert client.get("/api/sessions").json()["sessions"] == []
    assert not [record for record in caplog.records if record.name == "reasonry.http"]


def test_a41_rates_are_of_each_alone_and_say_when_to_come_again() -> None:
    now = 0.0
    rate = RequestRate(60, clock=lambda: now)
    for _ in range(5):
        rate.count("ana")
    with pytest.raises(Exception, match="too many requests") as refused:
        rate.count("ana")
    assert 0 < refused.value.retry_after_s <= 1  # type: ignore[attr-defined]
    rate.count("ben")
    now = 1.0
    rate.count("ana")


def test_a41_too_many_requests_are_refused_at_once_and_others_are_served() -> None:
    with serve_in_thread(tokens=TOKENS, requests_per_minute=60) as server:
        ana, ben = server.client(TOKENS["ana"]), server.client(TOKENS["ben"])
        answers = [ana.get("/api/models") for _ in range(8)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused
        assert refused[0].json()["error"]["retryable"]
        assert int(refused[0].headers["retry-after"]) >= 1
        assert ben.get("/api/models").status_code == 200


def test_a41_who_sends_slowly_or_nothing_is_cut_off() -> None:
    with serve_in_thread(request_timeout_s=0.4, idle_timeout_s=1) as server:
        start = head(server, "POST /api/sessions", "Content-Type: application/json\r\n")[:-2]
        slow = [
            [b"G", b"ET /api"],
            [b"GET /api/sessions HTTP/1.1\r\n", *[b"X-A: b\r\n"] * 3],
            [start + b"Content-Length: 100\r\n\r\n", b"{", b'"'],
            [start + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n{\r\n"],
        ]
        for pieces in slow:
            with Wire(server) as wire:
                wire.send(*pieces, pause_s=0.05)
                status, document = wire.answer()
                assert (status, document["error"]["code"]) == (408, "request_timeout")
        with Wire(server) as silent:
            assert silent.answer() == (0, None)


def test_a41_a_client_that_reads_nothing_is_cut_off_and_holds_no_memory() -> None:
    with serve_in_thread(send_timeout_s=0.3) as server:
        client = server.client()
        session_id = begin(client, "x" * 45_000, *["y" * 45_000] * 30)
        request = head(server, f"GET /api/sessions/{session_id}")
        with Wire(server) as wire:
            wire.send(*[request] * 12)
            assert eventually(lambda: in_flight(client) == 2), "it is stuck"
            assert eventually(lambda: in_flight(client) == 1), "only this question is under way"
            assert len(wire.rest()) < 12 * 30 * 45_000


def test_a41_a_connection_that_is_ended_is_not_kept_by_who_reads_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect = BoundedProtocol.connection_made

    def connect_wide(self: BoundedProtocol, transport: Any) -> None:
        transport.set_write_buffer_limits(high=1 << 30)
        connect(self, transport)

    # However much is unread, it is not so much that the server stops writing.
    monkeypatch.setattr(BoundedProtocol, "connection_made", connect_wide)
    with serve_in_thread(send_timeout_s=0.3, max_connections=2) as server:
        client = server.client()
        session_id = begin(client, "x" * 45_000, *["y" * 45_000] * 30)
        line = f"GET /api/sessions/{session_id}"
        with Wire(server) as wire:
            wire.send(*[head(server, line)] * 12, head(server, line, "Connection: close\r\n"))
            assert eventually(lambda: in_flight(client) == 1), "all are answered"
            assert eventually(lambda: server.client().get("/healthz").status_code == 200), "its place is free"
