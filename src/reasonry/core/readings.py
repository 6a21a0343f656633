"""The readings of replies, and the question that follows an unusable reply."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ..text import without_surrogates
from .effects import Ask, Turn
from .events import Answered

AROUND: Final = "with <answer> before it and </answer> after it"
"""Words that ask for the mark. Small models follow them, but would copy the dots of `<answer>…</answer>`."""
ALL: Final = "ALL OF IT"
"""A second reply with this text in its mark declares that the whole first reply is the answer."""
UNMARKED: Final = "it has no <answer>…</answer>"

MAX_EXCERPT: Final = 2_000
"""How many characters of an unusable reply the next question quotes."""

EXTRACT: Final = f"Now write the answer of that reply alone, whole, {AROUND}. Write nothing else."
EXTRACT_LONG: Final = f"{EXTRACT} If all of that long reply is the answer, write <answer>{ALL}</answer>."
"""Asks for the answer of a long reply without a mark, so that the model need not solve the problem again."""


class Unreadable(Struct, frozen=True):
    """The reason why a reply cannot be used. The next question states the reason.

    Attributes:
        is_doubt: Whether the reader prefers another try, but accepts this reply on the last try.
        is_unmarked: Whether the reply is text without a mark around its answer.
        in_part: The usable part: its value, and the name of the method that read it. The last try accepts this part.
    """

    reason: str
    is_doubt: bool = False
    is_unmarked: bool = False
    in_part: tuple[Any, str] | None = None


class Reading(Struct, frozen=True, omit_defaults=True, gc=False):
    """The reading of a reply. It is recorded with the reply, so later versions of the code use the same reading.

    Attributes:
        mode: The name of the method that read the reply, such as `native` or `json`. Empty for an unreadable reply.
        value: The value of the reply. If the reading comes from a record, the value is plain data.
        refusal: The reason why the reply is unreadable, for the next question. None for a readable reply.
        doubted: See `Unreadable.is_doubt`.
        unmarked: See `Unreadable.is_unmarked`.
        lost: If the reply was accepted in part: the part that was left out, and the reason.
    """

    mode: str = ""
    value: Any = None
    refusal: str | None = None
    doubted: bool = False
    unmarked: bool = False
    lost: str = ""

    @property
    def title(self) -> str:
        """The text that shows the reading: the mode, or `in part: LOST`, or `unreadable: REASON`."""
        mode = f"in part: {self.lost}" if self.lost else self.mode
        return mode if self.refusal is None else f"unreadable: {self.refusal}"


def is_last_try(ask: Ask, replies: Sequence[Answered]) -> bool:
    """Whether a question gets no further try: no retry is left, or the last two replies are equal."""
    return len(replies) > ask.retries or (len(replies) > 1 and replies[-1].text == replies[-2].text)


def ask_again(ask: Ask, reply: Answered, reading: Reading) -> Ask:
    """Add a turn to the question: the last reply, and the objection to it.

    After a reply without a mark, the objection asks only for the answer of that reply. If the last objection
    asked this already, or after another fault, the objection asks for a new answer, briefer if the reply was cut off.
    """
    text = without_surrogates(reply.text).strip()
    is_extraction = bool(ask.turns) and EXTRACT in ask.turns[-1].objection
    if reading.unmarked and not is_extraction:
        # The answer may be anywhere in the reply, so the whole reply is quoted.
        shown = text
        fault = "" if reading.refusal == UNMARKED else _as_sentence(reading.refusal or "")
        objection = f"{fault} {EXTRACT_LONG if len(text) > MAX_EXCERPT else EXTRACT}".strip()
    else:
        half, how = MAX_EXCERPT // 2, ", much more briefly" if reply.truncated else ""
        shown = text if len(text) <= MAX_EXCERPT else f"{text[:half]}\n…\n{text[-half:]}"
        if ask.mark:
            how += f", and write the answer {AROUND}"
        elif ask.form is not None:
            how += " with one JSON object of the form asked for, and nothing else"
        objection = f"{_as_sentence(reading.refusal or '')} Answer the question again{how}."
    return replace(ask, turns=(*ask.turns, Turn(shown or "(nothing)", objection)))


def _as_sentence(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:]}." if reason else ""
