"""A box around each thought on standard error, for the people who watch the server's log."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import select
import threading
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from ...masking import SECRETS
from .tools import Document

_COLOURS = {"💭 Thought": "34", "🔄 Revision": "33", "🌿 Branch": "32"}
_INERT = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
_MAX_WIDTH = 100
_MAX_LINES = 400
_MAX_CHARS = 20_000
_CHUNK = 4096
_MAX_WAITING = 64
"""Boxes that wait to be written, where a thread writes them."""
_FINISH_S = 0.2
"""How long the last of them may take."""


def width(text: str) -> int:
    """Return how many columns a terminal gives the text."""
    return len(text) if text.isascii() else sum(_widths(text))


def _widths(text: str) -> list[int]:
    """Return the columns of each character; what a joiner joins to the character before it takes none."""
    widths, before = list[int](), ""
    for char in text:
        widths.append(0 if before == "\u200d" and char > "\u2000" else _columns(char))
        before = char
    return widths


@lru_cache(maxsize=4096)
def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def inert(text: str) -> str:
    """Return the text with all that could steer a terminal shown, not performed; tabs become spaces."""
    text = text.replace("\r\n", "\n").expandtabs(4)
    return _INERT.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def wrap(text: str, columns: int) -> list[str]:
    """Break text into lines of at most so many columns, at spaces where there are any."""
    return [line for paragraph in text.split("\n") for line in _fold(paragraph, columns)]


def _fold(text: str, columns: int) -> Iterator[str]:
    widths = None if text.isascii() else _widths(text)
    start = 0
    while (cut := _cut(text, widths, start, columns)) < len(text):
        space = text.rfind(" ", start + 1, cut + 1)
        end = space if space > 0 else cut
        yield text[start:end].rstrip(" ")
        start = end + 1 if text[end] == " " else end
    yield text[start:]


def _cut(text: str, widths: list[int] | None, start: int, columns: int) -> int:
    """Return where a line from `start` must end at the latest; at least one character on."""
    if widths is None:
        return start + columns
    used = 0
    for index in range(start, len(text)):
        used += widths[index]
        if used > columns and index > start:
            return index
    return len(text)


def heading(arguments: Mapping[str, Any], document: Document) -> tuple[str, str]:
    """Return the kind of a thought, and its heading."""
    place = f"{document.get('thoughtNumber', '?')}/{document.get('totalThoughts', '?')}"
    if arguments.get("isRevision") or arguments.get("revisesThought") is not None:
        kind, about = "🔄 Revision", f" (revising thought {arguments.get('revisesThought', '?')})"
    elif arguments.get("branchFromThought") is not None:
        # Where the call has no id, the branch it began is the latest.
        branch = arguments.get("branchId") or (document.get("branches") or ["?"])[-1]
        kind, about = "🌿 Branch", f" (from thought {arguments['branchFromThought']}, ID: {branch})"
    else:
        kind, about = "💭 Thought", ""
    stage = document.get("stage")
    return kind, f"{kind} {place}{about}" + (f" · {stage}" if stage else "")


def draw_thought(arguments: Mapping[str, Any], document: Document, *, colour: bool, columns: int) -> str:
    """Return the box around a thought."""
    kind, title = heading(arguments, document)
    room = max(columns - 4, 16)
    head = wrap(inert(title.replace("\n", " ")), room)
    thought = str(arguments.get("thought", ""))
    body = wrap(inert(thought[:_MAX_CHARS]), room)
    if len(body) > _MAX_LINES or len(thought) > _MAX_CHARS:
        body = [*body[:_MAX_LINES], f"… {len(thought):,} characters in all"]
    inner = max(map(width, [*head, *body]))
    paint = f"\x1b[{_COLOURS[kind]}m" if colour else ""
    plain = "\x1b[0m" if colour else ""

    def row(line: str, tint: str = "") -> str:
        reset = plain if tint else ""
        padding = " " * (inner - width(line))
        return f"{paint}│{plain} {tint}{line}{reset}{padding} {paint}│{plain}"

    rule = "─" * (inner + 2)
    rows = [
        f"{paint}┌{rule}┐{plain}",
        *(row(line, paint) for line in head),
        f"{paint}├{rule}┤{plain}",
        *(row(line) for line in body),
        f"{paint}└{rule}┘{plain}",
    ]
    return "\n" + "\n".join(rows) + "\n"


def tell(sink: int, text: str) -> None:
    """Write a line to a descriptor that may have no reader."""
    writer = _PolledSink(sink) if hasattr(select, "poll") else _ThreadedSink(sink)
    writer.write(f"{inert(SECRETS.mask(text))}\n".encode("utf-8", "backslashreplace"))
    writer.finish()


class ThoughtLog:
    """Draws each thought on a descriptor that may have no reader: it never waits, it leaves out instead.

    Args:
        sink: The descriptor.
        environ: `NO_COLOR` and `FORCE_COLOR` are heeded.
    """

    def __init__(self, sink: int, environ: Mapping[str, str]) -> None:
        self._sink = _PolledSink(sink) if hasattr(select, "poll") else _ThreadedSink(sink)
        is_terminal = os.isatty(sink)
        self._colour = not environ.get("NO_COLOR") and (is_terminal or bool(environ.get("FORCE_COLOR")))
        self._columns = min(os.get_terminal_size(sink).columns, _MAX_WIDTH) if is_terminal else 80

    def __call__(self, tool: str, arguments: Document, document: Document) -> None:
        """Draw what was thought."""
        if tool == "sequentialthinking":
            drawn = draw_thought(
                SECRETS.mask_data(arguments), document, colour=self._colour, columns=self._columns
            )
            self._sink.write(drawn.encode("utf-8", "backslashreplace"))

    def finish(self) -> None:
        """Give what was drawn a moment to be read."""
        self._sink.finish()


class _PolledSink:
    """Writes to a descriptor as much as it takes at once."""

    def __init__(self, sink: int) -> None:
        self._sink, self._poll = sink, select.poll()
        self._poll.register(sink, select.POLLOUT)

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        with contextlib.suppress(OSError):
            while view and any(event & select.POLLOUT for _, event in self._poll.poll(0)):
                view = view[os.write(self._sink, view[:_CHUNK]) :]

    def finish(self) -> None:
        """Nothing waits."""


class _ThreadedSink:
    """Has a thread write to a descriptor, for systems where it cannot be polled."""

    def __init__(self, sink: int) -> None:
        self._sink = sink
        self._waiting = queue.Queue[bytes | None](maxsize=_MAX_WAITING)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def write(self, data: bytes | None) -> None:
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(data)

    def finish(self) -> None:
        self.write(None)
        self._thread.join(_FINISH_S)

    def _work(self) -> None:
        with contextlib.suppress(OSError):
            while (data := self._waiting.get()) is not None:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._sink, view) :]


def wants_log(environ: Mapping[str, str]) -> bool:
    """Whether thoughts are to be drawn."""
    return environ.get("DISABLE_THOUGHT_LOGGING", "").strip().lower() != "true"
