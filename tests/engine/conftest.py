"""What the tests of the engine share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .crashing import Nursery


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as nursery:
        yield nursery
