"""Places to think in, over stores of each kind."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reasonry.stores.sqlite import MemoryStore

from .desk import Desk, desk


@pytest.fixture(params=["memory", "sqlite"])
async def at(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Desk]:
    """A desk over a store of either kind."""
    async with desk(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
async def durable(tmp_path: Path) -> AsyncIterator[Desk]:
    """A desk over a store in a file."""
    async with desk("sqlite", tmp_path) as opened:
        yield opened


@pytest.fixture
def fleeting() -> Desk:
    """A desk over a store in memory."""
    return Desk(MemoryStore())
