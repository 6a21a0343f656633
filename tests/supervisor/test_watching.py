"""Whoever follows a run is told each line of its journal exactly once, from wherever they begin."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from unittest.mock import Mock

import pytest

from reasonry.app.app import App
from reasonry.core import machine
from reasonry.core.budget import Budget
from reasonry.core.events import Usage
from reasonry.engine.policy import Performers
from reasonry.errors import NotFoundError, OverloadedError
from reasonry.supervisor import RunEvent, Supervisor

from ..engine.playing import STRATEGIES, CountingModel
from ..engine.running import accept, drive
from ..engine.test_engine import order

pytestmark = pytest.mark.anyio


def app(path: Path) -> App:
    return App(str(path / "runs.db"), environ={}, strategies=STRATEGIES)


async def read(
    supervisor: Supervisor,
    app: App,
    run_id: str,
    after: int = 0,
    *,
    text: bool = False,
    most: int | None = None,
) -> list[RunEvent]:
    events = list[RunEvent]()
    async with aclosing(supervisor.watch(app, run_id, after, text=text)) as found:
        async for event in found:
            events.append(event)
            if len(events) == most:
                break
    return events


async def test_readers_from_every_event_get_the_same_events_live_and_afterwards(folder: Path) -> None:
    async with app(folder) as here:
        supervisor = Supervisor(here)
        performers = Performers(CountingModel(latency_s=0.002, usage=Usage(usd=0.1)))
        run_id, written = await supervisor.start(here, order(Budget(calls=99), steps=4, width=3), performers)
        assert written is not None
        live = await read(supervisor, here, run_id)
        assert [event.id for event in live] == [line.seq for line in await here.store.lines(run_id)]
        assert (live[0].kind, live[-1].kind) == ("begun", "ended")
        assert live[-1].data["result"]["answer"] == (await supervisor.wait(here, run_id)).answer
        asked = [each["id"] for event in live for each in event.data.get("asked", ())]
        assert sorted(asked) == sorted({event.data["effect"] for event in live if event.kind == "answered"})
        documents = [(event.id, event.kind, event.data) for event in live]
        for event in live:
            again = await read(supervisor, here, run_id, event.id or 0)
            assert [(each.id, each.kind, each.data) for each in again] == documents[event.id :]


async def test_the_process_that_drives_a_run_folds_it_once_for_all_who_follow(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    advanced = Mock(side_effect=machine.advance)
    monkeypatch.setattr("reasonry.engine.run.advance", advanced)
    async with app(folder) as here:
        supervisor = Supervisor(here)
        performers = Performers(CountingModel(latency_s=0.002))
        run_id, _ = await supervisor.start(here, order(steps=5, width=2), performers)
        first, second = await asyncio.gather(*(read(supervisor, here, run_id) for _ in range(2)))
    answered = [event for event in first if event.kind == "answered"]
    assert len(answered) == 10 == advanced.call_count
    assert [event.data["effect"] for event in answered] == [call.args[2] for call in advanced.mock_calls]
    # Its readers share one document of each event.
    assert all(ours.data is theirs.data for ours, theirs in zip(first, second, strict=True))


async def test_a_reader_who_leaves_and_comes_back_while_it_runs_misses_nothing(folder: Path) -> None:
    async with app(folder) as here:
        supervisor = Supervisor(here)
        run_id, _ = await supervisor.start(here, order(steps=30), Performers(CountingModel(latency_s=0.002)))
        events = list[RunEvent]()
        while not events or events[-1].kind != "ended":
            events += await read(supervisor, here, run_id, events[-1].id or 0 if events else 0, most=3)
        assert [event.id for event in events] == [*range(1, 33)]


async def test_a_run_driven_elsewhere_is_followed_from_its_journal(folder: Path) -> None:
    async with app(folder) as here, app(folder) as elsewhere:
        run_id = await accept(elsewhere.engine, order(steps=6))
        following = asyncio.create_task(read(Supervisor(here), here, run_id))
        await drive(elsewhere.engine, run_id, Performers(CountingModel(latency_s=0.01)))
        events = await following
        assert [event.id for event in events if event.id] == [*range(1, 9)]


async def test_a_run_is_idle_only_while_no_process_drives_it(folder: Path) -> None:
    async with app(folder) as here, app(folder) as elsewhere:
        run_id = await accept(elsewhere.engine, order(steps=6))
        async with elsewhere.engine.open(run_id):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(read(Supervisor(here), here, run_id, 1, most=1), 0.4)
        (idle,) = await read(Supervisor(here), here, run_id, 1, most=1)
        assert (idle.kind, idle.data) == ("idle", {"paused": False, "resumable": True})


async def test_what_is_unknown_is_refused(folder: Path) -> None:
    async with app(folder) as here:
        supervisor = Supervisor(here, max_runs=1)
        with pytest.raises(NotFoundError):
            await read(supervisor, here, "0" * 32)
        run_id, _ = await supervisor.start(here, order(), Performers(CountingModel(latency_s=1)))
        with pytest.raises(OverloadedError):
            await supervisor.start(here, order(), Performers(CountingModel()))
        assert (await supervisor.cancel(here, run_id)).status == "cancelled"
