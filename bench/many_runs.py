"""A store with many runs, sessions and thoughts, for the measurements of lists and searches."""

import random
from functools import partial
from pathlib import Path

from reasonry.records import Line, RunRow, SessionRow, ThoughtRow
from reasonry.stores import run_rows, session_rows
from reasonry.stores.database import connect
from reasonry.stores.postgres import PostgresStore
from reasonry.stores.postgres.nul_escapes import spell
from reasonry.stores.sql import Tx
from reasonry.stores.sqlite import SqliteStore

TOGETHER = 4_000
WORDS = ["".join(random.Random(seed).choices("etaoinshrdlucmfwyp", k=3 + seed % 6)) for seed in range(4_000)]
STRATEGIES = ("tree_of_thoughts", "chain_of_thought", "react", "self_consistency")


def text(rng: random.Random, words: int) -> str:
    """Return some words."""
    return " ".join(rng.choices(WORDS, k=words))


def _add_run(tx: Tx, number: int, rng: random.Random) -> None:
    at, run_id, session_id = number * 60_000, f"r{number:08}", f"s{number:08}"
    row = RunRow(
        run_id,
        session_id,
        STRATEGIES[number % 4],
        "openai:gpt-5-mini" if number % 3 else "offline",
        text(rng, 8),
        "failed" if number % 1_000 == 0 else "done",
        at,
        at + 5_000,
        "answered",
        "success",
        answer=f"The answer is needle{number}." if number % 10_000 == 77 else text(rng, 6),
        owner=f"owner{number % 10}",
        calls=7,
        tokens=900,
        usd=0.001,
    )
    session = SessionRow(
        session_id, row.strategy, at, at, thoughts=3, purpose=row.problem, run_id=run_id, owner=row.owner
    )
    run_rows.create_run(tx, row, [Line(1, b"[]", bytes(16))], None)
    session_rows.import_session(tx, session, [ThoughtRow(seq, seq, text(rng, 25)) for seq in range(1, 4)])


async def fill(path: Path, count: int) -> None:
    """Write the runs as a store does, but thousands in a transaction."""
    store, rng = SqliteStore(path), random.Random(1)

    def work(tx: Tx, first: int) -> None:
        for number in range(first, min(first + TOGETHER, count)):
            _add_run(tx, number, rng)

    for first in range(0, count, TOGETHER):
        await store.write(partial(work, first=first))
    await store.close()


async def fill_postgres(url: str, source: Path) -> None:
    """Write the same rows into a database whose store is empty, as its server's own copying does it."""
    import psycopg

    store = PostgresStore(url)
    assert await store.runs(limit=1) == [], "the store is not empty"
    file = connect(source, 1.0)
    with psycopg.connect(store.address.url) as db:
        db.execute(f"SET search_path TO {store.address.schema}")
        for table in ("run", "line", "session", "thought", "searchable"):
            names = ", ".join(
                column.name for column in db.execute(f"SELECT * FROM {table}").description or ()
            )
            with db.cursor().copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                for row in file.execute(f"SELECT {names} FROM {table}"):
                    copy.write_row([spell(value) for value in row])
        for table in ("run", "session"):
            db.execute(f"SELECT setval('{table}_key', (SELECT max(key) FROM {table}))")
    file.close()
    await store.whole.vacuum()
    await store.close()
