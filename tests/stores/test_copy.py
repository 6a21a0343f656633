"""Copying a store: all of it, in pieces that may be interrupted anywhere, and nothing over what is there."""

import asyncio
import json
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.engine.journal import Begun, Chain, TermsChanged
from reasonry.errors import StoreError
from reasonry.records import Store, WholeRun, WholeSession
from reasonry.stores import open_store
from reasonry.stores.copy import CopyCount, copy_store
from reasonry.stores.sqlite import MemoryStore
from tests.forked import ForkedProcess

from .samples import refused, run_row, session_row, thoughts
from .test_whole import wholes

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]


def a_run(run_id: str, length: int = 5, **fields: object) -> WholeRun:
    commands = [TermsChanged(paused=bool(number % 2)) for number in range(1, length)]
    entries = [Begun("linear", run_id, {}), *commands]
    return WholeRun(run_row(run_id, **fields), tuple(Chain(run_id).lines(entries)))


async def fill(store: Store, runs: int = 7, sessions: int = 4) -> None:
    some = [
        WholeSession(session_row(f"s{n}", thoughts=n), tuple(thoughts(*"abcdef"[:n])))
        for n in range(sessions)
    ]
    await store.write_whole([*(a_run(f"r{n}", 1 + 3 * n) for n in range(runs)), *some])


async def contents(store: Store) -> list[WholeRun | WholeSession]:
    return [*await wholes(store, "run"), *await wholes(store, "session")]


async def check_part(source: Path, target: Path) -> int:
    """Each store opened again, the target is whole and a part of the source; return how much of it there is."""
    stores = open_store(str(source)), open_store(str(target))
    every, some = [await contents(store) for store in stores]
    assert all(whole in every for whole in some)
    assert [finding async for finding in stores[1].whole.verify() if finding.state != "whole"] == []
    for opened in stores:
        await opened.close()
    return len(some)


