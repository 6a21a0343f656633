"""The stores that keep one contract."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from reasonry.records import Store
from reasonry.stores import open_store
from reasonry.stores.row_store import Database, RowStore


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close every store that a test has opened."""
    opened, initialize = list[RowStore](), RowStore.__init__

    def note(store: RowStore, database: Database) -> None:
        initialize(store, database)
        opened.append(store)

    async def close() -> None:
        for store in opened:
            await store.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RowStore, "__init__", note)
        yield
    asyncio.run(close())


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store of each kind."""
    names = {"memory": "memory", "sqlite": f"sqlite:{tmp_path / 'store.db'}"}
    return open_store(names.get(request.param) or request.getfixturevalue("postgres_url"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"
