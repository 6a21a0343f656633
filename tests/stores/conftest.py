"""The stores that keep one contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reasonry.records import Store
from reasonry.stores import open_store


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store of each kind."""
    names = {"memory": "memory", "sqlite": f"sqlite:{tmp_path / 'store.db'}"}
    opened = open_store(names.get(request.param) or request.getfixturevalue("postgres_url"))
    yield opened
    await opened.close()
