"""What a store in PostgreSQL does when its server does not: it says so soon, and continues when the server does."""

import asyncio
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import reasonry
from reasonry.errors import ConflictError, StoreError, UsageError
from reasonry.records import RequestKey, Store, WholeRun
from reasonry.stores import open_store, sql
from reasonry.stores.copy import copy_store
from reasonry.stores.postgres.address import read_address
from reasonry.stores.postgres.nul_escapes import read, spell
from tests.servers.postgres import PostgresServer, postgres_server

from .samples import line, refused, run_row, session_row, think

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no server to install from a package"),
]

LIMIT_S = 2.0


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as started:
        yield started


async def test_a_server_that_stands_still_is_given_up_in_time_and_used_again_when_it_goes_on(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasonry.stores.postgres.transactions.LIMIT_S", LIMIT_S)
    store = open_store(f"{server.url}&reasonry_schema=still")
    await store.create_run(run_row("r"), [line(1)])
    server.signal(signal.SIGSTOP)
    try:
        began = time.monotonic()
        # More than there are connections: those that wait for one give up in time too.
        calls = [store.run("r"), store.append("r", [line(2)]), *(store.lines("r") for _ in range(20))]
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert time.monotonic() - began < LIMIT_S + 1.5
        assert {getattr(error, "code", error) for error in found} == {"store_unavailable"}
    finally:
        server.signal(signal.SIGCONT)
    row = await store.run("r")
    assert row.run_id == "r"
    await store.append("r", [line(len(await store.lines("r")) + 1)])


async def test_the_server_ends_the_transaction_of_a_process_that_is_frozen_in_it(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasonry.stores.postgres.transactions.LIMIT_S", 0.3)
    store: Any = open_store(f"{server.url}&reasonry_schema=frozen")

    def freeze(tx: sql.Tx) -> None:
        (pid,) = tx.rows("SELECT pg_backend_pid()")[0]
        tx.execute("INSERT INTO migration (name, applied_at_ms) VALUES ($1, $2)", (f"{pid}", 1))
        until = time.monotonic() + 3
        with psycopg.connect(server.url, autocommit=True) as other:
            while other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone():
                assert time.monotonic() < until
                time.sleep(0.05)

    with refused("store_unavailable"):
        await store.write(freeze)


async def test_what_was_acknowledged_is_there_after_the_server_was_killed(server: PostgresServer) -> None:
    store = open_store(f"{server.url}&reasonry_schema=killed")
    await store.create_run(run_row("r"), [line(1)], session_row("s", run_id="r"))
    acknowledged = [1]

    async def write() -> None:
        for seq in range(2, 10_000):
            await store.append("r", [line(seq)])
            acknowledged.append(seq)

    writing = asyncio.create_task(write())
    while len(acknowledged) < 20:
        await asyncio.sleep(0.01)
    await asyncio.to_thread(server.kill)
    with refused("store_unavailable"):
        await writing
    began = time.monotonic()
    with pytest.raises(StoreError):
        await store.run("r")
    assert time.monotonic() - began < 5
    await asyncio.to_thread(server.start)
    kept = [one.seq for one in await store.lines("r")]
    assert kept[: len(acknowledged)] == acknowledged
    # The last write may have been done without having been acknowledged.
    assert len(kept) - len(acknowledged) in (0, 1)
    await store.append("r", [line(len(kept) + 1)])


async def test_a_server_that_may_forget_is_refused_unless_that_is_allowed(server: PostgresServer) -> None:
    url = f"{server.url}&options=-csynchronous_commit%3Doff&reasonry_schema=unsafe"
    store = open_store(url)
    with pytest.raises(StoreError, match="synchronous_commit = off"):
        await store.runs()
    assert await open_store(f"{url}&reasonry_unsafe_commit=1").runs() == []


async def test_the_same_request_sent_many_times_at_once_begins_one_run(postgres_url: str) -> None:
    stores = [open_store(postgres_url) for _ in range(2)]
    key = RequestKey("k", b"d" * 16, 1_000)
    begun = await asyncio.gather(
        *(
            store.create_run(run_row(f"r{number}{store_number}"), [line(1)], None, key)
            for number in range(5)
            for store_number, store in enumerate(stores)
        )
    )
    assert len(set(begun)) == 1
    assert [row.run_id for row in await stores[0].runs()] == begun[:1]


async def test_writers_of_several_processes_on_one_session_or_run_are_serialised(postgres_url: str) -> None:
    stores = [open_store(postgres_url) for _ in range(3)]
    seqs = await asyncio.gather(*(think(store, "s", "x") for _ in range(8) for store in stores))
    assert sorted(seqs) == list(range(1, 25))
    await stores[0].create_run(run_row("r"), [line(1)])
    for seq in range(2, 12):
        writes = (store.append("r", [line(seq)]) for store in stores[:2])
        done = await asyncio.gather(*writes, return_exceptions=True)
        assert sorted(type(one) for one in done if one) == [ConflictError]
    assert len(await stores[0].lines("r")) == 11


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hush-hush-1@h/db?nonsense=1",
        "postgresql://u:hush-hush-1@h/db?reasonry_schema=a;b",
        "postgresql://u:hush-hush-1@h/db?reasonry_unsafe_commit=yes",
        "postgresql://u:hush-hush-1@h/db?reasonry_other=1",
        "postgresql://u:hush-hush-1@h:port/db",
        "postgresql://u:hush-hush-1@[h/db",
        "postgresql://ana:hush@hush:hush/hush@h/d",
        "postgresql://ana:hush@h:99999/d",
        "postgresql+psycopg://ana:hush@h/d",
        "mysql://ana:hush@h/d",
        "host=h password=hush dbname=d",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_store(url)
    assert "hush" not in str(caught.value.document())
    assert "postgresql://USER" in str(caught.value.document())


async def test_a_password_is_not_shown(server: PostgresServer) -> None:
    store = open_store("postgresql://someone:hush-hush-1@127.0.0.1:1/db?reasonry_schema=x")
    assert store.name == "postgresql://someone@127.0.0.1:1/db?reasonry_schema=x"
    with pytest.raises(StoreError) as caught:
        await store.runs()
    assert "hush" not in f"{caught.value.document()} {read_address('postgresql://a:hush-hush-1@h/d')!r}"
    assert "refused" in caught.value.message, "the advice of the client library hides the reason"


def test_a_url_may_leave_the_server_to_the_client_library() -> None:
    # A socket of this machine, and whatever PGHOST, PGUSER and PGPASSWORD say.
    assert read_address("postgresql:///d").url == "postgresql:///d"
    assert read_address("postgresql:///d?host=/run").url == "postgresql:///d?host=%2Frun"


async def test_a_backup_is_put_into_either_kind_of_store(postgres_url: str, tmp_path: Path) -> None:
    store, file = open_store(postgres_url), tmp_path / "backup.db"
    await reasonry.solve("Use 4, 9, 10 and 13 to make 24", strategy="linear", model="offline", store=store)
    await think(store, "s", "a thought\x00\x01")
    kept = [await whole_content(store), await store.search_thoughts("thought")]
    backup = await store.whole.back_up(file)
    assert (backup.runs, backup.sessions) == (1, 2)
    with pytest.raises(ConflictError):
        await store.whole.back_up(file)
    other, again = open_store(str(tmp_path / "other.db")), open_store(f"{postgres_url}_again")
    await other.whole.restore(file)
    assert await whole_content(other) == kept[0]
    with pytest.raises(UsageError, match="store copy"):
        await store.whole.restore(file)
    await copy_store(other, again)
    assert await whole_content(again) == kept[0]
    assert [one[1:] for one in await again.search_thoughts("thought")] == [one[1:] for one in kept[1]]


@pytest.mark.parametrize("name", ["\x00", "\x01", "a\x00\x01b"])
async def test_a_job_is_of_any_run_of_any_owner_and_waits_once(postgres_url: str, name: str) -> None:
    store = open_store(postgres_url)
    run = WholeRun(run_row(name, owner=name, unattended=True), (line(1),))
    assert await store.write_whole([run]) == ["new"]
    assert await store.write_whole([run]) == ["same"]
    assert (await store.queue_status()).depth == 1


async def whole_content(store: Store) -> list[Any]:
    return [[one for _, one in await store.read_whole(kind)] for kind in ("run", "session")]


def test_every_text_is_spelled_and_read_back_in_the_order_of_its_characters() -> None:
    texts = sorted(
        a + b + c for a in "\x00\x01\x02\x03a" for b in ("", *"\x00\x01\x02z") for c in ("", *"\x00\x01\x02")
    )
    assert [read(spell(text)) for text in texts] == texts
    assert sorted(spell(text) for text in texts) == [spell(text) for text in texts]
    assert not any("\x00" in spell(text) for text in texts)
