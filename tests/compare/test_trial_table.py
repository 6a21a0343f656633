"""The table of a comparison is in the store while it fills: the plan first, then each trial, once."""

import asyncio

import pytest

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.compare.comparison import Comparison
from reasonry.compare.problem_set import open_dataset
from reasonry.compare.trial_table import read_comparison
from reasonry.errors import NotFoundError

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


async def test_another_session_is_no_comparison() -> None:
    async with App("memory") as app:
        await app.sessions().think(
            {"thought": "a", "thought_number": 1, "total_thoughts": 1, "next_thought_needed": False}
        )
        (session,) = await app.store.sessions()
        for id in (session.session_id, "comparison-nix"):
            with pytest.raises(NotFoundError):
                await read_comparison(app, id)
