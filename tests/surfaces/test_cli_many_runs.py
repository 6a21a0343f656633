"""`runs resume`, `cancel` and `delete` of all runs that the filters of `runs list` choose."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from reasonry.app import runs
from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.core.budget import Budget
from tests.servers import Fault, ModelServer, Player

from .test_cli import Shell

PUZZLE = "Use 4, 9, 10 and 13 to make 24"


class Desk(Shell):
    def accept(self, model: str, number: int) -> list[str]:
        async def accept() -> list[str]:
            async with App(self.environ["REASONRY_STORE"], environ={}) as app:
                request = RunRequest(problem=PUZZLE, budget=Budget(), participants=Participants(model=model))
                order, _ = app.order(request)
                return [(await app.engine.accept(order)).run_id for _ in range(number)]

        return asyncio.run(accept())

    def listed(self, *filters: str) -> set[str]:
        return {row["run_id"] for row in self.json("runs", "list", *filters)["runs"]}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_runs_that_a_rate_limit_has_ended_are_put_back_in_the_queue_together(desk: Desk) -> None:
    with ModelServer(reply=Player(), faults=(Fault(kind="rate_limit", retry_after="600"),)) as server:
        ended = [
            desk.json("solve", PUZZLE, "--model", server.model, "--max-seconds", "60")["run_id"]
            for _ in range(3)
        ]
        answered = desk.json("solve", PUZZLE, "--model", "offline")["run_id"]
        assert desk.listed("--reason", "rate_limited") == {*ended}
        assert desk.listed("--reason", "cancelled") == set()
        done = desk.run("runs", "resume", "--reason=rate_limited", "--max-seconds=600", "--json")
        assert (done.returncode, json.loads(done.stdout)) == (0, {"runs": 3, "refused": {}})
        assert "no server runs on this store: `reasonry serve` drives the queue" in done.stderr
        assert desk.listed("--status", "active") == {*ended}
        again = desk.run("runs", "resume", "--model", "offline", "--since", "1h")
        assert (again.returncode, again.stdout) == (0, "put back in the queue: 3 runs\n")
        assert desk.listed("--outcome", "solved") == {answered}

    async def waiting() -> set[str]:
        async with App(desk.environ["REASONRY_STORE"], environ={}) as app:
            return {row.run_id for row in await app.store.runs(unattended=True)}

    assert asyncio.run(waiting()) == {*ended}


def test_active_runs_are_ended_together_and_those_that_have_ended_deleted(desk: Desk) -> None:
    active = desk.accept("offline", 3)
    solved = desk.json("solve", PUZZLE, "--model", "offline")["run_id"]
    assert desk.run("runs", "cancel", "--model", "nobody").stdout == "cancelled: 0 runs\n"
    assert desk.json("runs", "cancel", "--since", "1h") == {"runs": 3, "refused": {}}
    assert desk.listed("--reason", "cancelled") == {*active}
    (kept,) = desk.accept("offline", 1)
    unsaid = desk.run("runs", "delete", "--since", "1h")
    assert (unsaid.returncode, "--yes deletes without asking" in unsaid.stderr) == (2, True)
    assert desk.json("runs", "delete", "--status", "cancelled", "--yes") == {"runs": 3, "refused": {}}
    assert desk.listed() == {kept, solved}
    assert desk.json("runs", "delete", "--since", "1h", "--yes")["runs"] == 1
    assert desk.listed() == {kept}


@pytest.mark.parametrize("command", ["resume", "cancel", "delete"])
def test_without_a_run_and_a_filter_nothing_is_done(desk: Desk, command: str) -> None:
    for words, said in (
        ((), "name a run, or a filter of `runs list`"),
        (("last", "--status=failed"), "Not both."),
    ):
        refused = desk.run("runs", command, *words)
        assert (refused.returncode, said in refused.stderr) == (2, True)


def test_a_run_that_refuses_is_named_and_the_others_are_done(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = desk.accept("offline", 2)
    whole = runs.delete_run
    desk.json("runs", "cancel", "--since", "1h")

    async def delete(app: App, run_id: str) -> dict[str, Any]:
        # Somebody has resumed it meanwhile.
        if run_id == first:
            async with app.engine.open(run_id) as opened:
                await opened.reopen()
        return await whole(app, run_id)

    monkeypatch.setattr("reasonry.surfaces.cli.runs.delete_run", delete)
    done = desk.run("runs", "delete", "--since", "1h", "--yes", "--json")
    refused = {first: f"run {first} has not ended; cancel it first"}
    assert (done.returncode, json.loads(done.stdout)) == (1, {"runs": 1, "refused": refused})
    assert done.stderr.startswith(f"{first}: run {first} has not ended")
    assert desk.listed() == {first}
