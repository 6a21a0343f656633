"""Server-sent events, line by line: time linear in the bytes, and limits that no server gets around.

Chat completions put each event's JSON on one `data:` line, so a line with data is an event. Other fields, comments
and empty lines are passed over, but count against the limits.
"""

from __future__ import annotations

from ..errors import ModelError

MAX_LINE_BYTES = 2_000_000
MAX_LINES = 1_000_000


class EventLines:
    """Splits one stream into lines.

    Args:
        server: Host and port, for errors.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._begun: list[bytes] = []
        self._begun_bytes = 0
        self._count = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the lines that end in this piece, without their ends.

        Raises:
            ModelError: A line is too long, or there are too many.
        """
        # A line ends with CR LF, LF or CR. CR LF makes an empty line here, which means nothing.
        first, *rest = piece.replace(b"\r", b"\n").split(b"\n")
        self._begun.append(first)
        self._begun_bytes += len(first)
        lines: list[bytes] = []
        if rest:
            *whole, last = rest
            lines = [b"".join(self._begun), *whole]
            self._begun, self._begun_bytes = [last], len(last)
        self._count += len(lines)
        if self._begun_bytes > MAX_LINE_BYTES or any(len(line) > MAX_LINE_BYTES for line in lines):
            raise self._limit_error(f"an event of more than {MAX_LINE_BYTES:,} bytes")
        if self._count > MAX_LINES:
            raise self._limit_error(f"a stream of more than {MAX_LINES:,} lines")
        return lines

    def data(self, piece: bytes) -> list[bytes]:
        """Return the data of the events that end in this piece; events without data are left out.

        Raises:
            ModelError: A line is too long, or there are too many.
        """
        found = (line[5:].strip() for line in self.feed(piece) if line.startswith(b"data:"))
        return [data for data in found if data]

    def _limit_error(self, subject: str) -> ModelError:
        return ModelError(f"{self._server} sent {subject}", retryable=True)
