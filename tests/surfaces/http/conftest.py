"""Servers that the tests of a module share."""

from collections.abc import Iterator

import pytest

from .serving import TOKENS, Serving, serve_in_thread


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    """A server without tokens over a store in memory: every request is the operator's."""
    with serve_in_thread() as server:
        yield server


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server with the tokens `TOKENS`, over a SQLite file."""
    with serve_in_thread(str(tmp_path_factory.mktemp("store") / "s.db"), tokens=TOKENS) as server:
        yield server
