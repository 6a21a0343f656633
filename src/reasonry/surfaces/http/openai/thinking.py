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
_SPACE: Final = re.compile(r"\s+")


class Readable:
    """The texts in a reply, as it streams in: all of it, or what its JSON holds as values."""

    def __init__(self) -> None:
        self._is_data: bool | None = None
        self._open: list[str] = []
        """The brackets that are open, with `:` after a key of the innermost."""
        self._text: str | None = None
        """The last characters of the text that is being read; None between texts."""
        self._is_key = False
        self._has_said, self._gap = False, ""
        """The gap is what stands before the next text: an empty line where a member of the whole begins."""
        self._half = 0
        """The first half of a character that is written as two escapes."""

    def feed(self, piece: str) -> str:
        """Return what can be read of a further piece."""
        if self._is_data is None:
            piece = piece.lstrip()
            if not piece:
                return ""
            self._is_data = piece[0] in "{["
        return "".join(self._read(piece)) if self._is_data else piece

    def _read(self, piece: str) -> Iterator[str]:
        for char in piece:
            if self._text is not None:
                yield from self._read_text(char)
            elif char == '"':
                self._text, self._is_key = "", bool(self._open) and self._open[-1] == "{"
                self._gap = self._gap or "\n"
            else:
                self._step(char)

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

    def _read_text(self, char: str) -> Iterator[str]:
        assert self._text is not None
        escape, text = self._text, ""
        if escape:
            self._text = ""
            if escape[1:2] == "u" or (escape == "\\" and char == "u"):
                self._text = escape + char
                if len(self._text) == 6:
                    text, self._text = self._character(self._text[2:]), ""
            else:
                text = _ESCAPES.get(char, char)
        elif char == "\\":
            self._text = char
        elif char == '"':
            self._text = None
        else:
            text = char
        if text and not self._is_key:
            if self._has_said:
                yield self._gap
            self._has_said, self._gap = True, ""
            yield text

    def _character(self, digits: str) -> str:
        """Return the character of an escape; the first half of a pair waits for the other, half a pair is none."""
        try:
            code = int(digits, 16)
        except ValueError:
            return ""
        half, self._half = self._half, 0
        if 0xD800 <= code < 0xDC00:
            self._half = code
            return ""
        if 0xDC00 <= code < 0xE000:
            return chr(0x10000 + ((half - 0xD800) << 10) + code - 0xDC00) if half else ""
        return chr(code)


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
