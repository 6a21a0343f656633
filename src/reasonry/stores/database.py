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
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ..errors import StoreError, UsageError
from . import migrations, sql
from .damage import is_damage
from .files import Identity, create, identity, in_use, inspect_file, unusable_error
from .reserve import free_bytes, give_up_reserve, keep_reserve, reserved_bytes
from .wal import check_log, log_of

T = TypeVar("T")


class _Fault(NamedTuple):
    code: str
    advice: str


_BUSY = _Fault("store_busy", "another process has locked it; try again")
_DAMAGED = _Fault("store_corrupt", "its file is damaged; restore it from a backup")
_DISK = _Fault("store_unavailable", "reading from or writing to the disk failed; check the disk")
_FAULTS = {
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

_opening = threading.Lock()
"""Held by any store of this process while it checks, opens or closes a file."""

SCARCE_BYTES = 1 << 18
"""Where less is free, a disk that cannot be written to is taken for a full one."""

PAGE_BYTES = 4096
LEAST_LOG_PAGES = 64

_SETTINGS = ("synchronous = FULL", "foreign_keys = ON", "secure_delete = ON", "trusted_schema = OFF")


def is_fault(error: BaseException) -> bool:
    """Whether an exception comes from the database itself."""
    # The module is imported when a file is first opened; before that nothing can come from it.
    apsw: Any = sys.modules.get("apsw")
    return isinstance(error, UnicodeDecodeError) or (apsw is not None and isinstance(error, apsw.Error))


def is_suspicious(error: BaseException) -> bool:
    """Whether, after this error, the file has to be verified before anything relies on it."""
    return is_fault(error) and _meaning(error) in (_DISK, None)


def read_fault(error: Exception, path: Path) -> StoreError:
    """Return the error of the store that an error of the database stands for."""
    meaning = _meaning(error)
    if meaning is None:
        return StoreError(f"the store {path} could not be used ({error})", path=str(path))
    code, advice = meaning
    message = f"the store {path} could not be used: {advice} ({error})"
    return StoreError(message, code=code, retryable=code == "store_busy", path=str(path))


def _meaning(error: BaseException) -> _Fault | None:
    if is_damage(error):
        return _DAMAGED
    return _FAULTS.get(type(error).__name__)


_SLEEP_S = 0.001
_SHORT_SLEEPS = 200
"""Most transactions end within one short sleep; after this many, a longer one is running, so sleeps become longer."""


class BusyHandler:
    """Waits for another process's transaction in short sleeps, up to a limit."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._since = 0.0

    def __call__(self, tries: int) -> bool:
        """Sleep briefly and return True; return False once the limit has passed."""
        now = time.monotonic()
        if tries == 0:
            self._since = now
        if now - self._since > self.limit_s:
            return False
        time.sleep(random.uniform(0.0001, _SLEEP_S if tries < _SHORT_SLEEPS else 10 * _SLEEP_S))
        return True


class Source:
    """One store's file, and the connections to it.

    Args:
        path: Where the file is, or will be created.
        busy_timeout_s: How long to wait for other processes before `store_busy`.
        reserve: Whether to keep room on the disk beside it, so that something can be deleted when the disk is full.
    """

    def __init__(self, path: Path, busy_timeout_s: float = 10.0, *, reserve: bool = False) -> None:
        # A path that is made interns its parts, and Python's table of such strings grows with what passes through.
        self.path, self._log = path, log_of(path)
        self.busy_timeout_s = busy_timeout_s
        self._reserve = reserve
        self._identity: Identity | None = None
        self._connected = dict[int, Identity]()
        self._logs = dict[int, Identity | None]()

    def writer(self, *, verify: bool) -> sql.Database:
        """Open the connection that writes; with `verify` after an error that may have left the file damaged."""
        db = self._with_room(lambda: self._open_writer(verify))
        if self._reserve:
            self.keep_reserve()
            # What the file lacks of the log shall fit into what is kept, so that a full disk can be given room.
            pages = reserved_bytes(self.path) // 2 // PAGE_BYTES
            db.execute(f"PRAGMA wal_autocheckpoint = {max(LEAST_LOG_PAGES, pages)}")
        return db

    def _open_writer(self, verify: bool) -> sql.Database:
        db = self._open()
        try:
            db.execute("PRAGMA journal_size_limit = 8388608")
            if db.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise unusable_error(self.path, "its folder cannot hold a write-ahead log; use a local disk")
            migrations.migrate(db, self.path)
            if verify:
                self._verify(db)
            self._settle(db)
        except BaseException:
            self.close(db)
            raise
        return db

    def reader(self) -> sql.Database:
        """Open a connection that only reads."""
        return self._with_room(self._open_reader)

    def _open_reader(self) -> sql.Database:
        db = self._open()
        try:
            if migrations.pending(db, self.path):
                migrations.migrate(db, self.path)
            db.execute("PRAGMA wal_autocheckpoint = 0")
            db.execute("PRAGMA query_only = ON")
            self._settle(db)
        except BaseException:
            self.close(db)
            raise
        return db

    def close(self, db: sql.Database) -> None:
        """Close a connection that was opened here."""
        with _opening:
            db.close()
            in_use[self._connected.pop(id(db))] -= 1
            self._logs.pop(id(db), None)

    def check_in_place(self, db: sql.Database) -> None:
        """Raise StoreError if the file that was opened, or its log, is no longer the one at its path."""
        if _identity_of(self.path) != self._identity:
            raise unusable_error(self.path, "its file was removed or replaced while it was in use")
        if _identity_of(self._log) == self._logs[id(db)]:
            return
        # What was acknowledged is in the log this connection still holds; it goes into the file while it can.
        with contextlib.suppress(Exception):
            db.execute("PRAGMA query_only = OFF")
            self.empty_log(db, self.busy_timeout_s)
        raise unusable_error(
            self.path, "its log was removed or replaced while it was in use; leave it to SQLite"
        )

    def empty_log(self, db: sql.Database, wait_s: float) -> bool:
        """Copy the whole log into the file and truncate it; return whether that could be done.

        Waits for readers of an older state, and for other checkpoints, for which SQLite itself does not wait.
        """
        wait, tries = BusyHandler(wait_s), 0
        db.set_busy_handler(BusyHandler(wait_s))
        try:
            while (result := db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()) and result[0]:
                if not wait(tries):
                    return False
                tries += 1
        finally:
            db.set_busy_handler(BusyHandler(self.busy_timeout_s))
        return True

    def size(self) -> int:
        """Return how large the file is."""
        return self.path.stat().st_size

    def size_with_log(self) -> int:
        """Return how large the file and its log are together."""
        return self.size() + (self._log.stat().st_size if self._log.exists() else 0)

    def can_be_rewritten(self) -> bool:
        """Whether the disk has room for all that is kept, once in the log and once more in the file."""
        return free_bytes(self.path) > 2 * self.size()

    def is_full(self, error: Exception) -> bool:
        """Whether something failed because the disk is full."""
        if type(error).__name__ == "FullError":
            return True
        failed = isinstance(error, OSError) or _meaning(error) in (_DISK, _FAULTS["CantOpenError"])
        return failed and free_bytes(self.path) < SCARCE_BYTES

    def keep_reserve(self, share: int = 8) -> None:
        """Reserve space on the disk: at most one `share`-th of what is free."""
        if self._reserve:
            keep_reserve(self.path, share)

    def give_up_reserve(self) -> bool:
        """Release the reserved space; return whether there was any."""
        return give_up_reserve(self.path)

    def has_room_for_log(self, db: sql.Database) -> bool:
        """Whether the disk has room for what the file still lacks of the log."""
        pages = db.execute("PRAGMA page_count").fetchone() or (0,)
        return free_bytes(self.path) > pages[0] * PAGE_BYTES - self.size()

    def _with_room(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except Exception as error:
            if not self.is_full(error) or not self.give_up_reserve():
                raise
        opened = act()
        self.keep_reserve(share=2)
        return opened

    def read_fault(self, error: Exception) -> Exception:
        """Return the error of the store that an exception stands for."""
        if is_fault(error):
            return read_fault(error, self.path)
        if isinstance(error, OSError):
            return unusable_error(self.path, error.strerror or str(error))
        return error

    def _open(self) -> sql.Database:
        with _opening:
            return self._check_and_connect()

    def _check_and_connect(self) -> sql.Database:
        found = inspect_file(self.path)
        if found is None:
            if self._identity is not None:
                raise unusable_error(
                    self.path, "its file was removed while in use; restore it, then try again"
                )
            create(self.path, _fill)
            found = self.path.stat()
        if not in_use[identity(found)]:
            check_log(self.path)
        db = connect(self.path, self.busy_timeout_s)
        self._identity = self._connected[id(db)] = identity(found)
        in_use[self._identity] += 1
        return db

    def _settle(self, db: sql.Database) -> None:
        """Note which log is in use, and check that the file was not replaced while it was opened."""
        if _identity_of(self.path) != self._connected[id(db)]:
            raise unusable_error(self.path, "its file was replaced while it was opened; try again")
        self._logs[id(db)] = _identity_of(self._log)

    def _verify(self, db: sql.Database) -> None:
        # A failed sync leaves pages that only look written. The checkpoint writes them once more, elsewhere,
        # and begins a new log, so that what is acknowledged from now on does not stand on them.
        if not self.empty_log(db, self.busy_timeout_s):
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


def connect(path: Path, busy_timeout_s: float) -> sql.Database:
    """Open an existing file."""
    import apsw

    try:
        uri = path.absolute().as_uri()
    except ValueError as error:
        raise UsageError(f"{str(path)!r} is not a valid path") from error
    db = apsw.Connection(uri, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
    try:
        db.set_busy_handler(BusyHandler(busy_timeout_s))
        for setting in _SETTINGS:
            db.execute(f"PRAGMA {setting}")
    except BaseException:
        db.close()
        raise
    return db


def _fill(draft: Path) -> None:
    db = connect(draft, 1.0)
    with contextlib.closing(db):
        db.execute(f"PRAGMA application_id = {migrations.APPLICATION_ID}")
        migrations.migrate(db, draft)
        db.execute("PRAGMA journal_mode = WAL")
