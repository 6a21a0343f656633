"""Stores keep runs and sessions in memory, in SQLite or in PostgreSQL. The functions here open a store by its name."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..system.plugins import check_extra

if TYPE_CHECKING:
    from .row_store import RowStore

_CHOICES = ["memory", "PATH", "sqlite:PATH", "postgresql://USER@HOST/DATABASE"]
_FOREIGN = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*://|\s*(?:dbname|host|hostaddr|password|port|service|user)\s*="
)
"""Matches names that are no paths: other URLs and PostgreSQL's key=value addresses, which may contain passwords."""


def open_store(spec: str | None = None) -> RowStore:
    """Open a store by its name. Its file or database is checked only at first use.

    Args:
        spec: `memory`, a path, `sqlite:PATH`, or the URL of a PostgreSQL database. Defaults to the file in the user's
            data folder.

    Raises:
        UsageError: The name has none of these forms.
        MissingExtraError: The URL needs the PostgreSQL client, which is not installed.
    """
    if spec == "memory":
        from .sqlite import MemoryStore

        return MemoryStore()
    path = str(default_path()) if spec is None else spec.removeprefix("sqlite:")
    if spec is None:
        with contextlib.suppress(OSError):
            Path(path).parents[1].mkdir(0o700, parents=True, exist_ok=True)
    if path.startswith(("postgresql://", "postgres://")):
        check_extra("server", "a store in PostgreSQL")
        from .postgres import PostgresStore

        return PostgresStore(path)
    if _FOREIGN.match(path):
        # The message does not repeat the path, which may contain a password.
        raise UsageError(
            "name a store as memory, a path, sqlite:PATH, or a URL such as "
            "postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
            choices=_CHOICES,
        )
    from .sqlite import SqliteStore

    try:
        path.encode("utf-8", "surrogateescape")
        if not path or "\x00" in path or path.startswith("//"):
            raise ValueError
        return SqliteStore(Path(path).expanduser())
    except (RuntimeError, ValueError) as error:
        message = f"{path[:100]!r} is not a store: write memory, a path, or sqlite: and a path"
        raise UsageError(message, choices=_CHOICES) from error


def open_pair(source: str, target: str, *, salvage: bool = False) -> tuple[RowStore, RowStore]:
    """Open the source and the target of a copy by their names.

    Args:
        salvage: Whether to read the source without checking page checksums. If so, the target must be a new file.

    Raises:
        UsageError: A store is in memory, or the source file is missing. With `salvage`: a store has no file, or the
            target file exists.
    """
    stores = open_store(source), open_store(target)
    for store in stores:
        if not store.durable:
            raise UsageError("the store in memory is empty, and lost with this process; give a path")
    path = find_file(stores[0])
    if salvage:
        from .database import UnverifiedSource
        from .row_store import RowStore
        from .sqlite import SqliteDatabase

        new = getattr(stores[1], "path", None)
        if path is None or new is None or new.exists():
            raise UsageError("--salvage copies a file to a new file; give paths", option="salvage")
        return RowStore(SqliteDatabase(UnverifiedSource(path), str(path))), stores[1]
    return stores


def find_file(store: object) -> Path | None:
    """Return the file of a store, or None if the store does not use one. If the file is missing, raise UsageError."""
    path = getattr(store, "path", None)
    if path is not None and not path.exists():
        raise UsageError(f"there is no store {path}", path=str(path))
    return path


def default_path() -> Path:
    """Return the path of the default store."""
    import platformdirs

    return platformdirs.user_data_path("reasonry", appauthor=False) / "reasonry.db"
