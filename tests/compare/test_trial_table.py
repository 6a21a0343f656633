"""The table of a comparison is in the store while it fills: the plan first, then each trial, once."""

from __future__ import annotations

import asyncio

import pytest

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.compare.comparison import Comparison
from reasonry.compare.grading import Item
from reasonry.compare.problem_set import ProblemSet, open_dataset
from reasonry.compare.trial_table import Repeat, TrialTable, read_comparison
from reasonry.errors import NotFoundError
from reasonry.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

STRATEGIES = ["tree_of_thoughts", "self_consistency"]


def compare(app: App, size: int, **more: object) -> Comparison:
    problems, offline = open_dataset(f"game24:{size}"), RunRequest(participants=Participants(model="offline"))
    return Comparison(app, problems, STRATEGIES, offline, parallel=1, **more)  # pyright: ignore


async def test_an_interrupted_comparison_shows_what_is_there_and_writes_no_trial_twice() -> None:
    async with App("memory") as app:
        heard = asyncio.Event()

        first = compare(app, 3, note=lambda text: heard.set() if text.startswith("2/6 ") else None)
        task = asyncio.create_task(first.run())
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        halfway = await read_comparison(app, first.id)
        assert (halfway["complete"], halfway["runs"]["wanted"]) == (False, 6)
        assert 2 <= len(halfway["trials"]) < 6
        assert len(halfway["items"]) == 3
        again = compare(app, 3)
        assert again.id == first.id
        report = await again.run()
        whole = await read_comparison(app, first.id)
        assert whole["trials"] == report.document()["trials"]
        assert whole["strategies"] == report.document()["strategies"]
        assert (whole["complete"], whole["running"]) == (True, [])
        assert (await app.store.session(first.id)).thoughts == 1 + 6
        await compare(app, 3).run()
        assert (await app.store.session(first.id)).thoughts == 1 + 6


async def test_a_repeat_is_judged_when_it_is_looked_at_and_compared_with_its_trial() -> None:
    async with App("memory") as app:
        comparison = compare(app, 2)
        await comparison.run()
        document = await read_comparison(app, comparison.id)
        one, other = [trial for trial in document["trials"] if trial["strategy"] == STRATEGIES[0]]
        table = TrialTable(app.store, comparison.id)
        for run_id in (one["run_id"], other["run_id"]):
            await table.add(Repeat(one["item"], STRATEGIES[0], run_id))
        same, different = (await read_comparison(app, comparison.id))["repeats"]
        assert (same["right"], same["same"], same["status"]) == (True, True, "done")
        assert (different["right"], different["same"]) == (False, False)


async def test_a_long_answer_of_a_repeat_is_judged_whole_and_a_deleted_run_is_left_out() -> None:
    async with App("memory") as app:
        long = {"stage": "*", "reply": {"reasoning": "", "answer": f"{'so ' * 100} it is 7"}}
        problems = ProblemSet("sums", [Item("3 + 4?", 7, "1")])
        asked = RunRequest(participants=Participants(model=ScriptedModel.of(long)))
        comparison = Comparison(app, problems, ["self_consistency(samples=1)"], asked, judge="numeric")
        (trial,) = (await comparison.run()).trials
        table = TrialTable(app.store, comparison.id)
        for run_id in (trial.run_id, "gone"):
            await table.add(Repeat("1", trial.strategy, run_id))
        (repeat,) = (await read_comparison(app, comparison.id))["repeats"]
        assert len(repeat["answer"]) > 300
        assert (repeat["right"], repeat["same"]) == (True, True)


async def test_another_session_is_no_comparison() -> None:
    async with App("memory") as app:
        await app.sessions().think(
            {"thought": "a", "thought_number": 1, "total_thoughts": 1, "next_thought_needed": False}
        )
        (session,) = await app.store.sessions()
        for id in (session.session_id, "comparison-nix"):
            with pytest.raises(NotFoundError):
                await read_comparison(app, id)
