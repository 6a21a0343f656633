"""Opening a store as a SQLite database, and explaining SQLite's errors.

The SQLite is the one that comes with `apsw`: the interpreter's own may be of a version in which several processes
on one file can damage it (3.7.0 to 3.51.2).
"""

from __future__ import annotations

import contextlib
import random
import sys
import threading
import time
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ..errors import StoreError, UsageError
from . import schema, sql
from .files import Identity, check_log, create, identity, inspect_file, log_of, unusable_error


class _Fault(NamedTuple):
    code: str
    advice: str


_BUSY = _Fault("store_busy", "another process has locked it; try again")
_DAMAGED = _Fault("store_corrupt", "its file is damaged; restore it from a backup")
_DISK = _Fault("store_unavailable", "reading from or writing to the disk failed; check the disk")
_FAULTS = {
    "CorruptError": _DAMAGED,
    "NotADBError": _DAMAGED,
    "BusyError": _BUSY,
    "LockedError": _BUSY,
    "ProtocolError": _BUSY,
    "FullError": _Fault("store_full", "the disk or the quota is full; free some space, then try again"),
    "TooBigError": _Fault("store_full", "a text is larger than any store can hold"),
    "ReadOnlyError": _Fault("store_unavailable", "it is read-only; make it writable"),
    "CantOpenError": _Fault("store_unavailable", "its file cannot be opened; check its permissions"),
    "IOError": _DISK,
}
"""By the class of what `apsw` raises."""

SHOWN_FAULTS = 20

CHECKSUMS = "cksumvfs"
"""SQLite's own extension: each page ends with a checksum of 8 bytes, which is checked when the page is read."""

_CHECKSUM_BYTES = 8
_CHECKSUM_FAULT = 8202
"""SQLITE_IOERR_DATA: the checksum of a page is wrong."""

_SETTINGS = ("synchronous = FULL", "foreign_keys = ON", "secure_delete = ON", "trusted_schema = OFF")


def is_fault(error: BaseException) -> bool:
    """Whether an exception comes from the database itself."""
    # The module is imported when a file is first opened; before that nothing can come from it.
    apsw: Any = sys.modules.get("apsw")
    return isinstance(error, UnicodeDecodeError) or (apsw is not None and isinstance(error, apsw.Error))


def is_suspicious(error: BaseException) -> bool:
    """Whether, after this error, the file has to be verified before anything relies on it."""
    return is_fault(error) and _meaning(error) in (_DISK, None)


def read_fault(error: Exception, path: Path) -> Exception:
    """Return the error of the store that an exception stands for."""
    if isinstance(error, OSError):
        return unusable_error(path, error.strerror or str(error))
    if not is_fault(error):
        return error
    meaning = _meaning(error)
    if meaning is None:
        return StoreError(f"the store {path} could not be used ({error})", path=str(path))
    code, advice = meaning
    message = f"the store {path} could not be used: {advice} ({error})"
    return StoreError(message, code=code, retryable=code == "store_busy", path=str(path))


@contextlib.contextmanager
def faults_of(path: Path) -> Generator[None]:
    """Raise errors of the database as those of the store."""
    try:
        yield
    except Exception as error:
        meant = read_fault(error, path)
        if meant is error:
            raise
        raise meant from error


def _meaning(error: BaseException) -> _Fault | None:
    is_wrong_page = getattr(error, "extendedresult", None) == _CHECKSUM_FAULT
    # In a damaged file there may be what is no text, even in what SQLite says about it, and no table of this store.
    is_odd = isinstance(error, UnicodeDecodeError) or str(error).startswith(("no such", "unsupported file"))
    return _DAMAGED if is_wrong_page or is_odd else _FAULTS.get(type(error).__name__)


SHORT_SLEEPS = 200
"""Most transactions end within one short sleep; after this many, a longer one is running, so sleeps become longer."""


def busy_handler(limit_s: float) -> Callable[[int], bool]:
    """Return a function that waits for another process in short sleeps, up to a limit.

    It is called with the number of sleeps there were; those of SQLite itself grow to 100 ms, in which others overtake.
    """
    until = 0.0

    def wait(tries: int) -> bool:
        nonlocal until
        if tries == 0:
            until = time.monotonic() + limit_s
        time.sleep(random.uniform(0.0001, 0.001 if tries < SHORT_SLEEPS else 0.01))
        return time.monotonic() < until

    return wait


