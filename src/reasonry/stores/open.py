"""Opens the store that a user names after `--store`."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import UsageError
from ..extras import check_extra
from ..records import Store

_CHOICES = ["memory", "PATH", "sqlite:PATH", "postgresql://USER@HOST/DATABASE"]
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_PARAMETERS = re.compile(r"\s*(?:dbname|host|hostaddr|password|port|service|user)\s*=")
"""How PostgreSQL's clients take an address too; as a path it would be a file with a password in its name."""


def open_store(spec: str | None = None) -> Store:
    """Return the store that a user names.

    A file is opened and checked when it is first used, not here.

    Args:
        spec: `memory`, a path, `sqlite:PATH`, or the URL of a PostgreSQL database; None: the file in the user's data
            folder.

    Raises:
        UsageError: It is none of these.
        MissingExtraError: Of a URL: the client of PostgreSQL is not installed.
    """
    if spec is None:
        return _sqlite(default_path())
    if spec == "memory":
        from .memory import MemoryStore

        return MemoryStore()
    path = spec.removeprefix("sqlite:")
    if path.startswith(("postgresql://", "postgres://")):
        return _postgres(path)
    if _PARAMETERS.match(path):
        raise UsageError(
            "a PostgreSQL store is named by a URL: postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
            choices=_CHOICES,
        )
    if scheme := _SCHEME.match(path):
        raise _unknown_scheme_error(scheme[1])
    if not path or "\x00" in path or path.startswith("//"):
        raise UsageError(
            f"{spec[:100]!r} is not a store: write memory, a path, or sqlite: and a path", choices=_CHOICES
        )
    return _sqlite(_expand_home(path))


def open_pair(source: str, target: str) -> tuple[Store, Store]:
    """Return the stores of a copy, by their names.

    Raises:
        UsageError: One is no store that is kept, they are the same, or there is nothing to copy.
    """
    stores = open_store(source), open_store(target)
    for store in stores:
        if not store.durable:
            raise UsageError("the store in memory is empty, and lost with this process; give a path")
    from_path, to_path = (getattr(store, "path", None) for store in stores)
    if from_path is not None and not from_path.exists():
        raise UsageError(f"there is no store {from_path}", path=str(from_path))
    is_same = (
        from_path is not None and to_path is not None and to_path.exists() and to_path.samefile(from_path)
    )
    if is_same or stores[0].name == stores[1].name:
        raise UsageError(f"{stores[1].name} is the store that is to be copied; give another one")
    return stores


def default_path() -> Path:
    """Return the path of the default store."""
    import platformdirs

    return platformdirs.user_data_path("reasonry", appauthor=False) / "reasonry.db"


def _sqlite(path: Path) -> Store:
    from .sqlite import SqliteStore

    return SqliteStore(path)


def _postgres(url: str) -> Store:
    check_extra("server", "a store in PostgreSQL")
    from .postgres import PostgresStore

    return PostgresStore(url)


def _expand_home(path: str) -> Path:
    try:
        path.encode("utf-8", "surrogateescape")
        return Path(path).expanduser()
    except (RuntimeError, UnicodeEncodeError) as error:
        raise UsageError(f"{path[:100]!r} is not a valid path on this system", choices=_CHOICES) from error


def _unknown_scheme_error(scheme: str) -> UsageError:
    # The rest of the address may hold a password.
    return UsageError(
        f"{scheme}:// is not a kind of store; write memory, a path, sqlite: and a path, or "
        "postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
        choices=_CHOICES,
    )
