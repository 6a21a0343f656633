"""Creates, opens and checks the SQLite file of a store, and explains SQLite's errors.

A new store appears under its name only once it is complete. A file that is not a valid store is therefore damaged or
foreign, so it is refused and left unchanged. This module uses the SQLite of the package `apsw`. With the interpreter's
own SQLite (3.7.0 to 3.51.2), several processes can damage a shared file.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import random
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import StoreError, UsageError
from . import schema, sql

_BUSY = "store_busy", "another process has locked it; try again"
_DAMAGED = "store_corrupt", "its file is damaged; restore it from a backup"
_FULL = "store_full", "the disk or the quota is full; free some space, then try again"
_FAULTS = {
    "CorruptError": _DAMAGED,
    "NotADBError": ("store_corrupt", "it is not a SQLite file, or its first page is damaged; name another"),
    "BusyError": _BUSY,
    "LockedError": _BUSY,
    "ProtocolError": _BUSY,
    "FullError": _FULL,
    "TooBigError": ("store_full", "a text is larger than any store can hold"),
    "ReadOnlyError": ("store_unavailable", "it is read-only; make it writable"),
    "CantOpenError": ("store_unavailable", "its file cannot be opened; check its permissions"),
    "IOError": ("store_unavailable", "reading from or writing to the disk failed; check the disk"),
}
"""The code and the advice for each exception of `apsw`."""

SHOWN_FAULTS = 20

CHECKSUMS = "cksumvfs"
"""An extension of SQLite: each page ends with a checksum of 8 bytes, which is checked at every read."""

_CHECKSUM_BYTES = 8
_NO_ROOM = 4874
"""SQLITE_IOERR_SHMSIZE: the disk is too full for the index of the write-ahead log."""
_UNVERIFIED = (
    "store_corrupt",
    "the checksum of a page is wrong: another program has written to the file, or the disk has damaged it; restore it "
    "from a backup, or copy what is whole to a new file with `reasonry store copy FILE NEW --salvage`",
)
_BY_RESULT = {8202: _UNVERIFIED, _NO_ROOM: _FULL}
"""The code and the advice for result codes of SQLite whose own message misleads. 8202 is a wrong page checksum."""

_SETTINGS = ("synchronous = FULL", "foreign_keys = ON", "secure_delete = ON", "trusted_schema = OFF")
_NUMBER_AT = 60
"""The byte offset of `user_version` in the header of a file."""
_STALE_S = 60.0


def is_fault(error: BaseException) -> bool:
    """Whether an exception comes from the database itself."""
    # `apsw` is imported when a file is first opened. Before that, it cannot raise anything.
    apsw: Any = sys.modules.get("apsw")
    return isinstance(error, UnicodeDecodeError) or (apsw is not None and isinstance(error, apsw.Error))


def read_fault(error: Exception, path: Path) -> Exception:
    """Translate an exception of SQLite or the system into a `StoreError`. Return other exceptions unchanged."""
    if isinstance(error, OSError):
        return unusable_error(path, error.strerror or str(error))
    if not is_fault(error):
        return error
    # A damaged file can contain invalid text, which SQLite's message repeats, and can lack tables of the store.
    is_odd = isinstance(error, UnicodeDecodeError) or str(error).startswith(("no such", "unsupported file"))
    by_class = _DAMAGED if is_odd else _FAULTS.get(type(error).__name__)
    by_result = _BY_RESULT.get(getattr(error, "extendedresult", 0))
    if (meaning := by_result or by_class) is None:
        return StoreError(f"the store {path} could not be used ({error})", path=str(path))
    code, advice = meaning
    message = f"the store {path} could not be used: {advice}" + ("" if by_result else f" ({error})")
    return StoreError(message, code=code, retryable=code == "store_busy", path=str(path))


@contextlib.contextmanager
def faults_of(path: Path) -> Generator[None]:
    """Translate the errors of SQLite and of the system into `StoreError`; see `read_fault`."""
    try:
        yield
    except Exception as error:
        meant = read_fault(error, path)
        if meant is error:
            raise
        raise meant from error


def unusable_error(path: Path, why: str, code: str = "store_unavailable") -> StoreError:
    """Return the error for a path that cannot be used as a store."""
    other = "; name another with --store or REASONRY_STORE" * (code == "store_unavailable")
    return StoreError(f"{path} cannot be the store: {why}{other}", code=code, path=str(path))


class Source:
    """Opens connections to the file of a store; see `SqliteStore` for the arguments."""

    def __init__(self, path: Path, busy_timeout_s: float = 10.0) -> None:
        # Making a path interns its parts and enlarges Python's table of such strings, so the log's path is made once.
        self.path, self._log = path, log_of(path)
        self.busy_timeout_s = busy_timeout_s
        self._was_there = False
        self._opening = threading.Lock()
        """The lock that a thread holds while it opens the file or creates a missing file."""

    def writer(self) -> sql.Database:
        """Open the connection that writes."""
        db = self._open()
        with closed_on_error(db):
            db.execute("PRAGMA journal_size_limit = 8388608")
            if db.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise unusable_error(self.path, "its folder cannot hold a write-ahead log; use a local disk")
            if not self._has_log():
                # This writes the first page into the new log, so that the log names its file; see `open_file`.
                db.execute(f"PRAGMA user_version = {db.pragma('user_version')}")
        return db

    def reader(self) -> sql.Database:
        """Open a read-only connection.

        If the disk is too full for the log's index and the log is empty, the connection reads the file without the log.
        """
        import apsw

        try:
            db = self._open()
        except apsw.IOError as error:
            if getattr(error, "extendedresult", 0) != _NO_ROOM or self._has_log():
                raise
            return open_file(self.path, self.busy_timeout_s, "immutable=1")
        with closed_on_error(db):
            db.execute("PRAGMA wal_autocheckpoint = 0")
            db.execute("PRAGMA query_only = ON")
        return db

    def check_in_place(self, db: sql.Database) -> None:
        """Raise StoreError if the open file is no longer at its path, because it was removed or replaced."""
        import apsw

        has_moved = ctypes.c_int()
        db.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(has_moved))
        if has_moved.value:
            raise unusable_error(self.path, "its file was removed or replaced while it was in use")

    def rewrite(self) -> bool:
        """Rewrite the file without deleted content. Return whether its log could be emptied."""
        with faults_of(self.path), contextlib.closing(self.writer()) as db:
            db.execute("VACUUM")
            return not db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]

    def size_with_log(self) -> int:
        """Return the size of the file and its log together."""
        return self.path.stat().st_size + (self._log.stat().st_size if self._log.exists() else 0)

    def _has_log(self) -> bool:
        return self._log.exists() and self._log.stat().st_size > 0

    def _open(self) -> sql.Database:
        with self._opening:
            if not is_file(self.path):
                if self._was_there:
                    why = "its file was removed while in use; restore it, then try again"
                    raise unusable_error(self.path, why)
                create(self.path)
            db = open_file(self.path, self.busy_timeout_s)
            with closed_on_error(db):
                if schema.pending([name for (name,) in db.execute(sql.MIGRATIONS)], str(self.path)):
                    migrate(db, str(self.path))
            self._was_there = True
            return db


@cache
def checksum_vfs() -> str | None:
    """Return the name of the SQLite layer that checks page checksums, or None if this platform lacks the layer."""
    import apsw
    import apsw.sqlite_extra

    try:
        with contextlib.closing(apsw.Connection(":memory:")) as db:
            apsw.sqlite_extra.load(db, CHECKSUMS)
    except (apsw.sqlite_extra.NotAvailable, apsw.Error):
        return None
    # Another thread may have loaded the layer meanwhile, so find the layer by its name.
    return next((name for name in apsw.vfs_names() if name.startswith("cksm")), None)


@contextlib.contextmanager
def closed_on_error(db: sql.Database) -> Generator[None]:
    """Close a connection if the body of the `with` fails."""
    try:
        yield
    except BaseException:
        db.close()
        raise


class UnverifiedSource(Source):
    """A file whose page checksums are not checked, because another program may have written to the file."""

    def reader(self) -> sql.Database:
        """See `Source`."""
        return connect(self.path, self.busy_timeout_s, "mode=ro", verifies=False)


def connect(path: Path, busy_timeout_s: float, how: str = "", *, verifies: bool = True) -> sql.Database:
    """Open an existing file.

    Args:
        how: URI parameters for a read-only connection. If empty, the connection can also write.
        verifies: Whether to check the checksums of the file's pages.

    Raises:
        StoreError: The file's pages have checksums, and this platform cannot write checksums.
    """
    import apsw

    try:
        uri = path.absolute().as_uri()
    except ValueError as error:
        raise UsageError(f"{str(path)!r} is not a valid path") from error
    vfs, mode = checksum_vfs(), apsw.SQLITE_OPEN_READONLY if how else apsw.SQLITE_OPEN_READWRITE
    db = apsw.Connection(f"{uri}?{how}", mode | apsw.SQLITE_OPEN_URI, vfs)
    with closed_on_error(db):
        if not how and vfs is None and db.reserve_bytes("main", -1) == _CHECKSUM_BYTES:
            raise unusable_error(
                path,
                f"its pages have checksums, and the SQLite of this platform has no {CHECKSUMS} to write them",
            )
        if not verifies:
            db.execute("PRAGMA checksum_verification = OFF")
        db.set_busy_timeout(int(busy_timeout_s * 1_000))
        for setting in _SETTINGS:
            db.execute(f"PRAGMA {setting}")
    return db


def open_file(path: Path, busy_timeout_s: float, how: str = "") -> sql.Database:
    """Open the file of a store; see also `connect`.

    The header of each file has a random number, which the file's log repeats.

    Raises:
        StoreError: The file is not a store, or its log belongs to another file.
    """
    import apsw

    db = connect(path, busy_timeout_s, how)
    with closed_on_error(db):
        # A refused file must not change, so the close must not copy the log into the file.
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        if db.pragma("application_id") != schema.APPLICATION_ID:
            raise unusable_error(path, "it is a SQLite file of another application", "store_corrupt")
        _, number = db.read("main", 0, _NUMBER_AT, 4)
        if int.from_bytes(number, "big") != db.pragma("user_version"):
            why = f"its log {log_of(path).name} is that of another file; use `reasonry store restore`"
            raise unusable_error(path, why, "store_corrupt")
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    return db


def reserve_checksums(db: sql.Database) -> None:
    """Reserve the bytes for page checksums in an empty file, if the platform supports them."""
    if checksum_vfs() is not None:
        db.reserve_bytes("main", _CHECKSUM_BYTES)


def find_faults(tx: sql.Tx) -> list[str]:
    """Return the faults that SQLite finds in the file: wrong page checksums, or an inconsistent structure."""
    return [fault for (fault,) in tx.execute(f"PRAGMA integrity_check({SHOWN_FAULTS})") if fault != "ok"]


def name_file(db: sql.Database) -> None:
    """Mark a file with a random number, so that its log can be recognized; see `open_file`."""
    db.execute(f"PRAGMA user_version = {random.randrange(1, 1 << 31)}")


def migrate(db: sql.Database, name: str, dialect: sql.SqlDialect = sql.SQLITE) -> None:
    """Apply all pending migrations in one transaction."""
    # A context manager would make all threads wait while this thread waits for other connections.
    db.execute("BEGIN IMMEDIATE")
    try:
        db.execute(
            "CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY, applied_at_ms INTEGER NOT NULL) STRICT"
        )
        # Another process may have applied the migrations meanwhile.
        applied = [name for (name,) in db.execute(f"{sql.MIGRATIONS} ORDER BY name")]
        schema.apply(db, dialect, schema.pending(applied, name))
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def is_file(path: Path) -> bool:
    """Whether the file of a store exists.

    Raises:
        StoreError: The path is not a file with content, or only the log of a store exists.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        log = log_of(path)
        if log.exists() and log.stat().st_size:
            why = f"the store is missing, but its log {log.name} is still there; restore the store, or delete the log"
            raise unusable_error(path, why, "store_corrupt") from None
        return False
    except (OSError, ValueError) as error:
        raise unusable_error(path, getattr(error, "strerror", None) or str(error)) from error
    check_kind(path, found)
    return True


