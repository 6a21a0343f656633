"""Reading a reply the way its stage reads, again from a record, and asking again for one that could not be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import ConflictError
from ..reading import parse
from ..reading.json_in_text import is_whole, json_values, without_surrogates
from ..reading.no_answer import echo_in, repeats_itself, without_thinking
from .effects import Ask
from .events import Answered
from .json_schema import faults
from .problem import subject_of
from .strategy import Stage

OPEN_TASK: Final = "If a text or code is asked for, reply with that alone, without JSON."
"""The end of a question for an open task: where its answer goes."""

MAX_EXCERPT: Final = 2_000
"""Characters of an unusable reply that are shown to whoever is asked again."""

LAST_REPLY: Final = "\n\nYour last reply was:\n<<<\n"
"""What stands before an unusable reply in the question that asks again."""


class Reading(Struct, frozen=True, omit_defaults=True):
    """What a reply was read as, recorded with it so that later readers of other code find the same.

    Attributes:
        mode: The rung it was read on: `native`, or one of `reading.parse`; empty if it could not be read.
        value: The value; as plain data where the reading comes from a record.
        refusal: Why it could not be read, as whoever is asked again is told.
        doubted: It could be used, but is doubted; see `Unreadable.is_doubt`.
    """

    mode: str = ""
    value: Any = None
    refusal: str | None = None
    doubted: bool = False

    @property
    def title(self) -> str:
        """How the reply was read, for people: the mode, or `unreadable: REASON`."""
        return self.mode if self.refusal is None else f"unreadable: {self.refusal}"


def read_reply(stage: Stage[Any], state: Any, effect: Ask, replies: Sequence[Answered]) -> Reading:
    """Read the latest reply the way its stage reads."""
    latest = replies[-1]
    if latest.refused:
        return Reading(refusal="the answer was declined; answer the question as asked")
    if latest.truncated and not is_whole(latest.text):
        fault = (
            "repeated itself over and over" if repeats_itself(latest.text) else "was cut off before its end"
        )
        return Reading(refusal=f"the reply {fault}; answer more briefly")
    text = without_thinking(latest.text)
    if reason := parse.no_reply(text, question_text(effect)):
        return Reading(refusal=reason)
    if stage.read is not None:
        result = stage.read(state, effect, [*(without_thinking(reply.text) for reply in replies[:-1]), text])
    elif stage.reply is not None:
        result = parse.read_form(text, stage.reply, subject=subject_of(state))
    else:
        result = text, "text"
    if not isinstance(result, tuple):
        return Reading(refusal=result.reason, doubted=result.is_doubt)
    value, mode = result
    if echo := _echo_in(value, effect):
        return Reading(refusal=f"{echo[:80]!r} only repeats the question; answer it")
    # A server may take a schema, and not hold the reply to it.
    is_held = latest.native and mode == "json" and _fits(latest.text, effect.form or {})
    return Reading("native" if is_held else mode, value)


def _echo_in(value: Any, effect: Ask) -> str | None:
    """Return the text in what was read that only repeats the question."""
    plain = msgspec.to_builtins(value)
    where = effect.system if '{"' in effect.system else question_text(effect)
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


def question_text(ask: Ask) -> str:
    """Return a question as it was first put: what was replied to it before is no part of it."""
    return ask.text.partition(LAST_REPLY)[0]


def ask_again(ask: Ask, reply: Answered, reason: str) -> Ask:
    """Return the question once more, with what was wrong with the last reply.

    What was asked before stays the beginning of the prompt, so that providers can cache it. After a reply that was
    cut off a shorter answer is asked for.
    """
    wish = "Answer the same question again"
    if reply.truncated:
        wish += ", much more briefly"
    if ask.form is not None:
        wish += "; reply with one JSON object of the form asked for and nothing else"
        if OPEN_TASK in ask.text:
            wish += ", or, if a text or code is asked for, with that alone"
    excerpt = _excerpt(without_surrogates(reply.text).strip()) or "(nothing)"
    prompt = f"{ask.prompt}{LAST_REPLY}{excerpt}\n>>>\nIt cannot be used: {reason}.\n{wish}."
    return replace(ask, prompt=prompt)


def _excerpt(text: str) -> str:
    if len(text) <= MAX_EXCERPT:
        return text
    half = MAX_EXCERPT // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
