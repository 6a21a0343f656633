"""Readings: what the replies to a question were read as, and the question that follows a reply without use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ..text import without_surrogates
from .effects import Ask, Turn
from .events import Answered

AROUND: Final = "with <answer> before it and </answer> after it"
"""How the mark is asked for; small models copy a mark that is shown with dots in it, and follow these words."""
ALL: Final = "ALL OF IT"
"""What stands in the mark of one who is asked again, where all of the last reply is the answer."""
UNMARKED: Final = "it has no <answer>…</answer>"

MAX_EXCERPT: Final = 2_000
"""Characters of an unusable reply that are shown to whoever is asked again."""

EXTRACT: Final = f"Now write the answer of that reply alone, whole, {AROUND}. Write nothing else."
EXTRACT_LONG: Final = f"{EXTRACT} If all of that long reply is the answer, write <answer>{ALL}</answer>."
"""The extraction question, to a reply that does not say where its answer is; it need not be worked out again."""


class Unreadable(Struct, frozen=True):
    """Why a reply cannot be used; shown to whoever is asked again.

    Attributes:
        is_doubt: It could be used as it is, and is better than none: its reader would rather ask again.
        is_unmarked: It is a text that does not say where its answer is.
        in_part: What can be used of it, as a value and the rung it was read on: at the last try that will do.
    """

    reason: str
    is_doubt: bool = False
    is_unmarked: bool = False
    in_part: tuple[Any, str] | None = None


class Reading(Struct, frozen=True, omit_defaults=True):
    """What a reply was read as, recorded with it so that later readers of other code find the same.

    Attributes:
        mode: The rung it was read on: `native`, or one of `reading.parse`; empty if it could not be read.
        value: The value; as plain data where the reading comes from a record.
        refusal: Why it could not be read, as whoever is asked again is told.
        doubted: It could be used, but is doubted; see `Unreadable.is_doubt`.
        unmarked: It is a reply that does not say where its answer is.
        lost: What of the reply was left out, and why, where it was taken in part.
    """

    mode: str = ""
    value: Any = None
    refusal: str | None = None
    doubted: bool = False
    unmarked: bool = False
    lost: str = ""

    @property
    def title(self) -> str:
        """How the reply was read, for people: the mode, `in part: LOST`, or `unreadable: REASON`."""
        mode = f"in part: {self.lost}" if self.lost else self.mode
        return mode if self.refusal is None else f"unreadable: {self.refusal}"


def is_last_try(ask: Ask, replies: Sequence[Answered]) -> bool:
    """Whether a question is not asked again after the latest of its replies; the same reply twice ends the asking."""
    return len(replies) > ask.retries or (len(replies) > 1 and replies[-1].text == replies[-2].text)


def ask_again(ask: Ask, reply: Answered, reading: Reading) -> Ask:
    """Return the question with one turn more: the last reply, and what is wrong with it.

    A reply that does not say where its answer is is asked for that alone; where this brings nothing, and for any other
    fault, the question is to be answered again, after a reply that was cut off more briefly.
    """
    text = without_surrogates(reply.text).strip()
    is_extraction = bool(ask.turns) and EXTRACT in ask.turns[-1].objection
    if reading.unmarked and not is_extraction:
        # The answer may stand anywhere in it, so that all of it is shown.
        shown = text
        fault = "" if reading.refusal == UNMARKED else _as_sentence(reading.refusal or "")
        objection = f"{fault} {EXTRACT_LONG if len(text) > MAX_EXCERPT else EXTRACT}".strip()
    else:
        shown, how = _excerpt(text), ", much more briefly" if reply.truncated else ""
        if ask.mark:
            how += f", and write the answer {AROUND}"
        elif ask.form is not None:
            how += " with one JSON object of the form asked for, and nothing else"
        objection = f"{_as_sentence(reading.refusal or '')} Answer the question again{how}."
    return replace(ask, turns=(*ask.turns, Turn(shown or "(nothing)", objection)))


def _as_sentence(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:]}." if reason else ""


def _excerpt(text: str) -> str:
    if len(text) <= MAX_EXCERPT:
        return text
    half = MAX_EXCERPT // 2
    return f"{text[:half]}\n…\n{text[-half:]}"