def check_kind(path: Path, found: os.stat_result) -> None:
    """Raise StoreError if a path is not a regular file with content."""
    if stat.S_ISDIR(found.st_mode):
        raise unusable_error(path, f"it is a folder; give a file in it, such as {path / 'reasonry.db'}")
    if not stat.S_ISREG(found.st_mode):
        raise unusable_error(path, "it is not a regular file")
    if not found.st_size:
        why = "the file is empty, and a store never is; restore it from a backup, or delete it to get a new store"
        raise unusable_error(path, why, "store_corrupt")


def log_of(path: Path) -> Path:
    """Return the path of a store's write-ahead log."""
    return path.with_name(path.name + "-wal")


def create(path: Path) -> None:
    """Create a store at `path` that only the current user can read. Keep a store that is already there."""
    with draft_of(path) as draft:
        with contextlib.closing(connect(draft, 1.0)) as db:
            reserve_checksums(db)
            db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
            name_file(db)
            migrate(db, str(draft))
            db.execute("PRAGMA journal_mode = WAL")
        publish(draft, path)


@contextlib.contextmanager
def draft_of(path: Path) -> Generator[Path]:
    """Create an empty draft beside `path`, or raise StoreError. At the end, remove the draft unless it was renamed."""
    folder = path.absolute().parent
    try:
        if not folder.parent.exists():
            raise FileNotFoundError(0, f"there is no folder {folder.parent}")
        folder.mkdir(0o700, exist_ok=True)
        for left_by_a_crash in folder.glob(f".{glob.escape(path.name)}.*.new*"):
            with contextlib.suppress(OSError):
                if time.time() - left_by_a_crash.stat().st_mtime > _STALE_S:
                    left_by_a_crash.unlink()
        handle, name = tempfile.mkstemp(".new", f".{path.name}.", folder)
        os.close(handle)
    except OSError as error:
        raise unusable_error(path, f"it cannot be created: {error.strerror or error}") from error
    draft = Path(name)
    try:
        yield draft
    finally:
        for end in ("", "-journal", "-wal", "-shm"):
            draft.with_name(draft.name + end).unlink(missing_ok=True)


def publish(draft: Path, path: Path, *, replace: bool = False) -> bool:
    """Move a finished file to its path in one step. Return False if the path exists and `replace` is false."""
    _sync(draft, os.O_RDWR)
    if replace:
        draft.replace(path)
    else:
        try:
            # A link, unlike a rename, never replaces a store that another process has just begun to fill.
            path.hardlink_to(draft)
        except OSError:
            if path.exists():
                return False
            draft.rename(path)
    sync_folder(path.absolute().parent)
    return True


def sync_folder(folder: Path) -> None:
    """Write the file names of a folder to the disk. Do nothing on Windows."""
    if os.name != "nt":
        _sync(folder, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
