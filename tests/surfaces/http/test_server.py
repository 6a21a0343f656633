"""The server as a whole: who is let in, and what errors look like."""

from __future__ import annotations

import time

from .serving import Serving


def test_a_misspelled_member_is_refused_with_the_nearest_name(serving: Serving) -> None:
    error = serving.client().post("/api/runs", json={"problm": "x"}).json()["error"]
    assert (error["code"], error["field"]) == ("invalid_request", "problm")
    assert error["message"] == "there is no member 'problm'. Did you mean problem?"


def test_a_server_of_one_machine_drives_its_jobs_itself(serving: Serving) -> None:
    client, deadline = serving.client(), time.monotonic() + 10
    while (told := client.get("/api/queue").json())["workers"] != 1:
        assert time.monotonic() < deadline
    assert told == {"depth": 0, "oldest_s": 0.0, "workers": 1}
