"""Transactions on a PostgreSQL database. They run in threads, so that any event loop can wait for their results.

Every transaction has a deadline, which the client enforces. A connection that has not answered by its deadline is
closed. If the server has the extension `pg_trgm`, an index finds texts. Otherwise, a search reads all texts.
"""

import asyncio
import contextlib
import logging
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg.errors import ConnectionTimeout
from psycopg_pool import ConnectionPool, PoolTimeout

from ...errors import StoreError, UsageError
from ...records import Backup, Finding, JobOptions, OnProgress, RunRow
from .. import schema, sql
from ..copy import copy_store
from ..row_store import Database, RowStore, Work
from ..sqlite import SqliteStore
from ..transfer import verify
from . import jobs
from .address import Address
from .nul_escapes import keep_any_text

T = TypeVar("T")

INDEX = "searchable_trigrams"
ADD_INDEX = (
    "CREATE EXTENSION IF NOT EXISTS pg_trgm",
    f"CREATE INDEX {INDEX} ON searchable USING GIN (folded gin_trgm_ops)",
)
IS_THERE = "SELECT to_regclass($1) IS NOT NULL"
SIZE = """
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
"""
TABLES = "run, line, checkpoint, lease, session, thought, searchable"


def pattern_of(part: str) -> str:
    """Return a LIKE pattern that matches every text that contains `part`."""
    escaped = part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


POSTGRES = sql.SqlDialect(
    integer="BIGINT",
    real="DOUBLE PRECISION",
    blob="BYTEA",
    name='TEXT COLLATE "C"',
    table_end="",
    lock=" FOR UPDATE",
    lock_name="SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
    next_key="SELECT nextval('{}_key')",
    hint="",
    has="strpos({}, {}) > 0",
    text_index=sql.TextIndex(
        tables="searchable t",
        test="t.folded LIKE $1 AND t.place BETWEEN $2 AND $3 AND strpos(t.folded, $4) > 0",
        order="t.place",
        pattern_of=pattern_of,
    ),
    clock="SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
    own_steps="postgres",
)

CONNECTIONS = 10
"""The most connections of a store."""

LIMIT_S = 5.0
"""The default time limit of a transaction: seconds after the call or the database's last answer, if that is later."""

PATIENCE_S = 1.0
"""Seconds to wait for a connection from the pool before checking whether the server can be reached."""

LONG_S = 600.0
"""The time limit in seconds for a transaction that reads or writes a whole store."""

TRIES = 20
"""How many times a transaction is tried if it conflicts with other transactions."""

MIGRATE_LOCK = 0x5265736E
"""The key of the lock under which a process creates the tables. Only one process at a time can hold the lock."""

BEGIN_WRITE = "BEGIN"
BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_AGAIN = ("40001", "40P01", "23505")
"""The SQL states of errors after which to try again: serialization failure, deadlock, and unique violation."""

_FULL = ("53100", "53200")
_TOO_LARGE = ("54000", "54001")
_DAMAGED = ("XX001", "XX002")
_OUT_OF_RANGE = "22003"


