"""Requests byte by byte, for what no client sends."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import msgspec

from .serving import Serving


class Wire:
    """A connection to a server."""

    def __init__(self, serving: Serving) -> None:
        place = urlsplit(serving.url)
        self.host = place.netloc
        self.socket = socket.create_connection((str(place.hostname), place.port or 0), timeout=10)
        self._received = b""

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, *pieces: bytes, pause_s: float = 0.0) -> None:
        """Send bytes; a peer that has closed the connection is no error here."""
        for piece in pieces:
            try:
                self.socket.sendall(piece)
            except (BrokenPipeError, ConnectionResetError):
                return
            time.sleep(pause_s)

    def answer(self) -> tuple[int, Any]:
        """Return the status of the next response, and its JSON if it is that; (0, None): there is none."""
        if not (head := self.head()):
            return 0, None
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
        length = int(lengths[0].split(b":")[1])
        while len(self._received) < length and (more := self._receive()):
            self._received += more
        body, self._received = self._received[:length], self._received[length:]
        is_json = b"application/json" in head
        return int(head.split()[1]), msgspec.json.decode(body) if is_json else None

    def head(self) -> bytes:
        """Return the head of the next response; nothing where there is none."""
        while b"\r\n\r\n" not in self._received:
            if not (more := self._receive()):
                return b""
            self._received += more
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        return head

    def rest(self) -> bytes:
        """Return all that comes until the other side ends the connection."""
        data, self._received = self._received, b""
        while more := self._receive():
            data += more
        return data

    def _receive(self) -> bytes:
        try:
            return self.socket.recv(65_536)
        except ConnectionResetError:
            return b""


def head(serving: Serving, line: str, *headers: str) -> bytes:
    """Return the head of a request."""
    host = serving.url.removeprefix("http://")
    return f"{line} HTTP/1.1\r\nHost: {host}\r\n{''.join(headers)}\r\n".encode()


@contextmanager
def wires(serving: Serving, count: int, sent: bytes, pause_s: float = 0) -> Iterator[list[Wire]]:
    """Open connections that each send the same."""
    with ExitStack() as held:
        opened = list[Wire]()
        for _ in range(count):
            opened.append(held.enter_context(Wire(serving)))
            opened[-1].send(sent, pause_s=pause_s)
        yield opened


def ask(serving: Serving, *lines: str, body: bytes = b"") -> tuple[int, Any]:
    """Send one request, of a request line and headers as they are, and return status and JSON of the answer."""
    with Wire(serving) as wire:
        wire.send("".join(f"{line}\r\n" for line in lines).encode("latin-1") + b"\r\n" + body)
        return wire.answer()
