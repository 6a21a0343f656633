"""Runs over HTTP: begun, followed, looked at, steered, forked; whatever comes in, and whoever asks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2

from .serving import Serving

GAME = {"problem": "Use 4, 9, 10 and 13 to make 24", "strategy": "tree_of_thoughts"}
SUM = {"problem": "What is 17 + 25?", "strategy": "chain_of_thought", "mode": "coached"}
UNKNOWN = "01a00000-0000-7000-8000-000000000000"
Document = dict[str, Any]


def started(client: httpx2.Client, **more: Any) -> Document:
    reply = client.post("/api/runs", json={**GAME, **more})
    assert reply.status_code == 201, reply.text
    assert reply.headers["location"] == f"/api/runs/{reply.json()['run_id']}"
    return reply.json()


def events(client: httpx2.Client, run_id: str, **asked: Any) -> Iterator[tuple[int | None, str, Document]]:
    """Yield the events of a run as its stream has them, until it closes."""
    with client.stream("GET", f"/api/runs/{run_id}/events", **asked) as stream:
        assert stream.status_code == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        members: dict[str, str] = {}
        for line in stream.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                members[name] = value
            elif "event" in members:
                place = members.get("id")
                yield place and int(place), members["event"], json.loads(members["data"])  # pyright: ignore
                members = {}


def ended(client: httpx2.Client, **more: Any) -> Document:
    run_id = started(client, **more)["run_id"]
    *_, last = events(client, run_id)
    assert last[1] == "ended"
    return client.get(f"/api/runs/{run_id}").json()


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


# -- begun and followed


def test_a_run_is_followed_from_any_event_on_without_loss_or_repetition(serving: Serving) -> None:
    client = serving.client()
    run_id = started(client)["run_id"]
    whole = list(events(client, run_id))
    assert [place for place, *_ in whole] == list(range(1, len(whole) + 1))
    assert whole[-1][2]["result"]["answer"]
    for after in range(len(whole)):
        header = {"headers": {"Last-Event-ID": str(after)}} if after % 2 else {"params": {"after": after}}
        assert list(events(client, run_id, **header)) == whole[after:]
    over = client.get(f"/api/runs/{run_id}/events", headers={"Last-Event-ID": str(len(whole))})
    assert (over.status_code, over.content) == (204, b"")
    for wrong in (
        {"params": {"after": len(whole) + 1}},
        {"headers": {"Last-Event-ID": "x"}},
        {"params": {"after": -1}},
    ):
        assert client.get(f"/api/runs/{run_id}/events", **wrong).status_code == 400


def test_who_hangs_up_leaves_no_reader_and_no_stream_behind(serving: Serving) -> None:
    client = serving.client()
    run_id = client.post("/api/runs", json=SUM).json()["run_id"]

    def open_streams() -> str:
        return client.get("/metrics").text.rpartition("reasonry_streams_open ")[2].split()[0]

    with serving.client().stream("GET", f"/api/runs/{run_id}/events") as stream:
        lines = stream.iter_lines()
        assert next(lines)
        wait_until(lambda: open_streams() == "1.0")
    wait_until(lambda: open_streams() == "0.0")


def test_the_same_request_with_the_same_key_begins_one_run(serving: Serving) -> None:
    client = serving.client()
    for body in (SUM,):
        headers = {"Idempotency-Key": f"k-{body['strategy']}"}
        first, again = [client.post("/api/runs", json=body, headers=headers) for _ in range(2)]
        assert (first.status_code, again.status_code) == (201, 200)
        assert first.json()["run_id"] == again.json()["run_id"]
        other = client.post("/api/runs", json={**body, "problem": "another"}, headers=headers)
        assert (other.status_code, other.json()["error"]["code"]) == (409, "idempotency_conflict")
