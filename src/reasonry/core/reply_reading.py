"""Reading a reply the way its stage reads, again from a record, and asking again for one that could not be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import ConflictError
from ..reading import parse
from ..reading.fit import Unreadable, without_misfits
from ..reading.json_in_text import is_whole, json_values
from ..reading.mark import ALL, AROUND, UNMARKED, closes_mark
from ..reading.thinking import echo_in, without_thinking
from ..text import repeats_itself, without_surrogates
from .effects import Ask, Turn
from .events import Answered
from .json_schema import faults
from .strategy import Stage

MAX_EXCERPT: Final = 2_000
"""Characters of an unusable reply that are shown to whoever is asked again."""

EXTRACT: Final = f"Now write the answer of that reply alone, whole, {AROUND}. Write nothing else."
EXTRACT_LONG: Final = f"{EXTRACT} If all of that long reply is the answer, write <answer>{ALL}</answer>."
"""The extraction question, to a reply that does not say where its answer is; it need not be worked out again."""


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


UNMARKED_MODE: Final = "unmarked"
"""The mode of a reply that is the answer as a whole, since it never said where its answer is."""


def read_reply(stage: Stage[Any], state: Any, effect: Ask, replies: Sequence[Answered]) -> Reading:
    """Read the latest reply the way its stage reads.

    At the last try a text without a mark is the answer as a whole, with the mode `unmarked`, and of data the lists lose
    the entries that do not fit: of the replies that can be used so, those of the one that keeps most, the latest of
    equals.

    Args:
        replies: Those to this question that count as tries, oldest first.
    """
    latest = replies[-1]
    texts = [without_thinking(reply.text) for reply in replies]
    fault = _fault_of(effect, latest, texts[-1])
    reading = Reading(refusal=fault) if fault else _read(stage, state, effect, texts)
    is_lost = reading.refusal is not None and is_last_try(effect, replies)
    if is_lost and not reading.unmarked:
        usable = [n for n, reply in enumerate(replies, 1) if not _fault_of(effect, reply, texts[n - 1])]
        parts = (_read_in_part(stage, state, effect, texts[:n]) for n in reversed(usable))
        return max(filter(None, parts), key=lambda part: _count(part.value), default=reading)
    if is_lost and not effect.wants_value:
        whole = _read(stage, state, effect, [_last_work(effect, texts), f"<answer>{ALL}</answer>"])
        return reading if whole.refusal is not None else replace(whole, mode=UNMARKED_MODE)
    if reading.mode != "json" or not (latest.native and _fits(latest.text, effect.form or {})):
        return reading
    # A server may take a schema, and not hold the reply to it.
    return replace(reading, mode="native")


def _fault_of(effect: Ask, reply: Answered, text: str) -> str:
    """Return why a reply is not even read; empty where it is."""
    if reply.refused:
        return "the answer was declined; answer the question as asked"
    if not reply.truncated or is_whole(reply.text) or (effect.mark and closes_mark(text)):
        return ""
    fault = "repeated itself over and over" if repeats_itself(reply.text) else "was cut off before its end"
    return f"the reply {fault}; answer more briefly"


def _count(value: Any) -> int:
    """Return how many values there are in a value."""
    plain = msgspec.to_builtins(value)
    inner = plain.values() if isinstance(plain, dict) else plain if isinstance(plain, list | tuple) else None
    return 1 if inner is None else sum(map(_count, inner))


def is_last_try(ask: Ask, replies: Sequence[Answered]) -> bool:
    """Whether a question is not asked again after the latest of its replies; the same reply twice ends the asking."""
    return len(replies) > ask.retries or (len(replies) > 1 and replies[-1].text == replies[-2].text)


def _read_in_part(stage: Stage[Any], state: Any, effect: Ask, texts: Sequence[str]) -> Reading | None:
    """Read the last reply without the entries of lists that do not fit; its stage says whether the rest will do."""
    *before, latest = texts
    found: list[Reading] = []
    for value, _ in json_values(latest):
        kept, lost = without_misfits(value, effect.form or {})
        part = _read(stage, state, effect, [*before, msgspec.json.encode(kept).decode()], in_part=True)
        found += [replace(part, lost="; ".join(filter(None, (*lost, part.lost))))]
    found = [part for part in found or [_read(stage, state, effect, texts, in_part=True)] if not part.refusal]
    is_one = all(part.value == found[0].value for part in found)
    return found[0] if found and is_one and found[0].lost else None


def _read(
    stage: Stage[Any], state: Any, effect: Ask, texts: Sequence[str], *, in_part: bool = False
) -> Reading:
    question = effect.question
    if reason := parse.no_reply(texts[-1], question):
        return Reading(refusal=reason)
    if stage.read is not None:
        result = stage.read(state, effect, texts)
    elif stage.reply is not None:
        result = parse.read_form(texts, stage.reply)
    else:
        result = texts[-1], "text"
    lost, doubted = "", False
    if in_part and isinstance(result, Unreadable) and result.in_part is not None:
        result, lost, doubted = result.in_part, result.reason, result.is_doubt
    if not isinstance(result, tuple):
        return Reading(refusal=result.reason, doubted=result.is_doubt, unmarked=result.is_unmarked)
    value, mode = result
    if echo := _echo_in(value, effect, question):
        return Reading(refusal=f"{echo[:80]!r} only repeats the question; answer it")
    return Reading(mode, value, doubted=doubted, lost=lost)


def _last_work(effect: Ask, texts: Sequence[str]) -> str:
    """Return the latest reply to the question itself, rather than to the extraction question."""
    asked = [turn.objection for turn in effect.turns[-(len(texts) - 1) :]] if len(texts) > 1 else []
    work = [text for text, objection in zip(texts[1:], asked, strict=False) if EXTRACT not in objection]
    return work[-1] if work else texts[0]


def _echo_in(value: Any, effect: Ask, question: str) -> str | None:
    """Return the text in what was read that only repeats the question."""
    plain = msgspec.to_builtins(value)
    # The form stands in the task; the material may well hold objects of the same fields.
    parts = (effect.system, effect.by_hand, effect.task) if effect.task else (effect.system, question)
    where = "\n".join(parts)
    return echo_in(plain, where, effect.form or {}, str(effect.facts.get("problem", "")))


def _fits(text: str, form: Mapping[str, Any]) -> bool:
    """Whether a reply is JSON of a schema as it stands, without a member more."""
    value = next((value for value, _ in json_values(text, whole=True)), None)
    known = isinstance(value, dict) and value.keys() <= form.get("properties", value).keys()
    return known and next(faults(value, form, "the answer"), None) is None


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
