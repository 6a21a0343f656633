"""Which session a thought goes to that names none: through the real server, over standard input and output."""

import os
import random
from pathlib import Path
from typing import Any

import pytest

from .raw import Raw, document, thought


def reasons(reply: dict[str, Any]) -> list[str]:
    return [notice["reason"] for notice in reply.get("notices", [])]


def texts(raw: Raw, session_id: str) -> list[str]:
    return [one["thought"] for one in raw.call("sessions", action="get", sessionId=session_id)["thoughts"]]


def test_after_a_restart_the_sessions_of_the_directory_are_named_and_go_on(tmp_path: Path) -> None:
    store, here, there = tmp_path / "store.db", tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    begun = dict[str, str]()
    for place in (there, here):
        with _Placed(store, place) as raw:
            begun[place.name] = raw.think(1, 7, thought=f"What is the matter {place.name}?")["sessionId"]
            raw.think(2, 7)
            ended = raw.think(1, 1, nextThoughtNeeded=False)["sessionId"]
    with _Placed(store, here) as raw:
        reply = raw.think(3, 7)
        (notice,) = reply["notices"]
        assert notice["reason"] == "unfinished_sessions"
        assert f'"{begun["here"]}" (thought 2 of 7, 20' in notice["message"]
        assert "What is the matter here?" in notice["message"]
        assert begun["there"] not in notice["message"]
        assert ended not in notice["message"]
        assert raw.think(3, 7, sessionId=begun["here"])["thoughtHistoryLength"] == 3
        for number in (4, 5):
            reply = raw.think(number, 7)
            assert (reply["sessionId"], reasons(reply)) == (begun["here"], [])
    with _Placed(store, here) as raw:
        stray = raw.think(9, 9)
        assert raw.call("sessions", action="resume", sessionId=begun["here"])["session_id"] == begun["here"]
    with _Placed(store, here) as raw:
        (notice,) = raw.think(6, 7)["notices"]
        assert notice["message"].index(begun["here"]) < notice["message"].index(stray["sessionId"])
    with _Placed(store, here) as raw:
        refused = raw.think(5, 7, stage="observation_reception")["error"]
        assert begun["here"] in refused["message"]
        assert raw.think(1, 7).get("notices", []) == []
    with _Placed(store, there) as raw:
        resumed = raw.call("sessions", action="resume")
        assert resumed["session_id"] == begun["there"]
        assert raw.think(3, 7)["sessionId"] == begun["there"]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_two_agents_that_send_without_waiting_lose_nothing(kind: str, tmp_path: Path) -> None:
    chance = random.Random(7)
    with Raw("memory" if kind == "memory" else tmp_path / "store.db") as raw:
        raw.think(1, thought="a1")
        raw.think(2, thought="a2")
        raw.think(1, thought="b1")
        left = {"a": list(range(3, 20)), "b": list(range(2, 20))}
        calls = list[dict[str, Any]]()
        while names := [name for name, numbers in left.items() if numbers]:
            name = chance.choice(names)
            number = left[name].pop(0)
            calls.append(thought(number, 20, thought=f"{name}{number}"))
        replies = _all_at_once(raw, calls)
        sessions = raw.call("sessions", action="list")["sessions"]
        kept = [one for session in sessions for one in texts(raw, session["session_id"])]
        assert sorted(kept) == sorted([f"a{n}" for n in range(1, 20)] + [f"b{n}" for n in range(1, 20)])
        assert len(sessions) == 2
        assert not any("error" in reply for reply in replies)


class _Placed(Raw):
    """A server that was started in a directory."""

    def __init__(self, store: Path, directory: Path) -> None:
        before = os.getcwd()
        os.chdir(directory)
        try:
            super().__init__(store)
        finally:
            os.chdir(before)


def _all_at_once(raw: Raw, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Send all calls before the first answer is read; return the replies in the order of the calls."""
    sent = [raw.send("tools/call", {"name": "sequentialthinking", "arguments": call}) for call in calls]
    heard = {answer["id"]: document(answer) for answer in (raw.hear() for _ in sent)}
    return [heard[id] for id in sent]
