"""Lines over file descriptors, without ever blocking the event loop.

Where descriptors can be polled, no thread is needed: a pipe that polls as writable takes `PIPE_BUF` bytes without
blocking, so descriptors keep their blocking mode, which they may share with a terminal or another process. Where they
cannot, as files and on Windows, one thread reads and one writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import select
import stat
import threading
from collections.abc import Callable

_CHUNK = 4096
_READ = 1 << 16
_HIGH_WATER = 1 << 20
"""Reading stops while this much waits for a client that does not read."""

OnLine = Callable[[bytes], None]


def open_transport(source: int, sink: int, *, max_line: int, on_end: Callable[[], None]) -> StdioTransport:
    """Return a transport over two descriptors, as these and this system are."""
    mode = os.fstat(source).st_mode
    can_poll = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(source)
    kind = PolledTransport if can_poll and hasattr(select, "poll") else ThreadedTransport
    return kind(source, sink, max_line=max_line, on_end=on_end)


class StdioTransport:
    """Reads lines from one descriptor and writes them to another.

    Args:
        on_end: Called once, when the other side closes either descriptor.

    Attributes:
        drained: Set while nothing waits to be written.
    """

    def __init__(self, source: int, sink: int, *, max_line: int, on_end: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._source, self._sink = source, sink
        self._max_line = max_line
        self._on_end = on_end
        self._partial = bytearray()
        self._skipping = self._ended = False
        self.drained = asyncio.Event()
        self.drained.set()

    def start(self, on_line: OnLine, on_long_line: OnLine) -> None:
        """Begin to read.

        Args:
            on_line: Called with each line, without its end.
            on_long_line: Called with the head of a line over `max_line`, which is skipped.
        """
        self._on_line, self._on_long_line = on_line, on_long_line
        self._listen()

    def stop(self) -> None:
        """Read no more; what waits to be written may still go out."""
        self._ended = True

    def close(self) -> None:
        """Let go of both descriptors, which stay open."""
        self.stop()

    def send(self, line: bytes) -> None:
        """Write a line, as soon as the other side reads."""
        raise NotImplementedError

    def _listen(self) -> None:
        raise NotImplementedError

    def _read(self) -> bytes:
        try:
            return os.read(self._source, _READ)
        except OSError:
            return b""

    def _finish(self) -> None:
        """Take the end of input for the end of a line, too."""
        if self._partial and not self._ended:
            self._take(b"\n")
        self._end()

    def _end(self) -> None:
        if not self._ended:
            self.stop()
            self._on_end()

    def _take(self, data: bytes) -> None:
        if self._ended:
            return
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


class PolledTransport(StdioTransport):
    """Watches its descriptors; it needs no thread."""

    def __init__(self, source: int, sink: int, *, max_line: int, on_end: Callable[[], None]) -> None:
        super().__init__(source, sink, max_line=max_line, on_end=on_end)
        self._backlog = bytearray()
        self._reading = False
        self._sink_poll = select.poll()
        self._sink_poll.register(sink, select.POLLOUT)

    def _listen(self) -> None:
        self._loop.add_reader(self._source, self._readable)
        self._reading = True
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
        super().stop()

    def close(self) -> None:
        """Let go of both descriptors, which stay open."""
        super().close()
        self._loop.remove_reader(self._sink)
        self._loop.remove_writer(self._sink)

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

    def _readable(self) -> None:
        data = self._read()
        if data:
            self._take(data)
        else:
            self._finish()

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
            if not self._reading and not self._ended:
                self._loop.add_reader(self._source, self._readable)
                self._reading = True


class ThreadedTransport(StdioTransport):
    """Has one thread read and one write; it needs nothing of the event loop."""

    def __init__(self, source: int, sink: int, *, max_line: int, on_end: Callable[[], None]) -> None:
        super().__init__(source, sink, max_line=max_line, on_end=on_end)
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._waiting = 0
        """Bytes handed to the writing thread and not yet written."""
        self._may_read = threading.Event()
        self._may_read.set()

    def _listen(self) -> None:
        for work in (self._read_in_thread, self._write_in_thread):
            threading.Thread(target=work, daemon=True).start()

    def _read_in_thread(self) -> None:
        # The loop may be closed while this thread waits.
        with contextlib.suppress(RuntimeError):
            while data := self._read():
                self._loop.call_soon_threadsafe(self._take, data)
            self._loop.call_soon_threadsafe(self._finish)

    def _read(self) -> bytes:
        self._may_read.wait()
        return super()._read()

    def close(self) -> None:
        """Let go of both descriptors, which stay open."""
        super().close()
        self._outgoing.put(None)

    def send(self, line: bytes) -> None:
        """Write a line, as soon as the other side reads."""
        self._waiting += len(line)
        self.drained.clear()
        if self._waiting > _HIGH_WATER:
            self._may_read.clear()
        self._outgoing.put(line)

    def _write_in_thread(self) -> None:
        # The loop may be closed while this thread waits.
        with contextlib.suppress(RuntimeError):
            while (line := self._outgoing.get()) is not None:
                view = memoryview(line)
                try:
                    while view:
                        view = view[os.write(self._sink, view) :]
                except OSError:
                    self._loop.call_soon_threadsafe(self._lose_sink)
                    return
                self._loop.call_soon_threadsafe(self._count_written, len(line))

    def _count_written(self, count: int) -> None:
        self._waiting -= count
        if self._waiting == 0:
            self.drained.set()
            self._may_read.set()

    def _lose_sink(self) -> None:
        self.drained.set()
        self._may_read.set()
        self._end()
