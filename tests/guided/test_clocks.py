"""A clock that jumps archives at most; what is deleted was unused for long, or seemed so on two separate days."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from reasonry.errors import NotFoundError
from reasonry.guided.sessions import Sessions
from reasonry.guided.settings import SessionSettings
from reasonry.records import Sweep
from reasonry.stores.memory import MemoryStore
from reasonry.stores.sqlite import SqliteStore
from reasonry.stores.steady import Uptime, uptime
from reasonry.strategies import STRATEGIES

from .desk import Desk

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
TTL, RETENTION = 30 * MINUTE, 3 * DAY

AGES = st.sampled_from(
    [1, MINUTE, 29 * MINUTE, 31 * MINUTE, 5 * HOUR, 23 * HOUR, DAY, 2 * DAY, 4 * DAY, 400 * DAY]
)


class Look(NamedTuple):
    at: int
    clock: int


@dataclass
class Known:
    """What is true of a session, whatever the store believes."""

    used: int
    used_by_clock: int
    boot: int
    pinned: bool = False


class World(RuleBasedStateMachine):
    """Time, a clock that is set to anything, a computer that goes down, and sessions of one store."""

    store: Any
    sessions: Sessions

    def __init__(self) -> None:
        super().__init__()
        self.now, self.ahead, self.boot, self.booted = 10**12, 0, 0, 10**12 - 50 * DAY
        self.known = dict[str, Known]()
        self.looks = list[Look]()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()

    def clock(self) -> int:
        return self.now + self.ahead

    def uptime(self) -> Uptime:
        return Uptime(str(self.boot), self.now - self.booted)

    def think(self, session_id: str | None, number: int) -> str:
        call = {"thought": "x", "thoughtNumber": number, "totalThoughts": 9, "nextThoughtNeeded": True}
        return self.runner.run(self.sessions.think(call | ({"sessionId": session_id} if session_id else {})))[
            "sessionId"
        ]

    def open(self) -> None:
        self.store = MemoryStore() if self.memory else SqliteStore(Path(self.folder.name) / "store.db")
        self.store.uptime = self.uptime
        limits = SessionSettings(TTL / 1000, "delete" if self.lapses else "archive", RETENTION / 1000)
        self.sessions = Sessions(self.store, STRATEGIES, limits, self.clock)
        sweep = self.store.sweep_sessions

        async def watched(one: Sweep) -> None:
            await sweep(one)
            self.looks.append(Look(self.now, one.now_ms))

        self.store.sweep_sessions = watched

    @initialize(memory=st.booleans(), lapses=st.booleans())
    def begin_world(self, memory: bool, lapses: bool) -> None:
        self.memory, self.lapses = memory, lapses
        self.open()

    def used(self, session_id: str) -> None:
        pinned = session_id in self.known and self.known[session_id].pinned
        self.known[session_id] = Known(self.now, self.clock(), self.boot, pinned)

    @rule()
    def begin(self) -> None:
        self.used(self.think(None, 1))

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def use(self, data: st.DataObject) -> None:
        session_id = data.draw(st.sampled_from(sorted(self.known)))
        age = self.now - self.known[session_id].used
        went_on = self.think(session_id, 2 if session_id in self.known else 1)
        assert went_on == session_id or (self.lapses and age > TTL and not self.known[session_id].pinned)
        self.used(went_on)

    @precondition(lambda self: self.known)
    @rule(data=st.data(), pinned=st.booleans())
    def pin(self, data: st.DataObject, pinned: bool) -> None:
        session_id = data.draw(st.sampled_from(sorted(self.known)))
        try:
            self.runner.run(self.sessions.pin({"sessionId": session_id, "pinned": pinned}))
        except NotFoundError:
            assert self.lapses
            assert self.now - self.known[session_id].used > TTL
        else:
            self.known[session_id].pinned = pinned

    @rule(age=AGES)
    def pass_time(self, age: int) -> None:
        self.now += age

    @rule(by=AGES, back=st.booleans())
    def jump(self, by: int, back: bool) -> None:
        self.ahead += -by if back else by

    @precondition(lambda self: not self.memory)
    @rule(reboot=st.booleans(), age=AGES)
    def restart(self, reboot: bool, age: int) -> None:
        self.runner.run(self.store.close())
        self.now += age
        if reboot:
            self.boot, self.booted = self.boot + 1, self.now
        self.open()

    @rule()
    def look(self) -> None:
        self.runner.run(self.sessions.list({}))
        limit = TTL if self.lapses else RETENTION
        there = self.there()
        for session_id, one in self.known.items():
            if not one.pinned and one.boot == self.boot and self.now - one.used > limit:
                assert session_id not in there

    def there(self) -> set[str]:
        return {row.session_id for row in self.runner.run(self.store.sessions(limit=10_000))}

    @invariant()
    def nothing_is_deleted_without_reason(self) -> None:
        if not self.known:
            return
        for session_id in self.known.keys() - self.there():
            one = self.known.pop(session_id)
            assert not one.pinned
            limit = TTL if self.lapses else RETENTION
            seemed_old = [
                look.at
                for look in self.looks
                if look.at >= one.used and look.clock - one.used_by_clock > limit
            ]
            assert self.now - one.used > limit or seemed_old[-1] - seemed_old[0] >= DAY

    def teardown(self) -> None:
        self.runner.run(self.store.close())
        self.runner.close()
        self.folder.cleanup()


def test_nothing_is_deleted_unless_it_is_old_or_seems_so_on_two_days() -> None:
    run_state_machine_as_test(
        World,
        settings=settings(
            max_examples=25,
            stateful_step_count=25,
            deadline=None,
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
        ),
    )


@pytest.mark.parametrize("memory", [False, True])
def test_what_a_clock_that_was_ahead_archived_ends_in_its_time_all_the_same(memory: bool) -> None:
    world = World()
    world.begin_world(memory=memory, lapses=True)
    world.begin()
    world.jump(back=False, by=5 * HOUR)
    world.look()
    world.jump(back=True, by=23 * HOUR)
    world.look()
    world.jump(back=False, by=18 * HOUR)
    world.pass_time(2 * DAY)
    world.look()
    world.teardown()


@pytest.mark.parametrize("memory", [False, True])
def test_to_unpin_what_a_clock_that_was_ahead_archived_is_no_use_of_it(memory: bool) -> None:
    world = World()
    world.begin_world(memory=memory, lapses=True)
    world.begin()
    (session_id,) = world.known
    world.jump(back=False, by=5 * HOUR)
    world.look()
    world.runner.run(world.sessions.pin({"sessionId": session_id, "pinned": False}))
    world.jump(back=True, by=400 * DAY)
    world.pass_time(2 * DAY)
    world.look()
    assert not world.there()
    world.teardown()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    store = SqliteStore(tmp_path / "store.db")
    yield Desk(store)
    await store.close()


@pytest.mark.anyio
async def test_a_clock_that_jumps_ahead_archives_and_the_second_look_a_day_later_deletes(desk: Desk) -> None:
    session_id = (await desk.think(1))["sessionId"]
    desk.clock.jump_minutes(400 * 24 * 60)
    for minutes in (0, 1, 23 * 60):
        desk.clock.pass_minutes(minutes)
        await desk.sessions.sweep(now=True)
        assert (await desk.store.session(session_id)).status == "archived"
    desk.clock.pass_minutes(60)
    await desk.sessions.sweep(now=True)
    with pytest.raises(NotFoundError):
        await desk.store.session(session_id)


@pytest.mark.anyio
async def test_a_clock_put_right_again_is_one_look_that_disagrees(desk: Desk) -> None:
    session_id = (await desk.think(1))["sessionId"]
    for _ in range(3):
        desk.clock.jump_minutes(400 * 24 * 60)
        await desk.sessions.sweep(now=True)
        desk.clock.jump_minutes(-400 * 24 * 60)
        await desk.sessions.sweep(now=True)
        desk.clock.pass_minutes(25 * 60)
    assert (await desk.think(2, sessionId=session_id))["thoughtHistoryLength"] == 2


@pytest.mark.anyio
async def test_a_clock_that_jumps_back_keeps_nothing_longer_in_one_process(desk: Desk) -> None:
    session_id = (await desk.think(1))["sessionId"]
    desk.clock.jump_minutes(-400 * 24 * 60)
    desk.clock.pass_minutes(31)
    await desk.sessions.sweep(now=True)
    assert (await desk.store.session(session_id)).status == "archived"
    desk.clock.pass_minutes(30 * 24 * 60)
    await desk.sessions.sweep(now=True)
    with pytest.raises(NotFoundError):
        await desk.store.session(session_id)


def test_the_time_the_computer_has_been_up_goes_on() -> None:
    first = uptime()
    second = uptime()
    assert first.boot == second.boot != ""
    assert 0 < first.ms <= second.ms
