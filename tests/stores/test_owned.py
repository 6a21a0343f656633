"""In the store of an owner, the id of another's run or session is like one that nothing has."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from reasonry.errors import ReasonryError
from reasonry.records import KEY_LIFE_MS, Line, RequestKey, SessionChange, Store, UsageTotal
from reasonry.stores import open_store

from .samples import line, refused, run_row, session_row, thoughts

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, path: Path) -> Store:
    return open_store("memory" if request.param == "memory" else str(path))


async def entered(manager: AbstractAsyncContextManager[None]) -> None:
    async with manager:
        pass


CALLS: dict[str, Callable[[Store, str], Awaitable[Any]]] = {
    "run": lambda store, name: store.run(name),
    "lines": lambda store, name: store.lines(name),
    "tail": lambda store, name: store.tail(name),
    "append": lambda store, name: store.append(name, [line(2)], run_row(name)),
    "keep": lambda store, name: store.save_checkpoint(name, Line(1, b"{}", bytes(16))),
    "runs": lambda store, name: store.runs(before=name),
    "run_ids": lambda store, name: store.run_ids(name),
    "delete_run": lambda store, name: store.delete_run(name),
    "drive": lambda store, name: entered(store.drive(name)),
    "session": lambda store, name: store.session(name),
    "sessions": lambda store, name: store.sessions(before=name),
    "session_ids": lambda store, name: store.session_ids(name),
    "thoughts": lambda store, name: store.thoughts(name),
    "search_thoughts": lambda store, name: store.search_thoughts("e", session_id=name),
    "delete_session": lambda store, name: store.delete_session(name),
    "change, looked at": lambda store, name: store.change(
        name, lambda view: SessionChange(value=(view.row, view.latest(3), view.with_number(1)))
    ),
    "change, deleted": lambda store, name: store.change(name, lambda _: SessionChange(delete=True)),
    "change, archived": lambda store, name: store.change(name, lambda _: SessionChange(archive_as="old")),
    "change, a thought": lambda store, name: store.change(
        name, lambda _: SessionChange(thought=thoughts("x")[0])
    ),
    "change, instead": lambda store, name: store.change(
        "own", lambda _: SessionChange(row=session_row(name), instead=name, thought=thoughts("x")[0])
    ),
    "change, seen from another": lambda store, name: store.change(
        "own", lambda view: SessionChange(value=view.other(name).row)
    ),
}


@pytest.mark.parametrize("call", CALLS)
async def test_the_id_of_another_is_like_one_that_nothing_has(store: Store, call: str) -> None:
    theirs, ours = store.of_owner("they"), store.of_owner("we")
    await theirs.create_run(run_row("r"), [line(1)], session_row("written", run_id="r"))
    await theirs.import_session(session_row("s"), thoughts("secret"))

    async def everything() -> list[Any]:
        return [
            await read for read in (store.run("r"), store.lines("r"), store.session("s"), store.thoughts("s"))
        ]

    before = await everything()
    outcomes = list[str]()
    async with theirs.drive("r"):
        for name in ("r", "s", "written", "0"):
            try:
                outcomes.append(repr(await CALLS[call](ours, name)))
            except ReasonryError as error:
                outcomes.append(f"{error.code} {error.message.replace(repr(name), 'it')}")
    assert len(set(outcomes)) == 1
    assert await everything() == before


async def test_what_lists_searches_and_totals_have_is_the_owners(store: Store) -> None:
    for owner in ("they", "we", ""):
        own = store.of_owner(owner)
        row = run_row(f"run of {owner}", owner="someone", calls=2, samples=5, tokens=30, usd=0.5)
        await own.create_run(row, [line(1)], session_row(f"written by {owner}", run_id=row.run_id))
        await own.import_session(session_row(f"session of {owner}"), thoughts("an apple"))
    for owner in ("they", "we", ""):
        own = store.of_owner(owner)
        assert [row.run_id for row in await own.runs()] == await own.run_ids("run") == [f"run of {owner}"]
        every = ["run of they", "run of we", "run of "]
        assert [row.run_id for row in await own.rows(every)] == [f"run of {owner}"]
        assert {row.owner for row in await own.sessions()} == {owner}
        assert await own.session_ids("session") == [f"session of {owner}"]
        assert [name for _, name, _ in await own.search_thoughts("APPLE")] == [f"session of {owner}"]
        assert [row.session_id for row in await own.sessions(query="apple")] == [f"session of {owner}"]
        assert await own.usage_since(1_000) == UsageTotal("", 1, 2, 5, 30, 0.5)
        assert await own.usage_by("strategy", 0) == [UsageTotal("tree_of_thoughts", 1, 2, 5, 30, 0.5)]
    assert (await store.usage_since(0)).runs == len(await store.runs()) == 3
    assert (await store.usage_since(1_001)).runs == 0


async def test_a_request_that_is_sent_again_begins_no_second_run(store: Store) -> None:
    key = RequestKey("key", b"d" * 16, 1_000)
    ours, theirs = store.of_owner("we"), store.of_owner("they")
    assert await ours.create_run(run_row("1"), [line(1)], session_row("s1"), key) == "1"
    assert await ours.create_run(run_row("2"), [line(1)], session_row("s2"), key) == "1"
    assert (await ours.run_begun_with(key), await theirs.run_begun_with(key)) == ("1", None)
    assert await theirs.create_run(run_row("3"), [line(1)], None, key) == "3"
    assert await store.run_begun_with(key, "they") == "3"
    other = RequestKey("key", b"e" * 16, 1_000)
    for again in (ours.create_run(run_row("4"), [line(1)], None, other), ours.run_begun_with(other)):
        with refused("idempotency_conflict") as caught:
            await again
        assert caught.value.details["run_id"] == "1"
    assert [row.run_id for row in await store.runs()] == ["3", "1"]
    later = RequestKey("key", b"e" * 16, 1_001 + KEY_LIFE_MS)
    assert await ours.run_begun_with(later) is None
    assert await ours.create_run(run_row("5"), [line(1)], None, later) == "5"
    await ours.delete_run("5")
    assert await ours.create_run(run_row("6"), [line(1)], None, later) == "6"
