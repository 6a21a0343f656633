"""One store hands whole runs and sessions to another, which keeps what it has."""

from typing import Any, Literal, get_args, get_origin

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from reasonry.errors import ConflictError
from reasonry.records import (
    KEY_LIFE_MS,
    Line,
    RequestKey,
    RunRow,
    SessionRow,
    Store,
    Sweep,
    Tally,
    ThoughtRow,
    Use,
    Whole,
    WholeKind,
    WholeRun,
    WholeSession,
)
from reasonry.stores.sqlite import MemoryStore

from .samples import line, run_row, session_row, texts, thoughts

pytestmark = pytest.mark.anyio

KINDS: tuple[WholeKind, ...] = ("run", "session")


async def wholes(store: Store, kind: WholeKind, limit: int = 20) -> list[Any]:
    found, after = list[Any](), 0
    while page := await store.read_whole(kind, after, limit):
        assert len(page) <= limit
        found += [whole for _, whole in page]
        after = page[-1][0]
    return found


def a_run(run_id: str = "r", count: int = 2, **fields: Any) -> WholeRun:
    return WholeRun(run_row(run_id, **fields), tuple(line(seq) for seq in range(1, count + 1)))


def a_session(session_id: str = "s", count: int = 2, **fields: Any) -> WholeSession:
    row = session_row(session_id, thoughts=count, **fields)
    return WholeSession(row, tuple(thoughts(*(f"thought {number}" for number in range(1, count + 1)))))


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    return st.one_of(map(values_of, get_args(kind))) if get_args(kind) else VALUES[kind]


def built(form: type[Any], **known: Any) -> st.SearchStrategy[Any]:
    """Return records with any values in the fields that are not known."""
    return st.builds(form, **{field.name: values_of(field.type) for field in fields(form)} | known)