class Source:
    """One store's file, and the connections to it.

    Args:
        path: Where the file is, or will be created.
        busy_timeout_s: How long to wait for other processes before `store_busy`.
    """

    def __init__(self, path: Path, busy_timeout_s: float = 10.0) -> None:
        # A path that is made interns its parts, and Python's table of such strings grows with what passes through.
        self.path, self._log = path, log_of(path)
        self.busy_timeout_s = busy_timeout_s
        self._identity: Identity | None = None
        self._opening = threading.Lock()
        """Several threads open connections; whether the file is there is found out by one at a time."""
        self._opened: WeakKeyDictionary[sql.Database, tuple[Identity | None, Identity | None]] = (
            WeakKeyDictionary()
        )
        """By connection: its file and its log."""

    def writer(self, *, verify: bool) -> sql.Database:
        """Open the connection that writes; with `verify` after an error that may have left the file damaged."""
        db = self._open()
        try:
            db.execute("PRAGMA journal_size_limit = 8388608")
            if db.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise unusable_error(self.path, "its folder cannot hold a write-ahead log; use a local disk")
            if verify:
                self._verify(db)
            if not self._log.stat().st_size:
                # A new log begins with the first page, which says whose log it is; see `check_log`.
                db.execute(f"PRAGMA user_version = {db.pragma('user_version')}")
            self._settle(db)
        except BaseException:
            db.close()
            raise
        return db

    def reader(self) -> sql.Database:
        """Open a connection that only reads."""
        db = self._open()
        try:
            db.execute("PRAGMA wal_autocheckpoint = 0")
            db.execute("PRAGMA query_only = ON")
            self._settle(db)
        except BaseException:
            db.close()
            raise
        return db

    def check_in_place(self, db: sql.Database) -> None:
        """Raise StoreError if the file that was opened, or its log, is no longer the one at its path."""
        file, log = self._opened[db]
        if _identity_of(self.path) != file:
            raise unusable_error(self.path, "its file was removed or replaced while it was in use")
        if _identity_of(self._log) == log:
            return
        # What was acknowledged is in the log this connection still holds; it goes into the file while it can.
        with contextlib.suppress(Exception):
            db.execute("PRAGMA query_only = OFF")
            self.empty_log(db)
        raise unusable_error(
            self.path, "its log was removed or replaced while it was in use; leave it to SQLite"
        )

    def empty_log(self, db: sql.Database) -> bool:
        """Copy the whole log into the file and truncate it; return whether that could be done.

        Waits for readers of an older state, and for other checkpoints, for which SQLite itself does not wait.
        """
        wait, tries = busy_handler(self.busy_timeout_s), 0
        while (result := db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()) and result[0]:
            if not wait(tries):
                return False
            tries += 1
        return True

    def rewrite(self) -> bool:
        """Rewrite the file without what was deleted, and empty its log; return whether the log could be emptied."""
        with faults_of(self.path), contextlib.closing(self.writer(verify=False)) as db:
            db.execute("VACUUM")
            return self.empty_log(db)

    def size_with_log(self) -> int:
        """Return how large the file and its log are together."""
        return self.path.stat().st_size + (self._log.stat().st_size if self._log.exists() else 0)

    def _open(self) -> sql.Database:
        with self._opening:
            return self._open_alone()

    def _open_alone(self) -> sql.Database:
        found = inspect_file(self.path)
        if found is None:
            if self._identity is not None:
                raise unusable_error(
                    self.path, "its file was removed while in use; restore it, then try again"
                )
            create(self.path, _fill)
            found = self.path.stat()
        if self._identity != identity(found):
            check_log(self.path)
        db = connect(self.path, self.busy_timeout_s)
        try:
            if schema.pending([name for (name,) in db.execute(sql.MIGRATIONS)], str(self.path)):
                migrate(db, str(self.path))
        except BaseException:
            db.close()
            raise
        self._identity = identity(found)
        return db

    def _settle(self, db: sql.Database) -> None:
        """Note which log is in use, and check that the file was not replaced while it was opened."""
        if _identity_of(self.path) != self._identity:
            raise unusable_error(self.path, "its file was replaced while it was opened; try again")
        self._opened[db] = self._identity, _identity_of(self._log)

    def _verify(self, db: sql.Database) -> None:
        # A failed sync leaves pages that only look written. The checkpoint writes them once more, elsewhere,
        # and begins a new log, so that what is acknowledged from now on does not stand on them.
        if not self.empty_log(db):
            raise unusable_error(
                self.path, "the disk failed, and another process keeps it from being checked"
            )
        result = db.execute("PRAGMA quick_check(1)").fetchone()
        if result != ("ok",):
            raise unusable_error(self.path, "its file is damaged; restore it from a backup", "store_corrupt")


