"""Lines over file descriptors, without a thread and without ever blocking the event loop.

A pipe that polls as writable takes `PIPE_BUF` bytes without blocking, so descriptors keep their blocking
mode, which they may share with a terminal or another process.
"""

from __future__ import annotations

import asyncio
import os
import select
import stat
import threading
from collections.abc import Callable

_CHUNK = 4096
_READ = 1 << 16
_HIGH_WATER = 1 << 20
"""Reading stops while this much waits for a client that does not read."""


class Wire:
    """Reads lines from one descriptor and writes them to another.

    Args:
        on_end: Called once, when the other side closes either descriptor.
    """

    def __init__(
        self,
        source: int,
        sink: int,
        *,
        max_line: int,
        on_end: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._source, self._sink = source, sink
        self._max_line = max_line
        self._on_end = on_end
        self._partial = bytearray()
        self._skipping = False
        self._backlog = bytearray()
        self._reading = self._ended = self._threaded = False
        self._sink_poll = select.poll()
        self._sink_poll.register(sink, select.POLLOUT)
        self.drained = asyncio.Event()
        self.drained.set()

    def start(self, on_line: Callable[[bytes], None], on_long_line: Callable[[bytes], None]) -> None:
        """Begin to read; a source that cannot be polled, such as a file, is read by a thread.

        Args:
            on_line: Called with each line, without its end.
            on_long_line: Called with the head of a line over `max_line`, which is skipped.
        """
        self._on_line, self._on_long_line = on_line, on_long_line
        try:
            self._loop.add_reader(self._source, self._readable)
            self._reading = True
        except (OSError, NotImplementedError):
            self._threaded = True
            threading.Thread(target=self._read_in_thread, daemon=True).start()
        if self._sink_can_hang_up():
            self._loop.add_reader(self._sink, self._sink_closed)

    def _sink_can_hang_up(self) -> bool:
        sink, source = os.fstat(self._sink), os.fstat(self._source)
        is_own = (sink.st_dev, sink.st_ino) != (source.st_dev, source.st_ino)
        return is_own and (stat.S_ISFIFO(sink.st_mode) or stat.S_ISSOCK(sink.st_mode))

    def stop(self) -> None:
        """Read no more; what waits to be written may still go out."""
        if self._reading:
            self._loop.remove_reader(self._source)
            self._reading = False
        self._ended = True

    def close(self) -> None:
        """Let go of both descriptors, which stay open."""
        self.stop()
        self._loop.remove_reader(self._sink)
        self._loop.remove_writer(self._sink)

    def _end(self) -> None:
        if not self._ended:
            self.stop()
            self._on_end()

    def _sink_closed(self) -> None:
        gone = any(event & (select.POLLERR | select.POLLHUP) for _, event in self._sink_poll.poll(0))
        if gone:
            self._lose_sink()
        else:
            self._loop.remove_reader(self._sink)

    def _lose_sink(self) -> None:
        self._backlog.clear()
        self.drained.set()
        self._loop.remove_reader(self._sink)
        self._loop.remove_writer(self._sink)
        self._end()

    # --- in

    def _read_in_thread(self) -> None:
        while data := os.read(self._source, _READ):
            self._loop.call_soon_threadsafe(self._take, data)
        self._loop.call_soon_threadsafe(self._end)

    def _readable(self) -> None:
        try:
            data = os.read(self._source, _READ)
        except OSError:
            data = b""
        if data:
            self._take(data)
        else:
            self._end()

    def _take(self, data: bytes) -> None:
        lines = data.split(b"\n")
        for index, piece in enumerate(lines):
            is_whole = index < len(lines) - 1
            if self._partial or not is_whole:
                self._partial += piece
                if len(self._partial) > self._max_line:
                    self._overflow()
                if not is_whole:
                    return
                piece = bytes(self._partial)
                self._partial.clear()
            if self._skipping:
                self._skipping = False
            elif piece.strip():
                self._on_line(piece)

    def _overflow(self) -> None:
        if not self._skipping:
            self._skipping = True
            self._on_long_line(bytes(self._partial[:_READ]))
        self._partial.clear()

    # --- out

    def send(self, line: bytes) -> None:
        """Write a line, now if the other side reads, else as soon as it does."""
        if self._backlog:
            self._backlog += line
        else:
            rest = self._push(line)
            if not rest:
                return
            self._backlog += rest
            self.drained.clear()
            self._loop.add_writer(self._sink, self._writable)
        if len(self._backlog) > _HIGH_WATER and self._reading:
            self._loop.remove_reader(self._source)
            self._reading = False

    def _push(self, data: bytes | bytearray) -> bytes:
        """Write what fits without blocking; return the rest."""
        view = memoryview(data)
        try:
            while view and self._sink_poll.poll(0):
                view = view[os.write(self._sink, view[:_CHUNK]) :]
        except OSError:
            self._lose_sink()
            return b""
        return bytes(view)

    def _writable(self) -> None:
        data = bytes(self._backlog[: 16 * _CHUNK])
        rest = self._push(data)
        del self._backlog[: len(data) - len(rest)]
        if not self._backlog:
            self._loop.remove_writer(self._sink)
            self.drained.set()
            if not self._reading and not self._ended and not self._threaded:
                self._loop.add_reader(self._source, self._readable)
                self._reading = True
