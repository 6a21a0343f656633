"""The thoughts of a run as one text that grows.

Of answers that come in at the same time the first is passed on piece by piece, the others as the thoughts that they
become. Where an answer is data, the texts in it are passed on and its punctuation is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from pydantic_core import from_json

from ....supervisor import RunEvent
from ...present import count_of

SAY_SPEND_MS: Final = 5_000
"""After so long, run time, what a run has spent so far is said again."""
_REMEMBERED: Final = 20_000
_SPACE: Final = re.compile(r"\s+")


class Readable:
    """The texts in a reply, as it streams in: all of it, or what its JSON holds as values; `text` has them so far."""

    def __init__(self) -> None:
        self._raw = self.text = ""

    def feed(self, piece: str) -> str:
        """Return what can be read of a further piece."""
        self._raw = self._raw + piece if self._raw else piece.lstrip()
        before, self.text = self.text, self._read()
        return self.text[len(before) :]

    def _read(self) -> str:
        if not self._raw.startswith(("{", "[")):
            return self._raw
        with suppress(ValueError):
            data = from_json(self._raw, allow_partial="trailing-strings")
            members = data.values() if isinstance(data, dict) else [data]
            # A member of the whole begins after an empty line.
            return "\n\n".join(filter(None, ("\n".join(_texts(member)) for member in members)))
        return self.text


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _texts(part)]


class Thinking:
    """The thoughts of a run, event by event; each thought is a paragraph of its own."""

    def __init__(self) -> None:
        self._begun = set[str]()
        """The replies that have begun to come in."""
        self._speaker, self._reply = "", Readable()
        """The reply that is passed on, and what can be read of it."""
        self._said = ""
        """The last of what was passed on, without its spaces."""
        self._spend_said_ms = 0

    def take(self, event: RunEvent) -> Iterator[str]:
        """Yield what an event adds."""
        data, effect = event.data, event.data.get("effect") or ""
        if event.kind == "text":
            if not self._speaker and effect not in self._begun:
                self._speaker, self._reply = effect, Readable()
            self._begun.add(effect)
            if effect == self._speaker and (text := self._reply.feed(data["text"])):
                yield self._say(text, begins=text == self._reply.text)
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