def child(source: Path, target: Path, pages: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.stores.copying", str(source), str(target), str(pages)]
    return ForkedProcess(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


async def test_killed_after_each_commit_a_copy_goes_on_where_it_was(tmp_path: Path) -> None:
    source, target = tmp_path / "source.db", tmp_path / "target.db"
    store = open_store(str(source))
    await fill(store)
    counts = list[int]()
    for pages in (1, 2, 3, 5, 6):
        with child(source, target, pages) as copying:
            _, err = copying.communicate(timeout=60)
        assert (copying.returncode != 0, err) == (True, b"")
        counts.append(await check_part(source, target))
    assert counts == [2, 4, 6, 9, 11]
    copied = open_store(str(target))
    report = await copy_store(store, copied)
    assert (report.runs, report.sessions) == (CopyCount(same=7), CopyCount(same=4))
    assert await contents(copied) == await contents(store)


async def test_killed_at_any_instant_a_copy_goes_on_where_it_was(tmp_path: Path) -> None:
    source, target = tmp_path / "source.db", tmp_path / "target.db"
    store = open_store(str(source))
    await fill(store, 60, 6)
    rng, killed = random.Random(5), 0
    for _ in range(4):
        with child(source, target, 0) as copying:
            assert copying.stdout is not None
            copying.stdout.readline()
            time.sleep(rng.uniform(0, 0.03))
            copying.kill()
        killed += copying.returncode != 0
        before = await check_part(source, target)
    copied = open_store(str(target))
    report = await copy_store(store, copied, batch=7)
    assert killed
    assert report.runs.same + report.sessions.same == before
    assert report.runs.new + report.sessions.new == 66 - before
    assert await contents(copied) == await contents(store)
    assert [row.run_id for row in await copied.runs()] == [row.run_id for row in await store.runs()]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_stores_of_all_kinds_are_copied_into_each_other_and_brought_up_to_date(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    name = request.getfixturevalue("postgres_url") if kind == "postgres" else str(tmp_path / "1.db")
    stores: list[Store] = [MemoryStore(), open_store(name), open_store(str(tmp_path / "2.db")), MemoryStore()]
    await fill(stores[0])
    for source, target in pairwise(stores):
        report = await copy_store(source, target)
        assert (report.runs, report.sessions) == (CopyCount(new=7), CopyCount(new=4))
        assert await contents(target) == await contents(stores[0])
    await stores[0].write_whole([a_run("r1", 9, updated_at_ms=2_000), a_run("later")])
    done: list[tuple[int, int]] = []
    report = await copy_store(
        stores[0], stores[1], batch=3, on_progress=lambda *progress: done.append(progress)
    )
    assert report.runs == CopyCount(new=1, continued=1, same=6)
    assert done == [(3, 12), (6, 12), (8, 12), (11, 12), (12, 12)]
    assert await contents(stores[1]) == await contents(stores[0])


async def test_what_is_of_one_owner_is_copied_alone(store: Store, tmp_path: Path) -> None:
    whole: list[Any] = [a_run(f"r{number}", owner=("", "ana", "bo")[number % 3]) for number in range(9)]
    whole += [WholeSession(session_row(f"s{n}", owner=("", "ana")[n % 2]), ()) for n in range(4)]
    await store.write_whole(whole)
    target = open_store(str(tmp_path / "target.db"))
    done: list[tuple[int, int]] = []
    report = await copy_store(
        store, target, owner="ana", batch=2, on_progress=lambda *progress: done.append(progress)
    )
    assert (report.runs, report.sessions) == (CopyCount(new=3), CopyCount(new=2))
    assert done == [(2, 5), (3, 5), (5, 5)]
    assert await contents(target) == [one for one in whole if one.row.owner == "ana"]
    assert (await copy_store(store, target)).runs == CopyCount(new=6, same=3)


async def test_what_differs_is_named_and_kept_and_the_rest_is_copied(tmp_path: Path) -> None:
    source, target = MemoryStore(), open_store(str(tmp_path / "target.db"))
    await fill(source)
    others = [a_run("r3", 2), WholeSession(session_row("s2", thoughts=1), tuple(thoughts("other")))]
    own = replace(others[0], row=replace(others[0].row, session_id="own"))
    await target.write_whole([own, others[1]])
    report = await copy_store(source, target)
    assert report.conflicts == ["r3", "s2"]
    assert (report.runs, report.sessions) == (CopyCount(new=6, differs=1), CopyCount(new=3, differs=1))
    assert {own.row.run_id, "r6"} <= {whole.row.run_id for whole in await wholes(target, "run")}
    assert (await wholes(target, "run"))[0] == own
    assert (await wholes(target, "session"))[0] == others[1]


async def test_what_is_damaged_is_named_and_not_copied(tmp_path: Path) -> None:
    source, target = open_store(str(tmp_path / "source.db")), open_store(str(tmp_path / "target.db"))
    await fill(source)
    await source.close()
    with apsw.Connection(str(tmp_path / "source.db")) as db:
        # A line that still unpacks and ends the chain of no one: only the digests show it.
        body = b'\x00["begun","linear","forged",{}]'
        db.execute("UPDATE line SET body = ? WHERE place = (3 << 24) + 1", (body,))
        db.execute("UPDATE thought SET text = 'forged' WHERE place = (3 << 24) + 1")
    source = open_store(str(tmp_path / "source.db"))
    report = await copy_store(source, target)
    assert (report.runs.damaged, report.sessions.damaged) == (1, 1)
    assert all(any(name in message for message in report.damage) for name in ("r2", "s2"))
    assert {whole.row.run_id for whole in await wholes(target, "run")} == {"r0", "r1", "r3", "r4", "r5", "r6"}
    await source.close()
    await target.close()
    with apsw.Connection(str(tmp_path / "target.db")) as db:
        db.execute(
            "UPDATE line SET digest = zeroblob(16) WHERE place >> 24 = (SELECT key FROM run WHERE run_id = 'r3')"
        )
    source, target = MemoryStore(), open_store(str(tmp_path / "target.db"))
    await fill(source)
    with pytest.raises(StoreError, match="r3"):
        await copy_store(source, target)


# -- what another program has written to


def plain(path: Path, *statements: str) -> None:
    """Write to a file as any program of SQLite does."""
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def ordered(app: App, problem: str = "1 + 1") -> tuple[Any, Any]:
    offline = Participants(model="offline")
    return app.order(RunRequest(problem=problem, strategy="chain_of_thought", participants=offline))


@pytest.fixture
async def kept(path: Path) -> tuple[Path, list[str]]:
    """A store with runs that have ended, a run that has not, and a session."""
    async with App(str(path), environ={}) as app:
        for problem in ("1 + 1", "2 + 2", "3 + 3"):
            order, performers = ordered(app, problem)
            await app.solve(order, performers)
        await app.engine.accept(order)
        await app.sessions().think(
            {"thought": "t", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": True}
        )
        names = [row.run_id for row in await app.store.runs()]
    return path, names[::-1]


async def copy_command(source: Path, target: Path | str, *more: str) -> subprocess.CompletedProcess[bytes]:
    words = [sys.executable, "-m", "reasonry", "store", "copy", str(source), str(target), "--salvage", *more]
    pipe = subprocess.PIPE
    with ForkedProcess(
        words, cwd=source.parent, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
    ) as copying:
        out, err = await asyncio.to_thread(copying.communicate)
    return subprocess.CompletedProcess(words, copying.returncode, out, err)


async def salvage(path: Path) -> tuple[dict[str, Any], int, Path]:
    """Copy a file to a new one; return the report, the exit code, and the new file."""
    new = path.with_name("new.db")
    before = path.read_bytes()
    done = await copy_command(path, new, "--json")
    assert path.read_bytes() == before
    return json.loads(done.stdout), done.returncode, new


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE mine (a)",
        "DROP INDEX run_list",
        "PRAGMA user_version = 7",
        "PRAGMA journal_mode = delete",
        "UPDATE run SET request = 'forged' WHERE key = 1",
        "CREATE TRIGGER mine AFTER INSERT ON run BEGIN SELECT 1; END",
    ],
)
async def test_a_store_that_another_program_has_written_to_says_so_and_is_copied_whole(
    kept: tuple[Path, list[str]], statement: str
) -> None:
    path, names = kept
    plain(path, statement)
    store = open_store(str(path))
    with refused("store_corrupt", r"another program has written to the file.*--salvage"):
        await store.runs()
    await store.close()
    report, code, new = await salvage(path)
    assert (code, report["damage"], report["runs"]["new"], report["sessions"]["damaged"]) == (0, [], 4, 0)
    # Those of runs follow from journals; of the one that an agent wrote, only the thoughts have digests.
    assert (report["sessions"]["new"], report["sessions"]["unproved"]) == (5, 1)
    assert report["runs"]["unproved"] == 0
    copied = open_store(str(new))
    assert {row.run_id for row in await copied.runs()} == {*names}
    assert {finding.state async for finding in copied.whole.verify()} == {"whole"}


@pytest.mark.parametrize(
    ("statement", "left_out"),
    [
        ("DELETE FROM line WHERE place >> 24 = 1", 1),
        ("UPDATE line SET body = (SELECT body FROM line LIMIT 1) WHERE place >> 24 = 2", 1),
        ("DELETE FROM run WHERE key = 1", 0),
    ],
)
async def test_what_the_journals_do_not_prove_is_left_out_and_listed(
    kept: tuple[Path, list[str]], statement: str, left_out: int
) -> None:
    path, names = kept
    plain(path, "PRAGMA foreign_keys = OFF", statement)
    report, code, new = await salvage(path)
    assert (code, report["runs"]["damaged"], report["runs"]["new"]) == (6, left_out, 3)
    assert len(report["damage"]) == 1
    assert not left_out or any(name in report["damage"][0] for name in names)
    assert {finding.state async for finding in open_store(str(new)).whole.verify()} == {"whole"}


@pytest.mark.parametrize(
    ("kind", "change", "key"),
    [
        ("run", "status = 'active', outcome = NULL", 3),
        ("run", "status = 'done', outcome = 'solved', answer = '9'", 4),
        ("run", "answer = 'forged', reason = 'forged', detail = 'forged'", 1),
        (
            "run",
            "problem = 'forged', strategy = 'forged', model = 'forged', calls = 0, tokens = 7, usd = 0.5",
            2,
        ),
        ("run", "created_at_ms = 1", 4),
        ("session", "purpose = 'forged', strategy = 'forged', created_at_ms = 1, thoughts = 7", 1),
    ],
)
async def test_a_row_that_was_changed_is_copied_as_the_journal_of_its_run_proves_it(
    kept: tuple[Path, list[str]], kind: str, change: str, key: int
) -> None:
    path, names = kept
    store = open_store(str(path))
    rows = {row.run_id: row for row in await store.runs()}, await store.sessions()
    await store.close()
    plain(path, f"UPDATE {kind} SET {change} WHERE run_id = '{names[key - 1]}'")
    report, code, new = await salvage(path)
    assert (code, report["runs"]["damaged"], report["runs"]["new"]) == (6, 0, 4)
    name = names[key - 1] if kind == "run" else rows[0][names[key - 1]].session_id
    said = "its row said something else than its journal, and is copied as the journal has it"
    assert report["damage"] == [f"{kind} {name}: {said}"]
    copied = open_store(str(new))
    assert ({row.run_id: row for row in await copied.runs()}, await copied.sessions()) == rows


async def test_salvage_of_runs_that_a_person_ended_or_paused_finds_no_damage(path: Path) -> None:
    async with App(str(path), environ={}) as app:
        order, _ = ordered(app)
        cancelled, paused = [(await app.engine.accept(order)).run_id for _ in range(2)]
        await app.engine.cancel(cancelled)
        await app.engine.command(paused, TermsChanged(paused=True))
        rows = await app.store.runs()
    plain(path, "CREATE TABLE mine (a)")
    report, code, new = await salvage(path)
    assert (code, report["damage"], report["runs"]["new"]) == (0, [], 2)
    assert await open_store(str(new)).runs() == rows


async def test_salvage_writes_to_a_new_file_only(kept: tuple[Path, list[str]]) -> None:
    path, _ = kept
    there = path.with_name("there.db")
    there.write_bytes(b"mine")
    for source, target in ((path, there), (path, path), (path, "memory"), (path.with_name("none"), "new.db")):
        done = await copy_command(source, target)
        assert done.returncode == 2, done
    assert there.read_bytes() == b"mine"
