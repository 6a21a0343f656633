"""Lines over file descriptors, without ever blocking the event loop: one thread reads and one writes.

Descriptors keep their blocking mode, which they may share with a terminal or another process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import select
import threading
from collections.abc import Callable
from typing import Any

_READ = 1 << 16
_HIGH_WATER = 1 << 20
"""Reading stops while this much waits for a client that does not read."""

OnLine = Callable[[bytes], None]


class StdioTransport:
    """Reads lines from one descriptor and writes them to another.

    Args:
        on_end: Called once, when the other side closes either descriptor.
    """

    def __init__(self, source: int, sink: int, *, max_line: int, on_end: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._source, self._sink = source, sink
        self._max_line = max_line
        self._on_end = on_end
        self._ended = False
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._waiting = 0
        """Bytes handed to the writing thread and not yet written."""
        self._may_read = threading.Event()
        self._may_read.set()
        self._writer = threading.Thread(target=self._write, daemon=True)

    def start(self, on_line: OnLine, on_long_line: OnLine) -> None:
        """Begin to read.

        Args:
            on_line: Called with each line, without its end.
            on_long_line: Called with the head of a line over `max_line`, which is skipped.
        """
        self._on_line, self._on_long_line = on_line, on_long_line
        self._writer.start()
        for work in (self._read, self._watch):
            threading.Thread(target=work, daemon=True).start()

    def stop(self) -> None:
        """Read no more; what waits to be written may still go out."""
        self._ended = True

    async def close(self, timeout_s: float) -> None:
        """Let go of both descriptors, which stay open, once all is written, but in time."""
        self._outgoing.put(None)
        await asyncio.to_thread(self._writer.join, timeout_s)

    def send(self, line: bytes) -> None:
        """Write a line, as soon as the other side reads."""
        self._waiting += len(line)
        if self._waiting > _HIGH_WATER:
            self._may_read.clear()
        self._outgoing.put(line)

    # -- threads

    def _tell(self, callback: Callable[..., None], *arguments: Any) -> None:
        # The loop may be closed while a thread waits.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *arguments)

    def _read(self) -> None:
        # The end of input ends a line, too.
        with contextlib.suppress(OSError), open(self._source, "rb", buffering=_READ, closefd=False) as source:
            while self._may_read.wait() and (line := source.readline(self._max_line + 1)):
                is_long = len(line.removesuffix(b"\n")) > self._max_line
                self._tell(self._take, line, is_long)
                while is_long and line and not line.endswith(b"\n"):
                    line = source.readline(_READ)
        self._tell(self._end)

    def _write(self) -> None:
        try:
            while (line := self._outgoing.get()) is not None:
                write_whole(self._sink, line)
                self._tell(self._count_written, len(line))
        except OSError:
            self._tell(self._lose_sink)

    def _watch(self) -> None:
        """Wait until nobody can read any more, where a system can tell."""
        if hasattr(select, "poll"):
            sink = select.poll()
            sink.register(self._sink, 0)
            if any(event & (select.POLLERR | select.POLLHUP) for _, event in sink.poll()):
                self._tell(self._lose_sink)

    # -- the event loop

    def _count_written(self, count: int) -> None:
        self._waiting -= count
        if self._waiting == 0:
            self._may_read.set()

    def _lose_sink(self) -> None:
        self._may_read.set()
        self._end()

    def _end(self) -> None:
        if not self._ended:
            self.stop()
            self._on_end()

    def _take(self, line: bytes, is_long: bool) -> None:
        if self._ended:
            return
        if is_long:
            self._on_long_line(line[:_READ])
        elif line.strip():
            self._on_line(line.removesuffix(b"\n"))


def write_whole(sink: int, data: bytes) -> None:
    """Write all of the data to a descriptor, however long that takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(sink, view) :]
