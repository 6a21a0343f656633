"""The thoughts of a run as one text that grows: what is said first is heard first.

Of answers that stream in at the same time one is passed on piece by piece; the others wait until it is whole. Where an
answer is data, the texts in it are passed on and its punctuation is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....supervisor import RunEvent

MAX_WAITING_CHARS: Final = 20_000
_REMEMBERED: Final = 20_000
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "", "b": "", "f": ""}
_UNIT: Final = r"\\u[0-9a-f]{4}"
_FIRST_HALF: Final = r"\\ud[89ab][0-9a-f]{2}"
_WHOLE: Final = re.compile(
    rf'(?:[^"\\]|\\[^u]|{_FIRST_HALF}(?:{_UNIT}|(?=[^\\]|\\[^u]))|(?!{_FIRST_HALF}){_UNIT})*', re.IGNORECASE
)
"""As much of a text as is there, without the first part of an escape or of two that are one character."""
_ESCAPE: Final = re.compile(rf"(?:{_UNIT})+|\\.", re.IGNORECASE | re.DOTALL)
_SPACE: Final = re.compile(r"\s+")


class Readable:
    """The texts in a reply, as it streams in: all of it, or what its JSON holds as values."""

    def __init__(self) -> None:
        self._is_data: bool | None = None
        self._raw = ""
        """What has come in and is not read yet."""
        self._open: list[str] = []
        """The brackets that are open, with `:` after a key of the innermost."""
        self._in_text = self._is_key = self._has_said = False
        self._gap = ""
        """What stands before the next text: an empty line where a member of the whole begins."""

    def feed(self, piece: str) -> str:
        """Return what can be read of a further piece."""
        if self._is_data is None:
            piece = piece.lstrip()
            if not piece:
                return ""
            self._is_data = piece[0] in "{["
        if not self._is_data:
            return piece
        self._raw += piece
        return "".join(self._read())

    def _read(self) -> Iterator[str]:
        while self._raw:
            if self._in_text:
                part = _WHOLE.match(self._raw)[0]  # pyright: ignore[reportOptionalSubscript]
                text = _ESCAPE.sub(_unescape, part)
                if text and not self._is_key:
                    yield self._gap + text if self._has_said else text
                    self._has_said, self._gap = True, ""
                self._raw = self._raw[len(part) :]
                if not self._raw.startswith('"'):
                    # The rest of an escape is still to come.
                    return
                self._raw, self._in_text = self._raw[1:], False
            between, quote, self._raw = self._raw.partition('"')
            for char in between:
                self._step(char)
            if quote:
                self._in_text, self._is_key = True, self._open[-1:] == ["{"]
                self._gap = self._gap or "\n"

    def _step(self, char: str) -> None:
        """Take what stands between two texts."""
        innermost = self._open[-1] if self._open else ""
        if char in "{[" or (char == ":" and innermost == "{"):
            self._open.append(char)
            if self._open == ["{", ":"]:
                self._gap = "\n\n"
        elif char in ",}]" and innermost == ":":
            self._open.pop()
        if char in "}]" and self._open:
            self._open.pop()


def _unescape(escape: re.Match[str]) -> str:
    if not escape[0].startswith("\\u"):
        return _ESCAPES.get(escape[0][1], escape[0][1])
    # Half a character is none.
    return bytes.fromhex(escape[0].replace("\\u", "")).decode("utf-16-be", "ignore")


class Thinking:
    """What a run thinks, event by event."""

    def __init__(self) -> None:
        self._replies: dict[str, Readable] = {}
        self._waiting: dict[str, list[str]] = {}
        self._speaker: str | None = None
        self._said = ""
        """The last of what was passed on, without its spaces."""
        self._begun = False

    def take(self, event: RunEvent) -> Iterator[str]:
        """Yield what an event adds."""
        data = event.data
        if event.kind == "text":
            yield from self._hear(data["effect"], data["text"])
            return
        if event.kind in ("answered", "failed"):
            yield from self._settle(data.get("effect") or "")
        if event.kind == "retrying":
            self._replies.pop(data["effect"], None)
        for thought in data.get("thoughts", ()):
            yield from self._think(thought)

    def _hear(self, effect: str, piece: str) -> Iterator[str]:
        text = self._replies.setdefault(effect, Readable()).feed(piece)
        if not text:
            return
        if self._speaker in (None, effect):
            if self._speaker is None:
                self._speaker = effect
                yield from self._begin()
            yield self._say(text)
        else:
            waiting = self._waiting.setdefault(effect, [])
            if sum(map(len, waiting)) < MAX_WAITING_CHARS:
                waiting.append(text)

    def _settle(self, effect: str) -> Iterator[str]:
        """Let the next one speak when a reply is whole; replies that became whole meanwhile are passed on first."""
        self._replies.pop(effect, None)
        if effect != self._speaker:
            return
        self._speaker = None
        while self._waiting and self._speaker is None:
            following, texts = next(iter(self._waiting.items()))
            del self._waiting[following]
            yield from self._begin()
            yield self._say("".join(texts))
            self._speaker = following if following in self._replies else None

    def _think(self, thought: Mapping[str, Any]) -> Iterator[str]:
        text = str(thought.get("text", "")).strip()
        if not text or _SPACE.sub("", text) in self._said:
            return
        yield from self._begin()
        yield self._say(text)

    def _begin(self) -> Iterator[str]:
        if self._begun:
            yield "\n\n"
        self._begun = True

    def _say(self, text: str) -> str:
        self._said = (self._said + _SPACE.sub("", text))[-_REMEMBERED:]
        return text