def _identity_of(path: Path) -> Identity | None:
    try:
        return identity(path.stat())
    except OSError:
        return None


@cache
def checksum_vfs() -> str | None:
    """Return the name of the file system layer that checks pages; None: it is missing on this platform."""
    import apsw
    import apsw.sqlite_extra

    try:
        with contextlib.closing(apsw.Connection(":memory:")) as db:
            apsw.sqlite_extra.load(db, CHECKSUMS)
    except (apsw.sqlite_extra.NotAvailable, apsw.Error):
        return None
    # Another thread may have loaded it in between: the layer is looked for by its name.
    return next((name for name in apsw.vfs_names() if name.startswith("cksm")), None)


def connect(path: Path, busy_timeout_s: float, how: str = "") -> sql.Database:
    """Open an existing file.

    Args:
        how: Parameters of its URI, with which nothing is written to it.

    Raises:
        StoreError: Its pages have checksums, which cannot be written on this platform.
    """
    import apsw

    try:
        uri = path.absolute().as_uri()
    except ValueError as error:
        raise UsageError(f"{str(path)!r} is not a valid path") from error
    vfs, mode = checksum_vfs(), apsw.SQLITE_OPEN_READONLY if how else apsw.SQLITE_OPEN_READWRITE
    db = apsw.Connection(f"{uri}?{how}", mode | apsw.SQLITE_OPEN_URI, vfs)
    try:
        if not how and vfs is None and db.reserve_bytes("main", -1) == _CHECKSUM_BYTES:
            raise unusable_error(
                path,
                f"its pages have checksums, and the SQLite of this platform has no {CHECKSUMS} to write them",
            )
        db.set_busy_handler(busy_handler(busy_timeout_s))
        for setting in _SETTINGS:
            db.execute(f"PRAGMA {setting}")
    except BaseException:
        db.close()
        raise
    return db


def _fill(draft: Path) -> None:
    with contextlib.closing(connect(draft, 1.0)) as db:
        reserve_checksums(db)
        db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        name_file(db)
        migrate(db, str(draft))
        db.execute("PRAGMA journal_mode = WAL")


def reserve_checksums(db: sql.Database) -> None:
    """Have the pages of an empty file end with a checksum, where that can be had."""
    if checksum_vfs() is not None:
        db.reserve_bytes("main", _CHECKSUM_BYTES)


def find_faults(tx: sql.Tx) -> list[str]:
    """Return what SQLite finds wrong with its file: a checksum of a page, or the order of its content."""
    faults = [fault for (fault,) in tx.execute(f"PRAGMA integrity_check({SHOWN_FAULTS})")]
    return [fault for fault in faults if fault != "ok"]


def name_file(db: sql.Database) -> None:
    """Give a file a number of its own, which its log repeats; see `check_log`."""
    db.execute(f"PRAGMA user_version = {random.randrange(1, 1 << 31)}")


def migrate(db: sql.Database, name: str) -> None:
    """Apply the pending steps, or none."""
    db.execute(sql.BEGIN_WRITE)
    try:
        db.execute(
            "CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY, applied_at_ms INTEGER NOT NULL) STRICT"
        )
        # Another process may have been quicker.
        applied = [name for (name,) in db.execute(f"{sql.MIGRATIONS} ORDER BY name")]
        schema.apply(db, sql.SQLITE, schema.pending(applied, name))
        db.execute(sql.COMMIT)
    except BaseException:
        if db.in_transaction:
            db.execute(sql.ROLLBACK)
        raise
