"""Connections to a PostgreSQL database, each used by one thread at a time, so that any event loop may wait for them.

Nothing waits for the database without an end: every transaction has a deadline, which the client itself keeps, and a
connection that does not answer by then is closed.

The extension `pg_trgm` indexes texts where the server has it; elsewhere a search reads them. PostgreSQL keeps no text
with the character NUL: such texts are kept in another spelling, which leaves their order, how they begin, and all other
texts as they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeVar

from ...errors import ReasonryError, StoreError, UsageError
from .. import schema, sql
from .address import Address

T = TypeVar("T")
Work = Callable[[sql.Tx], T]

INDEX = "searchable_trigrams"
ADD_INDEX = (
    "CREATE EXTENSION IF NOT EXISTS pg_trgm",
    f"CREATE INDEX {INDEX} ON searchable USING GIN (folded gin_trgm_ops)",
)
HAS_INDEX = "SELECT to_regclass($1) IS NOT NULL"


def pattern_of(part: str) -> str:
    """Return the pattern of the texts that contain a part."""
    escaped = part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


TEXT_INDEX = sql.TextIndex(
    tables="searchable t",
    test="t.folded LIKE $1 AND t.place BETWEEN $2 AND $3 AND strpos(t.folded, $4) > 0",
    order="t.place",
    pattern_of=pattern_of,
)

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
    text_index=TEXT_INDEX,
    clock="SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
)

SCRIPTS: Final = "procrastinate/"
"""How the scripts of its tables are called among the steps of the store."""
HAS_WORKERS: Final = (
    "SELECT 1 FROM procrastinate_workers WHERE last_heartbeat > now() - interval '1 min' LIMIT 1"
)

OWN_INDEXES: Final = """
CREATE INDEX reasonry_job_owner ON procrastinate_jobs ((args->>'owner')) WHERE status = 'todo';
CREATE INDEX reasonry_job_run ON procrastinate_jobs ((args->>'run_id'));
"""

CONNECTIONS = 10
"""Most connections of one store."""

LIMIT_S = 5.0
"""How long a transaction may take, and how long one waits for a database that answers nobody."""

PATIENCE_S = 1.0
"""How long one waits for a connection of the pool before one asks why there is none."""

LONG_S = 600.0
"""The same for what reads or writes a whole store."""

TRIES = 20
"""How often a transaction is tried that others come into."""

MIGRATE_LOCK = 0x5265736E
"""The number of the lock under which one process at a time makes the tables."""

BEGIN_WRITE = "BEGIN"
BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_AGAIN = ("40001", "40P01", "23505")
"""Serialization failure, deadlock, and a row that another transaction has added meanwhile."""

_FULL = ("53100", "53200")
_TOO_LARGE = ("54000", "54001")
_DAMAGED = ("XX001", "XX002")
_OUT_OF_RANGE = "22003"


@cache
def _connection_class() -> Any:
    """Return the class of connections that end their waiting at a deadline."""
    import psycopg

    class TimedConnection(psycopg.Connection[Any]):
        deadline = float("inf")

        def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
            left = max(self.deadline - time.monotonic(), 0.001)
            return super().wait(gen, interval, left if timeout is None else min(left, timeout))

    return TimedConnection


@cache
def _raw_cursor() -> Any:
    """Return the class of cursors that take statements as the server does; a library may want the usual one."""
    import psycopg

    return psycopg.RawCursor


class RawConnection:
    """A connection as the work on rows sees it: its statements are spelled as the server spells them."""

    def __init__(self, db: Any) -> None:
        self._db = db
        self._cursor: Any = None

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Any:
        """Run a statement."""
        self._cursor = _raw_cursor()(self._db)
        return self._cursor.execute(statement, values)

    def executemany(self, statement: str, values: Iterable[Sequence[Any]], /) -> None:
        """Run a statement once for each of the bindings."""
        with _raw_cursor()(self._db) as cursor:
            cursor.executemany(statement, values)

    def changes(self) -> int:
        """Return how many rows the last statement added, changed or removed."""
        return self._cursor.rowcount


class Connections:
    """Runs transactions in threads of its own, over a pool of connections."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._threads = ThreadPoolExecutor(CONNECTIONS, "reasonry-postgres")
        self._pool: Any = None
        self._dialect = POSTGRES
        self._start = threading.Lock()
        self._closed = False
        self._answered = 0.0
        """When the database last did a transaction."""

    async def read(self, work: Work[T], limit_s: float | None = None) -> T:
        """Run work in a transaction that sees one state of the store."""
        return await self._in_thread(lambda until: self._do(work, BEGIN_READ, until, limit_s), limit_s)

    async def write(self, work: Work[T], limit_s: float | None = None) -> T:
        """Run work in a transaction that writes; it may be run again where another comes into it."""
        return await self._in_thread(lambda until: self._do(work, BEGIN_WRITE, until, limit_s), limit_s)

    async def maintain(self, statement: str) -> None:
        """Run a statement outside any transaction, for as long as it takes."""

        def work(until: float) -> None:
            with contextlib.closing(self._connect(until)) as db:
                db.execute("SET statement_timeout = 0")
                db.execute(statement)

        await self._in_thread(work, LONG_S)

    async def close(self) -> None:
        """Finish what was begun, then close the connections."""
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown)
        if self._pool is not None:
            await asyncio.to_thread(self._pool.close)

    async def _in_thread(self, work: Callable[[float], T], limit_s: float | None) -> T:
        if self._closed:
            raise StoreError(f"the store {self._address.name} is closed")
        asked = time.monotonic()

        def do_in_time() -> T:
            try:
                return work(max(asked, self._answered) + (limit_s or LIMIT_S))
            except Exception as error:
                meant = self._fault(error)
                if meant is error:
                    raise
                raise meant from error

        return await asyncio.get_running_loop().run_in_executor(self._threads, do_in_time)

    def _do(self, work: Work[T], begin: str, until: float, limit_s: float | None) -> T:
        for attempt in range(TRIES):
            db: Any = None
            try:
                pool = self._open_pool(until)
                db = self._take(pool, until)
                try:
                    value = self._transact(db, work, begin, until, limit_s)
                    self._answered = time.monotonic()
                    return value
                finally:
                    pool.putconn(db)
            except Exception as error:
                if not self._is_to_be_tried_again(error, attempt, db, until):
                    raise
            time.sleep(0.001 * attempt)
        raise AssertionError("unreachable")

    def _is_to_be_tried_again(self, error: Exception, attempt: int, db: Any, until: float) -> bool:
        if isinstance(error, ReasonryError) or attempt == TRIES - 1 or time.monotonic() >= until:
            return False
        # A connection of the pool may have been closed while nobody used it.
        is_stale = db is not None and db.closed and not _is_timeout(error)
        return is_stale or getattr(error, "sqlstate", None) in _AGAIN

    def _transact(self, db: Any, work: Work[T], begin: str, until: float, limit_s: float | None) -> T:
        db.deadline = until
        try:
            db.execute(begin)
            if limit_s is not None:
                for setting in ("statement_timeout", "idle_in_transaction_session_timeout"):
                    db.execute(f"SET LOCAL {setting} = {int(limit_s * 1000)}")
            value = work(sql.Tx(RawConnection(db), self._dialect, db))
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

    def _take(self, pool: Any, until: float) -> Any:
        from psycopg_pool import PoolTimeout

        while True:
            left = until - time.monotonic()
            try:
                return pool.getconn(max(min(left, PATIENCE_S), 0.001))
            except PoolTimeout:
                if left <= PATIENCE_S:
                    raise
                # The pool continues trying; a connection of one's own tells why there is none.
                self._connect(until).close()

    def _open_pool(self, until: float) -> Any:
        """Return the pool; the first connection shows whether the server can be used, and makes the tables."""
        with self._start:
            if self._pool is None:
                from psycopg_pool import ConnectionPool

                # What the pool would say is said by the error of the call that waits for it.
                logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())
                with contextlib.closing(self._connect(until)) as db:
                    self._check_server(db)
                    self._migrate(db)
                    found = RawConnection(db).execute(HAS_INDEX, (f"{self._address.schema}.{INDEX}",))
                    if not found.fetchone()[0]:
                        self._dialect = POSTGRES._replace(text_index=None)
                self._pool = ConnectionPool(
                    self._address.url,
                    connection_class=_connection_class(),
                    kwargs=self._settings(LIMIT_S),
                    configure=self._configure,
                    min_size=0,
                    max_size=CONNECTIONS,
                    name="reasonry",
                    open=True,
                )
            return self._pool

    def _connect(self, until: float) -> Any:
        db = _connection_class().connect(self._address.url, **self._settings(until - time.monotonic()))
        db.deadline = until
        self._configure(db)
        return db

    def _settings(self, limit_s: float) -> dict[str, Any]:
        return {
            "autocommit": True,
            "connect_timeout": max(1, int(limit_s)),
            "application_name": "reasonry",
        }

    def _configure(self, db: Any) -> None:
        keep_any_text(db)
        db.execute(f"SET search_path TO {self._address.schema}, public")
        db.execute(f"SET statement_timeout = {int(LIMIT_S * 1000)}")
        # Others would wait for the locks of a process that is frozen in a transaction, for as long as it is.
        db.execute(f"SET idle_in_transaction_session_timeout = {int(LIMIT_S * 1000)}")
        db.execute("SET client_encoding TO 'UTF8'")

    def _check_server(self, db: Any) -> None:
        names = ("fsync", "full_page_writes", "server_encoding", "synchronous_commit")
        wanted = "SELECT name, setting FROM pg_settings WHERE name = ANY($1)"
        found = dict(RawConnection(db).execute(wanted, (list(names),)))
        if found.get("server_encoding") != "UTF8":
            raise StoreError(
                f"the database of the store {self._address.name} has the encoding {found.get('server_encoding')}; "
                "make one with UTF8"
            )
        unsafe = [name for name in names[:2] if found.get(name) == "off"]
        if found.get("synchronous_commit") not in ("on", "remote_apply"):
            unsafe.append("synchronous_commit")
        if unsafe and not self._address.allows_unsafe:
            settings = ", ".join(f"{name} = {found[name]}" for name in unsafe)
            raise StoreError(
                f"the server of the store {self._address.name} acknowledges what a crash can undo ({settings}); "
                "change that, or allow it with ?reasonry_unsafe_commit=1 in the URL"
            )

    def _migrate(self, db: Any) -> None:
        """Apply all pending steps, or none."""
        name, tables = self._address.schema, RawConnection(db)
        (there,) = tables.execute("SELECT to_regclass($1)", (f"{name}.migration",)).fetchone()
        if there is not None and not any(self._pending(tables)):
            return
        with db.transaction():
            # Another process may have been quicker, or is at it.
            tables.execute("SELECT pg_advisory_xact_lock($1::int, hashtext($2))", (MIGRATE_LOCK, name))
            db.execute(f"CREATE SCHEMA IF NOT EXISTS {name}")
            db.execute(
                "CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY, applied_at_ms BIGINT NOT NULL)"
            )
            steps, scripts = self._pending(tables)
            schema.apply(tables, POSTGRES, steps)
            for script, text in scripts.items():
                # A script has several statements, which the server takes at once only where there are no parameters.
                db.execute(text or "SELECT 1", prepare=False)
                tables.execute(sql.APPLIED, (script, time.time_ns() // 1_000_000))
            if len(steps) == len(schema.MIGRATIONS):
                self._add_index(db)

    def _pending(self, tables: RawConnection) -> tuple[tuple[schema.Migration, ...], dict[str, str]]:
        """Return the steps of our tables that are to be taken, and the scripts of those of the jobs."""
        every = sorted(name for (name,) in tables.execute(sql.MIGRATIONS))
        ours = [name for name in every if not name.startswith(SCRIPTS)]
        steps = schema.pending(ours, self._address.name)
        scripts, is_new = pending_scripts({*every}), len(ours) == len(every)
        # What older workers need stays until they have ended.
        while not is_new and scripts and "_post_" in (last := [*scripts][-1]) and _has_workers(tables):
            del scripts[last]
        return steps, scripts

    def _add_index(self, db: Any) -> None:
        import psycopg

        # A server may lack the extension, or not let this user have it; then searches read the texts.
        with contextlib.suppress(psycopg.Error), db.transaction():
            for statement in ADD_INDEX:
                db.execute(statement)

    def _fault(self, error: Exception) -> Exception:
        """Return what an error means to the user of the store."""
        import psycopg

        if not isinstance(error, psycopg.Error):
            return error
        state, why = error.sqlstate or "", _first_line(error)
        name = self._address.name
        if state in _DAMAGED:
            return StoreError(f"the store {name} is damaged: {why}", code="store_corrupt")
        if state in _FULL:
            return StoreError(f"the store {name} has no room left: {why}", code="store_full")
        if state in _TOO_LARGE:
            return UsageError(f"a name is too long to be looked up in the store {name}: {why}")
        if state == _OUT_OF_RANGE:
            return UsageError("a number is too large to be stored")
        if state in _AGAIN:
            return StoreError(f"the store {name} is too busy; try again", code="store_busy", retryable=True)
        return self._unavailable(why)

    def _unavailable(self, why: str) -> StoreError:
        return StoreError(f"the store {self._address.name} cannot be used: {why}", retryable=True)


def _has_workers(tables: RawConnection) -> bool:
    return tables.execute(HAS_WORKERS).fetchone() is not None


def _is_timeout(error: BaseException) -> bool:
    import psycopg.errors
    from psycopg_pool import PoolTimeout

    kinds = (psycopg.errors.ConnectionTimeout, PoolTimeout)
    return type(error).__name__ == "_WaitTimeout" or isinstance(error, kinds)


def _first_line(error: Any) -> str:
    if _is_timeout(error):
        return "it does not answer"
    lines = (error.diag.message_primary or str(error)).strip().splitlines()
    # Lines that are indented are advice on the one before.
    lines = [line for line in lines if not line.startswith("\t")]
    return lines[-1][:200] if lines else type(error).__name__


# -- the tables of the jobs


def pending_scripts(applied: AbstractSet[str]) -> dict[str, str]:
    """Return the scripts of procrastinate's tables that are to be run, by their names, in their order.

    Args:
        applied: The names of those that were run.
    """
    folder = _folder()
    scripts = {f"{SCRIPTS}{path.stem}": path for path in sorted(folder.glob("migrations/*.sql"))}
    if applied.isdisjoint(scripts):
        whole = (folder / "schema.sql").read_text("utf-8") + OWN_INDEXES
        return {**dict.fromkeys(scripts, ""), min(scripts): whole}
    return {name: path.read_text("utf-8") for name, path in scripts.items() if name not in applied}


def _folder() -> Path:
    # The package itself need not be loaded for that.
    spec = find_spec("procrastinate")
    assert spec is not None, "the extra `server` brings it"
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "sql"


# -- the spelling of texts


def spell(text: str) -> str:
    """Return a text as it is kept: with two characters for NUL, and for the one that begins them."""
    return text.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")


def read(kept: str) -> str:
    """Return the text that is kept so."""
    return kept.replace("\x01\x01", "\x00").replace("\x01\x02", "\x01")


def keep_any_text(db: Any) -> None:
    """Have a connection spell texts, and read them back."""
    dumper, loader = _adapters()
    db.adapters.register_dumper(str, dumper)
    db.adapters.register_loader("text", loader)


@cache
def _adapters() -> tuple[Any, Any]:
    from psycopg.types.string import StrDumperUnknown, TextLoader

    class Dumper(StrDumperUnknown):
        def dump(self, obj: str) -> Any:
            return super().dump(spell(obj))

    class Loader(TextLoader):
        def load(self, data: Any) -> Any:
            return read(str(super().load(data)))

    return Dumper, Loader