def numbered(records: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(records, max_size=4).map(
        lambda found: tuple(replace(one, seq=seq) for seq, one in enumerate(found, start=1))
    )


VALUES = {
    str: st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    int: st.integers(0, 2**53),
    float: st.floats(0, 1e9),
    bool: st.booleans(),
    bytes: st.binary(max_size=40),
    type(None): st.none(),
}
KEYS = built(RequestKey, key=st.text("abc", min_size=1, max_size=9), at_ms=st.integers(0, KEY_LIFE_MS))
RUNS = st.builds(WholeRun, built(RunRow), numbered(built(Line)), st.none() | KEYS)
SESSIONS = st.builds(
    WholeSession,
    built(SessionRow),
    numbered(built(ThoughtRow, number=st.integers(-(2**40), 2**40))),
)


def unique(found: list[Any]) -> list[Any]:
    """Leave out what has the id of an earlier one, and keys that an owner has used."""
    ids, keys, kept = set[str](), set[tuple[str, str]](), list[Any]()
    for whole in found:
        name = whole.row.run_id if isinstance(whole, WholeRun) else whole.row.session_id
        request = whole.request if isinstance(whole, WholeRun) else None
        used = {(whole.row.owner, request.key)} if request is not None else set()
        if name not in ids and not used & keys:
            kept.append(whole)
        ids.add(name)
        keys |= used
    return kept


@settings(
    max_examples=10,
    phases=(Phase.generate,),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(runs=st.lists(RUNS, max_size=5).map(unique), sessions=st.lists(SESSIONS, max_size=5).map(unique))
async def test_whatever_is_handed_on_is_kept_in_every_field_and_in_order(
    store: Store, runs: list[WholeRun], sessions: list[WholeSession]
) -> None:
    source = MemoryStore()
    assert await source.write_whole([*runs, *sessions]) == ["new"] * (len(runs) + len(sessions))
    for kind, all_of_them in (("run", runs), ("session", sessions)):
        read = await wholes(source, kind, 2)
        assert read == all_of_them
        assert await store.write_whole(read) == ["new"] * len(read)
        assert await wholes(store, kind, 3) == read
        assert await store.write_whole(read) == ["same"] * len(read)
    for run in runs:
        await store.delete_run(run.row.run_id)
    for session in sessions:
        await store.delete_session(session.row.session_id)


OTHERS: list[Whole] = [
    a_run(count=1),
    a_run(problem="other"),
    a_run(count=3, session_id="other"),
    a_run(count=3, owner="another"),
    replace(a_run(count=3, updated_at_ms=9_000), lines=(line(1), line(2, b"other"), line(3))),
    a_session(count=1, used_at_ms=9_000),
    a_session(purpose="other"),
    a_session(count=3, run_id="other"),
    a_session(count=3, owner="another"),
    WholeSession(session_row("s", thoughts=3, used_at_ms=9_000), tuple(thoughts("x", "y", "z"))),
]
"""What differs from `a_run()` and `a_session()` in a way that is not a later state of them."""


class TestWhatIsThere:
    async def test_an_earlier_state_of_a_run_is_continued(self, store: Store) -> None:
        await store.write_whole([a_run("q"), a_run("r", 2)])
        later = a_run("r", 4, status="done", answer="24", updated_at_ms=2_000)
        assert await store.write_whole([later]) == ["continued"]
        assert await wholes(store, "run") == [a_run("q"), later]
        assert await store.tail("r") == (None, list(later.lines))
        stopped = replace(later, row=replace(later.row, status="cancelled", updated_at_ms=2_001))
        assert await store.write_whole([stopped]) == ["continued"]
        assert (await store.run("r")).status == "cancelled"

    async def test_an_earlier_state_of_a_session_is_continued(self, store: Store) -> None:
        await store.write_whole([a_session("s", 1), a_session("t")])
        later = a_session("s", 3, used_at_ms=2_000, purpose="why")
        assert await store.write_whole([later]) == ["continued"]
        assert await wholes(store, "session") == [later, a_session("t")]
        assert [row.session_id for row in await store.sessions()] == ["s", "t"]
        assert [name for _, name, _ in await store.search_thoughts("thought 3")] == ["s"]

    async def test_what_differs_is_kept_and_the_rest_is_written(self, store: Store) -> None:
        await store.write_whole([a_run(), a_session()])
        for number, other in enumerate(OTHERS):
            written = await store.write_whole([a_run(f"a{number}"), other, a_session(f"b{number}")])
            assert written == ["new", "differs", "new"]
        assert (await wholes(store, "run"))[:2] == [a_run(), a_run("a0")]
        assert (await wholes(store, "session"))[:2] == [a_session(), a_session("b0")]

    async def test_archiving_and_pinning_are_each_stores_own(self, store: Store) -> None:
        await store.write_whole([a_session(pinned=True)])
        assert await store.write_whole([a_session(status="archived")]) == ["same"]
        assert (await store.session("s")).pinned

    async def test_what_was_copied_is_used_like_what_was_begun_here(self, store: Store) -> None:
        key = RequestKey("key", b"digest", 1_000)
        session = WholeSession(session_row("session-of-r", run_id="r", thoughts=2), tuple(thoughts("one")))
        await store.write_whole([replace(a_run(), request=key), session, a_session(used_at_ms=500)])
        assert await store.create_run(run_row("q"), [line(1)], None, key) == "r"
        with pytest.raises(ConflictError):
            await store.create_run(run_row("q"), [line(1)], None, replace(key, digest=b"other"))
        await store.append("r", [line(3)], None, Use(2, 2_000, tuple(thoughts("one", "two"))))
        assert await texts(store, "session-of-r") == ["one", "two"]
        assert [row.run_id for row in await store.runs(query="TWO")] == ["r"]
        await store.sweep_sessions(Sweep(10_000_000, 1_000, 1_000, delete=False))
        assert {row.status for row in await store.sessions()} == {"archived"}

    async def test_a_key_that_is_used_already_stays_with_its_run(self, store: Store) -> None:
        key = RequestKey("key", b"digest", 1_000)
        await store.create_run(run_row("own"), [line(1)], None, key)
        await store.write_whole([replace(a_run(), request=replace(key, digest=b"other"))])
        assert await store.create_run(run_row("again"), [line(1)], None, key) == "own"


async def test_what_is_kept_is_counted_and_emptied_space_is_given_back(store: Store) -> None:
    large = "x" * 100_000
    await store.write_whole(
        [a_run("a", 3), a_run("b", owner="we"), a_run("c", status="done"), a_run("d"), a_session("s", 4)]
    )
    await store.write_whole(
        [
            WholeSession(session_row(f"large {number}", thoughts=1), tuple(thoughts(large)))
            for number in range(9)
        ]
    )
    stats = await store.stats()
    assert stats.tallies == (
        Tally("run", "", "active", 2),
        Tally("run", "", "done", 1),
        Tally("run", "we", "active", 1),
        Tally("session", "", "active", 10),
    )
    # What is not quite a number would be written as text in JSON.
    assert msgspec.to_builtins(stats)["lines"] == 9
    assert msgspec.to_builtins(stats)["thoughts"] == 13
    for number in range(9):
        await store.delete_session(f"large {number}")
    await store.whole.vacuum()
    after = await store.stats()
    if stats.free_bytes is not None:
        assert after.bytes <= max(0, stats.bytes - 900_000)
        assert after.free_bytes == 0
    assert (after.lines, after.thoughts) == (9, 4)
