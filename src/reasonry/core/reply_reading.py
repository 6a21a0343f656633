"""Reading a reply the way its stage reads, and reading it the same way again from a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import ConflictError
from . import parse
from .effects import Ask
from .events import Answered
from .fit import Unreadable
from .strategy import Stage


class Reading(Struct, frozen=True, omit_defaults=True):
    """What a reply was read as, recorded with it so that later readers of other code find the same.

    Attributes:
        mode: The rung it was read on: `native`, or one of `core.parse`; empty if it could not be read.
        value: The value; as plain data where the reading comes from a record.
        refusal: Why it could not be read, as whoever is asked again is told.
    """

    mode: str = ""
    value: Any = None
    refusal: str | None = None

    @property
    def title(self) -> str:
        """How the reply was read, for people: the mode, or `unreadable: REASON`."""
        return self.mode if self.refusal is None else f"unreadable: {self.refusal}"


def read_reply(stage: Stage[Any], state: Any, effect: Ask, replies: Sequence[Answered]) -> Reading:
    """Read the latest reply the way its stage reads."""
    latest = replies[-1]
    if latest.refused:
        return Reading(refusal="the answer was declined; answer the question as asked")
    if latest.truncated and not parse.is_whole(latest.text):
        return Reading(refusal="the reply was cut off before its end; answer more briefly")
    texts = [parse.without_thinking(reply.text) for reply in replies]
    shown = parse.question_text(effect)
    if reason := parse.no_reply(texts[-1], shown):
        return Reading(refusal=reason)
    if stage.read is not None:
        result = stage.read(state, effect, texts)
    elif stage.reply is not None:
        result = parse.read_form(texts[-1], stage.reply, shown=shown)
    else:
        result = texts[-1], "text"
    if isinstance(result, Unreadable):
        return Reading(refusal=result.reason)
    return Reading("native" if latest.native else result[1], result[0])


def convert_reading(stage: Stage[Any], recorded: Reading) -> Reading:
    """Return a recorded reading with its value in the stage's own type.

    Raises:
        ConflictError: `strategy_changed`: the value does not fit the stage as it is today.
    """
    kind = stage.value_type
    if recorded.refusal is not None or kind is None:
        return recorded
    try:
        return replace(recorded, value=msgspec.convert(recorded.value, kind))
    except (msgspec.ValidationError, ValueError) as error:
        raise ConflictError(
            f"a recorded answer does not fit stage {stage.name!r} as it is today: {error}",
            code="strategy_changed",
            stage=stage.name,
        ) from error
