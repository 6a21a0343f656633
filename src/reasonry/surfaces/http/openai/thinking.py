"""The thoughts of a run as one text that grows.

Of answers that come in at the same time the first is passed on piece by piece, the others as the thoughts that they
become. Where an answer is data, the texts in it are passed on and its punctuation is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ....supervisor import RunEvent
from ...present import count_of

SAY_SPEND_MS: Final = 5_000
"""After so long, run time, what a run has spent so far is said again."""
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
        self._open = ""
        """The brackets that are open, with `:` after a key of the innermost."""
        self._in_text = self._is_key = self._has_said = False
        self._gap = ""
        """What stands before the next text: an empty line where a member of the whole begins."""

    def feed(self, piece: str) -> str:
        """Return what can be read of a further piece."""
        if self._is_data is None:
            piece = piece.lstrip()
            self._is_data = piece[0] in "{[" if piece else None
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
                self._in_text, self._is_key = True, self._open.endswith("{")
                self._gap = self._gap or "\n"

    def _step(self, char: str) -> None:
        """Take what stands between two texts."""
        if char in "{[" or (char == ":" and self._open.endswith("{")):
            self._open += char
            self._gap = "\n\n" if self._open == "{:" else self._gap
        elif char in ",}]":
            self._open = self._open.removesuffix(":")
            self._open = self._open[:-1] if char != "," else self._open


def _unescape(escape: re.Match[str]) -> str:
    if not escape[0].startswith("\\u"):
        return _ESCAPES.get(escape[0][1], escape[0][1])
    # Half a character is none.
    return bytes.fromhex(escape[0].replace("\\u", "")).decode("utf-16-be", "ignore")


class Thinking:
    """What a run thinks, event by event; each thought is a paragraph of its own."""

    def __init__(self) -> None:
        self._begun = set[str]()
        """The replies that have begun to come in."""
        self._speaker, self._has_spoken, self._reply = "", False, Readable()
        """The reply that is passed on, whether any of it was, and what can be read of it."""
        self._said = ""
        """The last of what was passed on, without its spaces."""
        self._spend_said_ms = 0

    def take(self, event: RunEvent) -> Iterator[str]:
        """Yield what an event adds."""
        data, effect = event.data, event.data.get("effect") or ""
        if event.kind == "text":
            if not self._speaker and effect not in self._begun:
                self._speaker, self._has_spoken, self._reply = effect, False, Readable()
            self._begun.add(effect)
            if effect == self._speaker and (text := self._reply.feed(data["text"])):
                yield self._say(text, begins=not self._has_spoken)
                self._has_spoken = True
            return
        if event.kind in ("answered", "failed", "retrying"):
            self._begun.discard(effect)
            self._speaker = "" if effect == self._speaker else self._speaker
        for thought in data.get("thoughts", ()):
            text = str(thought.get("text", "")).strip()
            if text and _SPACE.sub("", text) not in self._said:
                yield self._say(text, begins=True)
        if not self._speaker and data.get("at_ms", 0) >= self._spend_said_ms + SAY_SPEND_MS:
            self._spend_said_ms = data["at_ms"]
            spent = f"({count_of(data['usage']['calls'], 'call')}, {data['at_ms'] // 1_000} s so far)"
            yield self._say(spent, begins=True)

    def _say(self, text: str, *, begins: bool) -> str:
        self._said = (self._said + _SPACE.sub("", text))[-_REMEMBERED:]
        return f"\n\n{text}" if begins else text
