"""Runs over HTTP: begun, followed, looked at, paused, limited, forked; whatever comes in, and whoever asks."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from reasonry.engine.engine import Engine
from reasonry.records import WholeRun
from reasonry.stores import open_store

from ...engine.playing import LOOP
from ...servers.model_server import ModelServer
from .serving import Serving, eventually, script_model, serve_in_thread

GAME = {"problem": "Use 4, 9, 10 and 13 to make 24", "strategy": "tree_of_thoughts"}
SUM = {"problem": "What is 17 + 25?", "strategy": "chain_of_thought", "mode": "coached"}
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


# -- begun and followed


def test_a_misspelled_member_is_refused_with_the_nearest_name(serving: Serving) -> None:
    error = serving.client().post("/api/runs", json={"problm": "x"}).json()["error"]
    assert (error["code"], error["field"]) == ("invalid_request", "problm")
    assert error["message"] == "there is no member 'problm'. Did you mean problem?"


def test_a_server_of_one_machine_drives_its_jobs_itself(serving: Serving) -> None:
    client = serving.client()
    assert eventually(lambda: client.get("/api/queue").json() == {"depth": 0, "oldest_s": 0.0, "workers": 1})


def test_a_run_is_followed_from_any_event_on_without_loss_or_repetition(serving: Serving) -> None:
    client = serving.client()
    run_id = started(client)["run_id"]
    # A follower who comes before the run is taken up is told `idle`, which the journal does not keep.
    whole = [event for event in events(client, run_id) if event[1] != "idle"]
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
        assert eventually(lambda: open_streams() == "1.0")
    assert eventually(lambda: open_streams() == "0.0")


def test_the_same_request_with_the_same_key_begins_one_run(serving: Serving) -> None:
    client = serving.client()
    for body in (GAME, SUM):
        headers = {"Idempotency-Key": f"k-{body['strategy']}"}
        first, again = [client.post("/api/runs", json=body, headers=headers) for _ in range(2)]
        assert (first.status_code, again.status_code) == (201, 200)
        assert first.json()["run_id"] == again.json()["run_id"]
        another = {**body, "problem": "Use 1, 2 and 3 to make 6"}
        other = client.post("/api/runs", json=another, headers=headers)
        assert (other.status_code, other.json()["error"]["code"]) == (409, "idempotency_conflict")
        for fork in ({"at": 0, "options": {}}, {"at": 0, "mode": "coached"}):
            address = f"/api/runs/{first.json()['run_id']}/fork"
            headers = {"Idempotency-Key": f"{body}{fork}"}
            once, twice = [client.post(address, json=fork, headers=headers) for _ in range(2)]
            assert (once.status_code, twice.status_code) == (201, 200), once.text
            assert once.json()["run_id"] == twice.json()["run_id"] != first.json()["run_id"]


@pytest.mark.anyio
async def test_the_key_of_a_request_is_kept_as_a_digest(folder: Path) -> None:
    path, secret = folder / "runs.db", "sk-live-0123456789abcdef"
    with serve_in_thread(str(path)) as server:
        begun = server.client().post("/api/runs", json=SUM, headers={"Idempotency-Key": secret})
        assert begun.status_code == 201
    store = open_store(str(path))
    ((_, whole),) = await store.read_whole("run")
    assert isinstance(whole, WholeRun)
    assert whole.request is not None
    assert secret not in f"{whole.request}"
    await store.close()


def test_a_stream_that_the_end_of_the_server_closes_says_so() -> None:
    with (
        ModelServer(latency_ms=3_000) as model,
        serve_in_thread(environ={"REASONRY_MODEL": model.model}) as server,
    ):
        client = server.client()
        run_ids = [started(client, **more)["run_id"] for more in (SUM, {"problem": "Why?"})]
        pool = ThreadPoolExecutor()
        following = [pool.submit(lambda run_id=run_id: [*events(client, run_id)]) for run_id in run_ids]
        assert eventually(lambda: "reasonry_streams_open 2.0" in client.get("/metrics").text)
        server.stop()
        assert [each.result(5)[-1] for each in following] == [(None, "draining", {})] * 2


# -- looked at


def test_a_page_document_is_sent_once_and_says_where_its_events_go_on(serving: Serving) -> None:
    client = serving.client()
    run = ended(client)
    address = f"/api/runs/{run['run_id']}/page"
    whole = client.get(address)
    assert whole.json()["answer"] == run["answer"]
    assert whole.json()["position"] == run["position"] > 0
    with pytest.MonkeyPatch.context() as patched:
        # Nothing is read but the end of the journal.
        patched.delattr(Engine, "view")
        unchanged = client.get(address, headers={"If-None-Match": whole.headers["etag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert unchanged.headers["etag"] == whole.headers["etag"]
    assert client.get(address, headers={"If-None-Match": '"1-ab"'}).status_code == 200
    coached = client.post("/api/runs", json=SUM).json()
    address = f"/api/runs/{coached['run_id']}/page"
    before = client.get(address)
    answer = {coached["questions"][0]["id"]: "42"}
    client.post(f"/api/runs/{coached['run_id']}/answers", json={"answers": answer})
    after = client.get(address, headers={"If-None-Match": before.headers["etag"]})
    assert after.status_code == 200
    assert before.json()["position"] == coached["position"] < after.json()["position"]


# -- commands


def test_a_run_stands_still_while_paused_and_heeds_limits_that_are_set_while_it_works() -> None:
    with (
        ModelServer(latency_ms=5) as model,
        serve_in_thread(environ={"REASONRY_MODELS": f"m={model.model}"}) as server,
    ):
        server.app.register(LOOP)
        client = server.client()
        body = {"problem": "count", "strategy": "loop", "model": "m", "options": {"steps": 5_000}}
        run = started(client, **body, budget={"calls": 4_000, "seconds": 100})
        address = f"/api/runs/{run['run_id']}"

        def calls() -> int:
            return client.get(address).json()["usage"]["calls"]

        assert eventually(lambda: calls() > 3)
        assert client.post(f"{address}/pause").json()["paused"] is True
        assert client.post(f"{address}/pause").status_code == 409
        still = calls()
        time.sleep(0.1)
        assert calls() <= still + 1
        paused = client.get(f"{address}/page").json()
        assert (paused["paused"], paused["status"]) == (True, "active")
        assert client.get("/api/runs").json()["runs"][0]["paused"] is True
        assert client.post(f"{address}/resume").json()["paused"] is False
        assert eventually(lambda: calls() > still + 3)
        changed = client.patch(f"{address}/budget", json={"calls": 4_500, "seconds": None, "usd": None})
        assert changed.json()["budget"] == {"calls": 4_500}
        client.patch(f"{address}/budget", json={"calls": 1})
        *_, last = events(client, run["run_id"])
        assert last[2]["result"]["termination"]["reason"] == "max_calls"
        assert client.patch(f"{address}/budget", json={"calls": 9}).status_code == 409
        for wrong in ({"calls": 0}, {"usd": "x"}, {"colour": 1}, {"calls": True}, []):
            assert client.patch(f"{address}/budget", json=wrong).status_code == 400
        kinds = [kind for _, kind, _ in events(client, run["run_id"])]
        assert {"paused", "limits", "stopped", "ended"} <= set(kinds)


# -- forked


def test_a_fork_from_a_question_takes_over_for_nothing_what_came_before_it(serving: Serving) -> None:
    client = serving.client()
    run = ended(client, options={"branching_factor": 2})
    page = client.get(f"/api/runs/{run['run_id']}/page").json()
    question = next(each for each in page["questions"] if each["node"] != page["nodes"][0]["id"])
    fork = client.post(
        f"/api/runs/{run['run_id']}/fork", json={"at": question["id"], "options": {"branching_factor": 3}}
    )
    assert fork.status_code == 201, fork.text
    run_id = fork.json()["run_id"]
    list(events(client, run_id))
    drawn, document = client.get(f"/api/runs/{run_id}/page").json(), client.get(f"/api/runs/{run_id}").json()
    reused = [entry for entry in (*drawn["questions"], *drawn["calls"]) if entry["reused"]]
    assert len(reused) == document["forked_at"]
    assert drawn["forked_from"] == document["forked_from"] == run["run_id"]
    assert drawn["reused"] == document["reused"]
    costs = [entry["cost"]["calls"] for entry in drawn["questions"] if entry["reused"]]
    assert (set(costs), drawn["reused"]["calls"]) == ({0}, len(costs))
    assert document["usage"]["calls"] == sum(node["cost"]["calls"] for node in drawn["nodes"])
    assert document["options"]["branching_factor"] == 3
    assert client.get(f"/api/runs/{run_id}/replay").json()["replay"]["identical"] is True


def test_a_fork_may_ask_a_question_in_other_words_of_another_model(tmp_path: Path) -> None:
    first = script_model(tmp_path / "a.jsonl", *[("sequential_reasoning", "<answer>41</answer>")] * 3)
    other = script_model(tmp_path / "b.jsonl", *[("sequential_reasoning", "<answer>42</answer>")] * 3)
    listed = {"REASONRY_MODEL": first, "REASONRY_MODELS": f"first={first},other={other}"}
    with serve_in_thread(environ=listed) as server:
        client = server.client()
        problem = {"problem": SUM["problem"], "strategy": "chain_of_thought", "options": {"decompose": False}}
        run = ended(client, **problem, model="first")
        page = client.get(f"/api/runs/{run['run_id']}/page").json()
        body = {"at": page["questions"][-1]["id"], "prompt": "How much is 17 and 25?", "model": "other"}
        fork = client.post(f"/api/runs/{run['run_id']}/fork", json=body).json()
        *_, last = events(client, fork["run_id"])
        assert (run["answer"], last[2]["result"]["answer"]) == ("41", "42")
        page = client.get(f"/api/runs/{fork['run_id']}/page").json()
        *_, asked = page["questions"]
        assert (asked["id"], asked["reworded"]) == (body["at"], True)
        assert [page["texts"][place] for place in asked["prompt"]] == [body["prompt"]]
        parted = client.get("/api/runs/diff", params={"a": run["run_id"], "b": fork["run_id"]}).json()
        assert parted["parting"]["what"] == "question"
        assert client.get(f"/api/runs/{fork['run_id']}/replay").json()["replay"]["identical"] is True


# -- whose it is


def test_a_run_of_the_model_that_a_key_offers_is_forked_without_a_list(tmp_path: Path) -> None:
    with ModelServer() as model:
        environ = {"REASONRY_MODEL": "", "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{model.url}/v1"}
        with serve_in_thread(str(tmp_path / "store.db"), environ) as serving:
            client = serving.client()
            run = ended(client, problem="What is 17 + 25?", strategy="chain_of_thought")
            assert run["model"].startswith("openai:")
            reply = client.post(f"/api/runs/{run['run_id']}/fork", json={"at": 0})
    assert reply.status_code == 201, reply.text
