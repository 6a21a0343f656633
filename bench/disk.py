"""How the disk itself does while something is measured on it: what a reader needs to judge a p99 of durable writes."""

import os
import tempfile
import threading
import time
from typing import Self

from load import quantile

EVERY_S, SIZE_BYTES, STALL_MS = 0.01, 4_096, 50


class Disk:
    """Writes 4 KiB durably every 10 ms into a folder for as long as it is entered; a context manager.

    The same place is written over and over, so that nothing is measured of how a file grows.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._taken_ms = list[float]()
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._write, name="disk")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._thread.join()

    def _write(self) -> None:
        content = os.urandom(SIZE_BYTES)
        with tempfile.TemporaryFile(dir=self._folder) as file:
            os.pwrite(file.fileno(), content, 0)
            os.fsync(file.fileno())
            while not self._left.wait(EVERY_S):
                began = time.perf_counter()
                os.pwrite(file.fileno(), content, 0)
                os.fdatasync(file.fileno())
                self._taken_ms.append((time.perf_counter() - began) * 1e3)

    def __str__(self) -> str:
        """Return what was found, as a line to print."""
        stalls = sum(ms > STALL_MS for ms in self._taken_ms)
        return (
            f"the disk itself meanwhile, {SIZE_BYTES // 1024} KiB every {EVERY_S * 1e3:.0f} ms: "
            f"p99 {quantile(self._taken_ms, 0.99):.1f} ms, longest {max(self._taken_ms, default=0):.0f} ms, "
            f"{stalls} of {len(self._taken_ms):,} over {STALL_MS} ms"
        )
