"""Reads and writes lines over file descriptors in two threads, so that the event loop never blocks.

The blocking mode of the descriptors is not changed, because a terminal or another process may share this mode.
"""

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Callable
from typing import Any

_READ = 1 << 16


class StdioTransport:
    """Reads lines from one file descriptor and writes lines to another.

    Args:
        on_end: Called when the client closes a descriptor, once for each descriptor.
    """

    def __init__(self, source: int, sink: int, *, max_line: int, on_end: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._source, self._sink = source, sink
        self._max_line = max_line
        self._on_end = on_end
        self._ended = False
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, daemon=True)

    def start(self, on_line: Callable[[bytes], None]) -> None:
        """Start reading.

        Args:
            on_line: Called with each line, without its newline. A line that is too long is cut to `max_line` + 1 bytes.
        """
        self._on_line = on_line
        self._writer.start()
        threading.Thread(target=self._read, daemon=True).start()

    def stop(self) -> None:
        """Ignore all input lines that arrive from now on. Queued output lines are still written."""
        self._ended = True

    async def close(self, timeout_s: float) -> None:
        """Wait at most `timeout_s` seconds until the queued lines are written. Both descriptors stay open."""
        self._outgoing.put(None)
        await asyncio.to_thread(self._writer.join, timeout_s)

    def send(self, line: bytes) -> None:
        """Queue a line for writing."""
        self._outgoing.put(line)

    # -- threads

    def _tell(self, callback: Callable[..., None], *arguments: Any) -> None:
        # The loop may be closed while a thread waits.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *arguments)

    def _read(self) -> None:
        # The end of the input ends the last line, too.
        with contextlib.suppress(OSError), open(self._source, "rb", buffering=_READ, closefd=False) as source:
            while line := source.readline(self._max_line + 1):
                line = line.removesuffix(b"\n")
                self._tell(self._take, line)
                is_cut = len(line) > self._max_line
                while is_cut and (rest := source.readline(_READ)):
                    is_cut = not rest.endswith(b"\n")
        self._tell(self._on_end)

    def _write(self) -> None:
        try:
            while (line := self._outgoing.get()) is not None:
                write_whole(self._sink, line)
        except OSError:
            self._tell(self._on_end)

    # -- the event loop

    def _take(self, line: bytes) -> None:
        if line.strip() and not self._ended:
            self._on_line(line)


def write_whole(sink: int, data: bytes) -> None:
    """Write all data to a file descriptor. Block until the data is written."""
    view = memoryview(data)
    while view:
        view = view[os.write(sink, view) :]