class TimedConnection(psycopg.Connection[Any]):
    """A connection with a deadline. Its statements use the server's own parameter syntax (`$1`)."""

    deadline = float("inf")

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait at most until the deadline; see `psycopg.Connection`."""
        left = max(self.deadline - time.monotonic(), 0.001)
        return super().wait(gen, interval, left if timeout is None else min(left, timeout))

    def execute(
        self, query: Any, params: Any = None, *, prepare: bool | None = None, binary: bool = False
    ) -> Any:
        """Run a statement."""
        return psycopg.RawCursor(self).execute(query, params, prepare=prepare, binary=binary)


class PostgresDatabase(Database):
    """Runs transactions in its own threads, over a pool of connections; see `Database`."""

    durable = True
    has_workers = True

    def __init__(self, address: Address) -> None:
        self.name = address.name
        self._address = address
        self._threads = ThreadPoolExecutor(CONNECTIONS, "reasonry-postgres")
        self._pool: ConnectionPool[TimedConnection] | None = None
        self._dialect = POSTGRES
        self._start = threading.Lock()
        self._closed = False

    async def read(self, work: Work[T], limit_s: float | None = None) -> T:
        """See `Database`."""
        return await self._in_thread(lambda until: self._do(work, BEGIN_READ, until, limit_s), limit_s)

    async def write(self, work: Work[T], limit_s: float | None = None) -> T:
        """See `Database`. The work is repeated after a conflict with another transaction."""
        return await self._in_thread(lambda until: self._do(work, BEGIN_WRITE, until, limit_s), limit_s)

    def put_job(self, tx: sql.Tx, row: RunRow, job: JobOptions) -> None:
        """See `Database`."""
        jobs.put(tx, row.run_id, row.owner, job)

    def space(self, tx: sql.Tx) -> tuple[int, int | None]:
        """See `Database`."""
        return tx.rows(SIZE)[0][0], None

    async def vacuum(self) -> None:
        """See `Database`. Reading and writing continue meanwhile."""

        def work(until: float) -> None:
            with contextlib.closing(self._connect(until)) as db:
                db.execute("SET statement_timeout = 0")
                db.execute(f"VACUUM (ANALYZE) {TABLES}")

        await self._in_thread(work, LONG_S)

    def verify(self) -> AsyncGenerator[Finding]:
        """See `Database`. The server checks its own pages."""
        return verify(self.name, lambda work: self.read(work, LONG_S), lambda tx: [])

    async def back_up(
        self, file: Path, *, force: bool = False, on_progress: OnProgress | None = None
    ) -> Backup:
        """See `Database`. Each run or session is a snapshot of one moment, but the whole backup is not."""
        with tempfile.TemporaryDirectory(prefix="reasonry-") as folder:
            copy = SqliteStore(Path(folder) / "copy.db")
            try:
                report = await copy_store(RowStore(self), copy, verify=False, on_progress=on_progress)
                if report.damage:
                    message = f"no backup was made: {'; '.join(report.damage)[:500]}"
                    raise StoreError(message, code="store_corrupt")
                return await copy.whole.back_up(file, force=force)
            finally:
                await copy.close()

    async def restore(self, file: Path, *, on_progress: OnProgress | None = None) -> Backup:
        """Raise UsageError, because a backup file cannot be restored into a PostgreSQL database."""
        raise UsageError(
            "a backup is put into PostgreSQL by `reasonry store copy FILE URL`; name an empty database, or another "
            "schema of this one with ?reasonry_schema=NAME"
        )

    async def close(self) -> None:
        """See `Database`."""
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown)
        if self._pool is not None:
            await asyncio.to_thread(self._pool.close)

    async def _in_thread(self, work: Callable[[float], T], limit_s: float | None) -> T:
        if self._closed:
            raise StoreError(f"the store {self.name} is closed")
        asked = time.monotonic()

        def do_in_time() -> T:
            try:
                return work(max(asked, self.answered_s) + (limit_s or LIMIT_S))
            except psycopg.Error as error:
                raise self._fault(error) from error

        return await asyncio.get_running_loop().run_in_executor(self._threads, do_in_time)

    def _do(self, work: Work[T], begin: str, until: float, limit_s: float | None) -> T:
        for attempt in range(TRIES):
            db: Any = None
            try:
                pool = self._open_pool(until)
                db = self._take(pool, until)
                try:
                    value = self._transact(db, work, begin, until, limit_s)
                    self.answered_s = time.monotonic()
                    return value
                finally:
                    pool.putconn(db)
            except psycopg.Error as error:
                # A connection of the pool may have been closed while nobody used it.
                is_stale = db is not None and db.closed and not _is_timeout(error)
                is_over = attempt == TRIES - 1 or time.monotonic() >= until
                if is_over or not (is_stale or error.sqlstate in _AGAIN):
                    raise
            time.sleep(0.001 * attempt)
        raise AssertionError("unreachable")

    def _transact(self, db: Any, work: Work[T], begin: str, until: float, limit_s: float | None) -> T:
        db.deadline = until
        try:
            db.execute(begin)
            if limit_s is not None:
                db.execute(_set_limits(limit_s, "SET LOCAL"))
            value = work(sql.Tx(db, self._dialect))
        except BaseException as error:
            if _is_timeout(error):
                db.close()
            elif not db.closed:
                with contextlib.suppress(Exception):
                    db.execute("ROLLBACK")
            raise
        try:
            db.execute("COMMIT")
        except Exception as error:
            db.close()
            if begin == BEGIN_READ:
                raise
            why = "the last write was not acknowledged, and may have been done or not"
            raise self._unavailable(why) from error
        return value

    def _take(self, pool: ConnectionPool[TimedConnection], until: float) -> Any:
        while True:
            left = until - time.monotonic()
            try:
                return pool.getconn(max(min(left, PATIENCE_S), 0.001))
            except PoolTimeout:
                if left <= PATIENCE_S:
                    raise
                # The pool keeps trying to connect. A separate attempt raises an error that explains the problem.
                self._connect(until).close()

    def _open_pool(self, until: float) -> ConnectionPool[TimedConnection]:
        """Return the pool. The first call checks the server, creates missing tables, and opens the pool."""
        with self._start:
            if self._pool is None:
                # Silence the pool's log: the call that waits for the pool raises the same error.
                logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())
                with contextlib.closing(self._connect(until)) as db:
                    _check_server(db, self._address)
                    _migrate(db, self._address)
                    if not _is_there(db, f"{self._address.schema}.{INDEX}"):
                        self._dialect = POSTGRES._replace(text_index=None)
                self._pool = ConnectionPool(
                    self._address.url,
                    connection_class=TimedConnection,
                    kwargs=_settings(LIMIT_S),
                    configure=self._configure,
                    min_size=0,
                    max_size=CONNECTIONS,
                    name="reasonry",
                    open=True,
                )
            return self._pool

    def _connect(self, until: float) -> Any:
        db: Any = TimedConnection.connect(self._address.url, **_settings(until - time.monotonic()))
        db.deadline = until
        self._configure(db)
        return db

    def _configure(self, db: Any) -> None:
        keep_any_text(db)
        # Without limits, other processes would wait for the locks of a process that is frozen in a transaction.
        limits = _set_limits(LIMIT_S, "SET")
        db.execute(
            f"SET search_path TO {self._address.schema}, public; SET client_encoding TO 'UTF8'; {limits}"
        )

    def _fault(self, error: psycopg.Error) -> Exception:
        state, why = error.sqlstate or "", _first_line(error)
        if state in _DAMAGED:
            return StoreError(f"the store {self.name} is damaged: {why}", code="store_corrupt")
        if state in _FULL:
            return StoreError(f"the store {self.name} has no room left: {why}", code="store_full")
        if state in _TOO_LARGE:
            return UsageError(f"a name is too long to be looked up in the store {self.name}: {why}")
        if state == _OUT_OF_RANGE:
            return UsageError("a number is too large to be stored")
        if state in _AGAIN:
            message = f"the store {self.name} is too busy; try again"
            return StoreError(message, code="store_busy", retryable=True)
        return self._unavailable(why)

    def _unavailable(self, why: str) -> StoreError:
        return StoreError(f"the store {self.name} cannot be used: {why}", retryable=True)


def _check_server(db: Any, address: Address) -> None:
    names = ["fsync", "full_page_writes", "server_encoding", "synchronous_commit"]
    found = dict(db.execute("SELECT name, setting FROM pg_settings WHERE name = ANY($1)", (names,)))
    if found.get("server_encoding") != "UTF8":
        raise StoreError(
            f"the database of the store {address.name} has the encoding {found.get('server_encoding')}; "
            "make one with UTF8"
        )
    unsafe = [name for name in names[:2] if found.get(name) == "off"]
    if found.get("synchronous_commit") not in ("on", "remote_apply"):
        unsafe.append("synchronous_commit")
    if unsafe and not address.allows_unsafe:
        settings = ", ".join(f"{name} = {found[name]}" for name in unsafe)
        raise StoreError(
            f"the server of the store {address.name} acknowledges what a crash can undo ({settings}); "
            "change that, or allow it with ?reasonry_unsafe_commit=1 in the URL"
        )


def _migrate(db: Any, address: Address) -> None:
    """Apply all pending migrations in one transaction."""
    name = address.schema
    if _is_there(db, f"{name}.migration") and not any(_pending(db, address)):
        return
    with db.transaction():
        # Another process may have applied the migrations, or may be applying them now.
        db.execute("SELECT pg_advisory_xact_lock($1::int, hashtext($2))", (MIGRATE_LOCK, name))
        db.execute(f"CREATE SCHEMA IF NOT EXISTS {name}")
        db.execute(
            "CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY, applied_at_ms BIGINT NOT NULL)"
        )
        steps, scripts = _pending(db, address)
        schema.apply(db, POSTGRES, steps)
        for script, text in scripts.items():
            # A script has several statements. The server accepts them in one request only without parameters.
            db.execute(text or "SELECT 1", prepare=False)
            db.execute(sql.APPLIED, (script, time.time_ns() // 1_000_000))
        if len(steps) == len(schema.MIGRATIONS):
            # The server may lack the extension or forbid it to this user. Searches then read all texts.
            with contextlib.suppress(psycopg.Error), db.transaction():
                for statement in ADD_INDEX:
                    db.execute(statement)


def _pending(db: Any, address: Address) -> tuple[tuple[schema.Migration, ...], dict[str, str]]:
    """Return the pending migrations of our tables, and the pending scripts of the job tables."""
    every = sorted(name for (name,) in db.execute(sql.MIGRATIONS))
    ours = [name for name in every if not name.startswith(jobs.SCRIPTS)]
    steps = schema.pending(ours, address.name)
    scripts = jobs.pending_scripts({*every})
    # Scripts with `_post_` in their names would break older workers, so they wait until the older workers have ended.
    is_needed = scripts and len(ours) < len(every) and db.execute(jobs.HAS_WORKERS).fetchone()
    while is_needed and scripts and "_post_" in (last := [*scripts][-1]):
        del scripts[last]
    return steps, scripts


def _settings(limit_s: float) -> dict[str, Any]:
    return {"autocommit": True, "connect_timeout": max(1, int(limit_s)), "application_name": "reasonry"}


def _set_limits(limit_s: float, how: str) -> str:
    settings = "statement_timeout", "idle_in_transaction_session_timeout"
    return "; ".join(f"{how} {setting} = {int(limit_s * 1_000)}" for setting in settings)


def _is_there(db: Any, relation: str) -> bool:
    return db.execute(IS_THERE, (relation,)).fetchone()[0]


def _is_timeout(error: BaseException) -> bool:
    return type(error).__name__ == "_WaitTimeout" or isinstance(error, ConnectionTimeout | PoolTimeout)


def _first_line(error: psycopg.Error) -> str:
    if _is_timeout(error):
        return "it does not answer"
    lines = (error.diag.message_primary or str(error)).strip().splitlines()
    # An indented line is advice about the line before it.
    lines = [line for line in lines if not line.startswith("\t")]
    return lines[-1][:200] if lines else type(error).__name__
