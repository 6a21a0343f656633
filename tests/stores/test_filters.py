"""What a list or a search has by its filters is what a plain reading of all rows would find, in each store.

The stores answer in two ways: what few texts contain by their index, and the rest by reading.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonry.records import RunRow, SessionRow, Store, ThoughtRow
from reasonry.stores import text_search

from .samples import line, run_row, session_row, thoughts

pytestmark = pytest.mark.anyio

COUNT = 24
WORDS = ["", "h", "he", "heron", "HERON", "ß", "cran", "n a", "e\nn", "x", "\x00y", "tern", "LIMIT"]
TEXTS = ["Heron and crane", "a heron", "STRASSE", "he", "", "x\x00y"]
INSTANTS = st.none() | st.integers(0, 5)
VALUES: Mapping[str, Sequence[Any]] = {
    "status": ["active", "done"],
    "strategy": ["react", "linear"],
    "model": ["offline", "other"],
    "owner": ["", "ana", "nobody"],
    "unattended": [True, False],
    "paused": [True, False],
    "guided": [True, False],
    "query": WORDS,
    "min_usd": [0, 0.5],
}
QUESTIONS = st.lists(
    st.fixed_dictionaries(
        {"since_ms": INSTANTS, "until_ms": INSTANTS},
        optional={name: st.sampled_from(values) for name, values in VALUES.items()},
    ),
    min_size=10,
    max_size=20,
)
COLUMNS = ("status", "strategy", "model", "unattended", "paused")


class Kept(NamedTuple):
    run: RunRow
    session: SessionRow
    said: list[ThoughtRow]


def kept(number: int) -> Kept:
    bits = [bool(number >> place & 1) for place in range(5)]
    names = {name: VALUES[name][bits[place]] for place, name in enumerate(("status", "strategy", "model"))}
    at, problem, owner = 1 + number % 4, TEXTS[number % 6], ["", "ana"][number % 7 == 0]
    said = thoughts(*TEXTS[number % 5 : number % 5 + number % 3])
    run = run_row(
        f"r{number:02}",
        session_id=f"s{number:02}",
        created_at_ms=at,
        problem=problem,
        answer="tern" if number % 5 == 3 else None,
        detail="reached the limit of 2 calls" if number % 5 == 4 else "",
        usd=number / 10 if number % 2 else None,
        owner=owner,
        unattended=bits[3],
        paused=bits[4],
        **names,
    )
    session = session_row(
        run.session_id,
        strategy=run.strategy,
        owner=owner,
        used_at_ms=at,
        status="active" if run.status == "active" else "archived",
        pinned=number % 3 == 0,
        run_id=run.run_id if number % 3 else None,
        thoughts=len(said),
        purpose=problem,
    )
    return Kept(run, session, said)


KEPT = [kept(number) for number in range(COUNT)]


def has(texts: Sequence[str], query: str | None) -> bool:
    return not query or any(query.casefold() in text.casefold() for text in texts)


def is_listed(row: RunRow | SessionRow, texts: Sequence[str], which: Mapping[str, Any]) -> bool:
    since, until = which["since_ms"], which["until_ms"]
    at_ms = row.created_at_ms if isinstance(row, RunRow) else row.used_at_ms
    return (
        all(which.get(name) in (None, getattr(row, name, None)) for name in COLUMNS)
        and (since is None or at_ms >= since)
        and (until is None or at_ms < until)
        and has(texts, which.get("query"))
        and (which.get("min_usd") is None or (getattr(row, "usd", None) or -1) >= which["min_usd"])
    )


def texts_of(session: SessionRow, said: Sequence[ThoughtRow]) -> list[str]:
    return [session.purpose, *(thought.text for thought in said)]


async def check(store: Store, which: dict[str, Any]) -> None:
    owner, which = which.get("owner"), {name: value for name, value in which.items() if name != "owner"}
    store = store if owner is None else store.of_owner(owner)
    owned = [each for each in KEPT if owner in (None, each.run.owner)]
    of_runs = {name: value for name, value in which.items() if name != "guided"}
    expected = list[str]()
    for run, session, said in reversed(owned):
        texts = [
            run.problem,
            run.answer or "",
            run.detail,
            *(texts_of(session, said) if session.run_id else []),
        ]
        expected += [run.run_id] if is_listed(run, texts, of_runs) else []
    assert [row.run_id for row in await store.runs(**of_runs)] == expected
    of_sessions = {
        name: value
        for name, value in which.items()
        if name not in ("model", "unattended", "paused", "min_usd")
    }
    if of_sessions.get("status") == "done":
        of_sessions["status"] = "archived"
    found = sorted(
        (session.used_at_ms, session.session_id)
        for _, session, said in owned
        if which.get("guided") in (None, session.run_id is None)
        and is_listed(session, texts_of(session, said), of_sessions)
    )
    in_order = [name for _, name in reversed(found)]
    assert [row.session_id for row in await store.sessions(**of_sessions)] == in_order
    if expected:
        rows = await store.runs(limit=1, before=expected[0], **of_runs)
        assert [row.run_id for row in rows] == expected[1:2]
    if in_order:
        page = await store.sessions(limit=1, before=in_order[0], **of_sessions)
        assert [row.session_id for row in page] == in_order[1:2]
    query = which.get("query") or ""
    matches, after = list[tuple[str, int]](), 0
    while page := await store.search_thoughts(query, after=after, limit=2):
        matches += [(name, one.seq) for _, name, one in page if isinstance(one, ThoughtRow)]
        after = page[-1][0]
    assert matches == [
        (session.session_id, thought.seq)
        for _, session, said in owned
        for thought in said
        if has([thought.text], query)
    ]


@pytest.mark.parametrize("few", [2, 1_000])
async def test_lists_and_searches_have_what_the_filters_say(
    store: Store, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(text_search, "FEW", few)
    for run, session, said in KEPT:
        await store.create_run(run, [line(1)])
        await store.import_session(session, said)
    loop = asyncio.get_running_loop()

    @settings(max_examples=5, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(QUESTIONS)
    def ask(questions: list[dict[str, Any]]) -> None:
        for which in questions:
            asyncio.run_coroutine_threadsafe(check(store, which), loop).result()

    await asyncio.to_thread(ask)
