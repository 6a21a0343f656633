"""Connections to a PostgreSQL database, each used by one thread at a time, so that any event loop may wait for them.

Nothing waits for the database without an end: every transaction has a deadline, which the client itself keeps, and a
connection that does not answer by then is closed. The next call makes a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from ...errors import ReasonryError, StoreError, UsageError
from .. import sql
from . import words
from .address import Address
from .table_steps import migrate
from .texts import Texts

T = TypeVar("T")
Work = Callable[[sql.Tx], T]

CONNECTIONS = 10
"""Most connections of one store."""

CONNECT_S = 3
"""How long connecting may take, if no less is left."""

LIMIT_S = 5.0
"""How long a transaction may take, and how long one waits for a database that answers nobody."""

LONG_S = 600.0
"""The same for what reads or writes a whole store."""

TRIES = 20
"""How often a transaction is tried that others come into."""

HOLD = "SELECT pg_advisory_lock(hashtextextended(%s, 0))"

_WRITE = "BEGIN"
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_AGAIN = ("40001", "40P01", "23505")
"""Serialization failure, deadlock, and a row that another transaction has added meanwhile."""

_FULL = ("53100", "53200")
_TOO_LARGE = ("54000", "54001")
_DAMAGED = ("XX001", "XX002")


@cache
def _connection_class() -> Any:
    """Return the class of connections that end what they wait for at a deadline."""
    import psycopg

    class TimedConnection(psycopg.Connection[Any]):
        deadline = float("inf")

        def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
            left = max(self.deadline - time.monotonic(), 0.001)
            return super().wait(gen, interval, left if timeout is None else min(left, timeout))

    return TimedConnection


class Translating:
    """A connection as the work on rows sees it: it takes the statements of `sql`."""

    def __init__(self, db: Any, writes: bool) -> None:
        self._db, self._writes, self._count = db, writes, 0
        self._prefetched = dict[str, dict[tuple[Any, ...], list[Any]]]()

    def execute(self, statement: str, values: Any = (), /) -> sql.Cursor:
        """Run a statement."""
        if statement in self._prefetched:
            rows = self._prefetched[statement].get(tuple(values))
            if rows is not None:
                return _Rows(rows)
        its_words, spelled = words.in_its_words(statement, self._writes), words.spell_values(values)
        cursor = self._db.cursor(binary=True)
        cursor.execute(its_words, spelled)
        if self._writes and statement == sql.SESSION and cursor.rowcount == 0:
            # Others who are about to begin the same session wait here, because there is no row to wait for.
            cursor.execute(words.LOCK_NAME, spelled)
            cursor.execute(its_words, spelled)
        self._count = cursor.rowcount
        return _Rows(map(_read_row, cursor.fetchall()) if cursor.description else ())

    def prefetch(self, statement: str, asked: Sequence[tuple[Any, ...]]) -> None:
        """See `Tx`; of one statement only what was prefetched last is kept."""
        wanted = list(dict.fromkeys(asked))
        if not wanted:
            return
        found: dict[tuple[Any, ...], list[Any]] = {values: [] for values in wanted}
        columns = [words.spell_values(column) for column in zip(*wanted, strict=True)]
        cursor = self._db.cursor(binary=True)
        cursor.execute(words.for_each(statement, tuple(map(type, wanted[0]))), columns)
        for number, *row in cursor.fetchall():
            found[wanted[number - 1]].append(_read_row(row))
        self._prefetched[statement] = found

    def executemany(self, statement: str, values: Sequence[Sequence[Any]], /) -> None:
        """Run a statement once for each of the bindings."""
        spelled = [words.spell_values(some) for some in values]
        with self._db.cursor() as cursor:
            cursor.executemany(words.in_its_words(statement, self._writes), spelled)

    def changes(self) -> int:
        """Return how many rows the last statement added, changed or removed."""
        return self._count


class _Rows:
    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> Any:
        return self._rows

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)


def _read_row(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([words.read(value) if isinstance(value, str) else value for value in row])


class Connections:
    """Runs transactions in threads of its own.

    Args:
        address: Where the database is.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._idle: list[Any] = []
        self._threads: ThreadPoolExecutor | None = None
        self._start = threading.Lock()
        self._living = threading.Lock()
        self._closed = False
        self._is_ready = False
        self._life: Any = None
        """Holds the lock that shows that this store object lives."""
        self._answered = 0.0
        """When the database last did what it was asked."""

    async def read(self, work: Work[T], limit_s: float | None = None) -> T:
        """Run work in a transaction that sees one state of the store."""
        return await self._in_thread(lambda asked: self._do(work, _READ, asked, limit_s))

    async def write(self, work: Work[T], limit_s: float | None = None) -> T:
        """Run work in a transaction that writes; it may be run again where another comes into it."""
        return await self._in_thread(lambda asked: self._do(work, _WRITE, asked, limit_s))

    async def maintain(self, statements: Sequence[str]) -> None:
        """Run statements outside any transaction, for as long as they take."""

        def work(asked: float) -> None:
            until = time.monotonic() + LONG_S
            db, _ = self._take(asked, until)
            try:
                db.deadline = until
                db.execute("SET statement_timeout = 0")
                for statement in statements:
                    db.execute(statement)
            except Exception as error:
                raise self._fault(error) from error
            finally:
                _close(db)

        await self._in_thread(work)

    def show_life(self, holder: str) -> None:
        """Hold the lock of a holder of leases until this is closed, or the process dies."""
        with self._living:
            if self._life is not None:
                try:
                    self._life.deadline = time.monotonic() + LIMIT_S
                    self._life.execute("SELECT 1")
                    return
                except Exception:
                    _close(self._life)
                    self._life = None
            life = self._connect(time.monotonic() + LIMIT_S)
            life.execute(HOLD, (holder,))
            self._life = life

    async def close(self) -> None:
        """Finish what was begun, then close the connections."""
        with self._start:
            self._closed = True
            threads = self._threads
        if threads is not None:
            await asyncio.to_thread(threads.shutdown)
        while self._idle:
            _close(self._idle.pop())
        if self._life is not None:
            _close(self._life)

    async def _in_thread(self, work: Callable[[float], T]) -> T:
        with self._start:
            if self._closed:
                raise StoreError(f"the store {self._address.name} is closed")
            if self._threads is None:
                self._threads = ThreadPoolExecutor(CONNECTIONS, "reasonry-postgres")
            threads = self._threads
        return await asyncio.get_running_loop().run_in_executor(threads, work, time.monotonic())

    def _do(self, work: Work[T], begin: str, asked: float, limit_s: float | None) -> T:
        until = time.monotonic() + limit_s if limit_s else max(asked, self._answered) + LIMIT_S
        for attempt in range(TRIES):
            db, was_idle = self._take(asked, until)
            try:
                value = self._transact(db, work, begin, until, limit_s)
            except Exception as error:
                if not self._is_to_be_tried_again(error, attempt, db.closed and was_idle):
                    meant = self._fault(error)
                    if meant is error:
                        raise
                    raise meant from error
            else:
                self._answered = time.monotonic()
                return value
            finally:
                self._give_back(db)
            time.sleep(0.001 * attempt)
        raise AssertionError("unreachable")

    def _is_to_be_tried_again(self, error: Exception, attempt: int, is_stale: bool) -> bool:
        if isinstance(error, ReasonryError) or attempt == TRIES - 1 or _is_timeout(error):
            return False
        if is_stale:
            # It was closed while nobody used it, and so may be the others.
            self._drop_idle()
            return True
        return getattr(error, "sqlstate", None) in _AGAIN

    def _transact(self, db: Any, work: Work[T], begin: str, until: float, limit_s: float | None) -> T:
        db.deadline = until
        texts = Texts()
        try:
            db.execute(begin)
            if limit_s is not None:
                for setting in ("statement_timeout", "idle_in_transaction_session_timeout"):
                    db.execute(f"SET LOCAL {setting} = {int(limit_s * 1000)}")
            reading = Translating(db, begin == _WRITE)
            # What is read where something is written is locked, or may be written meanwhile.
            tx = sql.Tx(reading, texts, prefetch=None if begin == _WRITE else reading.prefetch)
            value = work(tx)
            texts.put(tx)
        except BaseException as error:
            if _is_timeout(error):
                _close(db)
            elif not db.closed:
                with contextlib.suppress(Exception):
                    db.execute("ROLLBACK")
            raise
        try:
            db.execute("COMMIT")
        except Exception as error:
            _close(db)
            if begin == _READ:
                raise
            raise self._unavailable(
                "the last write was not acknowledged, and may have been done or not"
            ) from error
        return value

    def _take(self, asked: float, until: float) -> tuple[Any, bool]:
        """Return a connection, and whether it was made earlier."""
        waited = time.monotonic() - max(asked, self._answered)
        if waited >= LIMIT_S - 1:
            raise self._unavailable(f"it has not answered for {waited:.0f} s")
        with contextlib.suppress(IndexError):
            return self._idle.pop(), True
        return self._connect(until), False

    def _give_back(self, db: Any) -> None:
        try:
            if not db.closed and db.info.transaction_status == 0 and not self._closed:
                self._idle.append(db)
                return
        except Exception:
            pass
        _close(db)

    def _drop_idle(self) -> None:
        while self._idle:
            with contextlib.suppress(IndexError):
                _close(self._idle.pop())

    def _connect(self, until: float) -> Any:
        """Return a new connection, once the store's tables are there and its server keeps what it acknowledges."""
        try:
            db: Any = _connection_class().connect(
                self._address.url,
                autocommit=True,
                connect_timeout=min(CONNECT_S, int(until - time.monotonic())),
                application_name="reasonry",
            )
            db.deadline = until
            try:
                self._prepare(db)
            except BaseException:
                _close(db)
                raise
        except Exception as error:
            meant = self._fault(error)
            if meant is error:
                raise
            raise meant from error
        return db

    def _prepare(self, db: Any) -> None:
        schema = self._address.schema
        db.execute(f"SET search_path TO {schema}")
        db.execute(f"SET statement_timeout = {int(LIMIT_S * 1000)}")
        # What a process that is frozen in a transaction has locked, others would wait for as long as it is.
        db.execute(f"SET idle_in_transaction_session_timeout = {int(LIMIT_S * 1000)}")
        db.execute("SET client_encoding TO 'UTF8'")
        self._check_server(db)
        with self._start:
            if not self._is_ready:
                migrate(db, schema, self._address.name)
                self._is_ready = True

    def _check_server(self, db: Any) -> None:
        names = (
            "fsync",
            "full_page_writes",
            "server_encoding",
            "synchronous_commit",
            "transaction_read_only",
        )
        found = dict(
            db.execute(
                "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", (list(names),)
            ).fetchall()
        )
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

    def _fault(self, error: Exception) -> Exception:
        """Return what an error means to whoever uses the store."""
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
        if state in _AGAIN:
            return StoreError(f"the store {name} is too busy; try again", code="store_busy", retryable=True)
        return self._unavailable(why)

    def _unavailable(self, why: str) -> StoreError:
        return StoreError(f"the store {self._address.name} cannot be used: {why}", retryable=True)


def _is_timeout(error: BaseException) -> bool:
    import psycopg.errors

    return type(error).__name__ == "_WaitTimeout" or isinstance(error, psycopg.errors.ConnectionTimeout)


def _first_line(error: Any) -> str:
    if _is_timeout(error):
        return "it does not answer"
    lines = (error.diag.message_primary or str(error)).strip().splitlines()
    # Lines that are indented are advice on the one before.
    lines = [line for line in lines if not line.startswith("\t")]
    return lines[-1][:200] if lines else type(error).__name__


def _close(db: Any) -> None:
    with contextlib.suppress(Exception):
        db.close()
