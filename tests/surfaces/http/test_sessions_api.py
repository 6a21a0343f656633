"""Sessions over HTTP: thoughts taken, read, found, taken out and in, forgotten."""

from typing import Any

import httpx2

from ..contract.uses import UNKNOWN
from .serving import TOKENS, Serving


def thought(number: int, text: str = "a thought", *, more: bool = True, **others: Any) -> dict[str, Any]:
    return {
        "thought": text,
        "thought_number": number,
        "total_thoughts": max(number, 3),
        "next_thought_needed": more,
        **others,
    }


def begin(client: httpx2.Client, *texts: str) -> str:
    """Begin a session with some thoughts; return its id."""
    first, *others = texts
    answer = client.post("/api/sessions", json=thought(1, first))
    assert answer.status_code == 201, answer.text
    session_id = answer.json()["session_id"]
    assert answer.headers["location"] == f"/api/sessions/{session_id}"
    for number, text in enumerate(others, 2):
        answer = client.post(f"/api/sessions/{session_id}/thoughts", json=thought(number, text))
        assert (answer.status_code, answer.json()["session_id"]) == (201, session_id)
    return session_id


def test_the_page_of_a_session_is_sent_again_only_when_it_has_grown(serving: Serving) -> None:
    client = serving.client()
    session_id = begin(client, "one", "two")
    place = f"/api/sessions/{session_id}/page"
    page = client.get(place)
    assert page.json()["id"] == session_id
    same = {"If-None-Match": page.headers["etag"]}
    assert client.get(place, headers=same).status_code == 304
    client.post(f"/api/sessions/{session_id}/thoughts", json=thought(3))
    grown = client.get(place, headers=same)
    assert grown.status_code == 200
    assert len(grown.json()["nodes"]) == len(page.json()["nodes"]) + 1


def test_a_session_is_named_by_its_whole_id(serving: Serving) -> None:
    client = serving.client()
    session_id = begin(client, "one")
    for name in ("last", session_id[:8], UNKNOWN, "no-session", "%2e%2e", "x" * 300):
        place = f"/api/sessions/{name}"
        answers = [
            client.get(place),
            client.delete(place),
            client.get(f"{place}/page"),
            client.get(f"{place}/export"),
            client.patch(place, json={"pinned": True}),
            client.post(f"{place}/thoughts", json=thought(2)),
        ]
        assert {answer.status_code for answer in answers} <= {404, 400, 413}, [a.text for a in answers]
        assert answers[1].status_code != 200
    assert client.get(f"/api/sessions/{session_id}").status_code == 200


def test_the_id_of_a_session_is_not_the_callers_to_choose(guarded: Serving) -> None:
    begun = guarded.client(TOKENS["ana"]).post("/api/sessions", json=thought(1, session_id="mine"))
    assert begun.status_code == 400


def test_an_import_does_not_tell_whether_another_has_a_session_of_that_id(guarded: Serving) -> None:
    ana, ben = (guarded.client(TOKENS[name]) for name in ("ana", "ben"))
    session_id = begin(ana, "a secret")
    exported = ana.get(f"/api/sessions/{session_id}/export").json()
    told = list[dict[str, Any]]()
    for name in (session_id, UNKNOWN):
        answer = ben.post("/api/sessions/import", json={**exported, "session_id": name})
        assert answer.status_code == 201, answer.text
        document = answer.json()
        assert document.pop("session_id") not in (session_id, UNKNOWN)
        told.append({key: value for key, value in document.items() if not key.endswith("_at")})
    assert told[0] == told[1]
    assert len(ana.get("/api/sessions").json()["sessions"]) == 1
