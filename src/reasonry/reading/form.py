"""Read a reply into a form: from one JSON object, or from the answer between `<answer>` tags (the mark).

A form for data is read from one JSON object (the whole reply, in a fence, in prose, or repaired) or from YAML. A form
for an answer is read from the first place found: JSON of the form as the whole reply; the mark; JSON of the form in a
fence at the end; YAML of the form; an ending such as `Answer: …` (see `mark`).

Rule 1: no text raises an error.
Rule 2: a value is returned only if it fits the form; text that could not be read is never a value.
Rule 3: two different readings make a reply unreadable.
"""

import json
import re
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any, Final

from msgspec import Struct

from ..core.readings import ALL, UNMARKED, Unreadable
from ..text import lazy_pattern, plain_name, strip_blank_lines
from .coerce import asked_fields, fit
from .json_in_text import CUT_OFF, MAX_DEPTH, MAX_REPAIRED, breaks_off, json_values
from .mark import Marked, calls_a_tool, find_ending, find_marked, strip_mark

_YAML_FENCE: Final = lazy_pattern(r"```(?:ya?ml)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_TWO: Final = "it has two JSON objects that differ; give one"
_YAML_NUMBER: Final = lazy_pattern(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?")
_YAML_KEY: Final = lazy_pattern(r"^(?:- )?[\"']?(\w[\w -]{0,50})[\"']?:(?:\s|$)", re.MULTILINE)
_MARKED: Final = ("final_answer", "answer", "value", "result", "subQuestionAnswer", "text")
"""The fields that a marked answer can fill. The answer fills the first of these fields that the form has."""
_ROOM: Final = ("steps", "reasoning", "thought", "reason", "differences")
"""The fields for the reasoning, which is the text before a marked answer."""


def read_form(texts: Sequence[str] | str, form: type[Struct]) -> tuple[Any, str] | Unreadable:
    """Read the latest reply to a question into a form.

    Args:
        texts: All replies to the question so far, oldest first.

    Returns:
        The value, and the name of the method that read it: `json`, `marked`, `fenced`, `embedded`, `repaired`, `yaml`,
        `stated` or `whole` (the model declared its whole previous reply to be the answer).
    """
    *before, text = [texts] if isinstance(texts, str) else texts
    field = marked_field(form)
    return _read_data(text, form) if field is None else _read_answer(text, before, form, field)


def _read_answer(
    text: str, before: Sequence[str], form: type[Struct], field: str
) -> tuple[Any, str] | Unreadable:
    if whole := _find_objects(text, field, whole=True):
        return _read_one(whole, form, field)
    marked = find_marked(text)
    if isinstance(marked, Marked):
        return _read_marked(marked, before, form, field)
    if marked.reason != UNMARKED:
        return marked
    if (call := calls_a_tool(text)) is not None:
        return call
    begins = text.lstrip().startswith("{")
    is_data = begins or text.rstrip().endswith("```")
    found = _find_objects(text, field)
    own = [
        (value, rung)
        for value, rung in found
        if rung != "embedded" and (is_data or (rung == "fenced" and _is_own(value, form)))
    ]
    if own:
        # JSON objects one after another are rival answers; objects inside a text are a part of the text.
        return _read_one(found if begins else own, form, field)
    value = _yaml_value(text, form)
    if value is not None and len(value) > 1 and _holds(value, field):
        return _read_one([(value, "yaml")], form, field)
    ending = find_ending(text)
    return marked if ending is None else _fill(form, field, ending)


def _find_objects(text: str, field: str, *, whole: bool = False) -> list[tuple[Any, str]]:
    return [(value, rung) for value, rung in json_values(text, whole=whole) if _holds(value, field)]


def _read_one(
    found: Sequence[tuple[Any, str]], form: type[Struct], field: str
) -> tuple[Any, str] | Unreadable:
    """Read the answer from the JSON objects in a reply. The objects must all be equal."""
    if any(value != found[0][0] for value, _ in found):
        return Unreadable(_TWO, is_unmarked=True)
    value, rung = found[0]
    by_name = {plain_name(key): key for key in value}
    answer = value[by_name.get(plain_name(field)) or by_name["answer"]]
    if isinstance(answer, str) and "<" in answer:
        answer = strip_mark(answer)
    fitted = fit({**value, by_name.get(plain_name(field), field): answer}, form)
    return fitted if isinstance(fitted, Unreadable) else (fitted, rung)


def _holds(value: Any, field: str) -> bool:
    return isinstance(value, dict) and not {plain_name(field), "answer"}.isdisjoint(map(plain_name, value))


def _is_own(value: Any, form: type[Struct]) -> bool:
    return set(map(plain_name, asked_fields(form))).issuperset(map(plain_name, value))


def _read_marked(
    marked: Marked, before: Sequence[str], form: type[Struct], field: str
) -> tuple[Any, str] | Unreadable:
    if marked.answer.strip(" .") == ALL:
        if not before:
            return Unreadable(UNMARKED, is_unmarked=True)
        return _fill(form, field, Marked(strip_blank_lines(before[-1]), "", "whole"))
    own = next((value for value, _ in json_values(marked.answer, whole=True)), None)
    if _holds(own, field) and _is_own(own, form):
        return _read_one([(own, marked.mode)], form, field)
    if not marked.before and before and not isinstance(find_marked(before[-1]), Marked):
        # The reply repeats only the answer; the reasoning is in the previous reply.
        marked = Marked(marked.answer, before[-1].strip(), marked.mode)
    return _fill(form, field, marked)


def _read_data(text: str, form: type[Struct]) -> tuple[Any, str] | Unreadable:
    reason: Unreadable | None = None
    found: list[tuple[Any, str]] = []
    for value, rung in json_values(text):
        fitted = fit(value, form)
        if isinstance(fitted, Unreadable):
            reason = reason or fitted
        elif rung == "json":
            return fitted, rung
        elif fitted not in (each for each, _ in found):
            found.append((fitted, rung))
    if found:
        return found[0] if len(found) == 1 else Unreadable(_TWO)
    if (value := _yaml_value(text, form)) is not None:
        fitted = fit(value, form)
        return fitted if isinstance(fitted, Unreadable) else (fitted, "yaml")
    return reason or Unreadable(
        f"no JSON object was found in it; the fields wanted are: {', '.join(asked_fields(form))}"
    )


def no_reply(text: str, question: str) -> str | None:
    """Return the reason why a text is not a reply, such as an empty text. If it is a reply, return None.

    Args:
        question: The question without the problem, because the problem may contain the answer.
    """
    text = text.strip()
    if not text:
        return "the reply was empty, or nothing but thinking; give the answer"
    marked = ""
    if (start := text.find("<answer>")) >= 0:
        # An `<answer>` at the end may be meant to close the mark before it.
        marked = text[max(start, text.rfind("<answer>", 0, -1)) :]
    # A question may offer null as an answer.
    if marked and marked in question and not marked.startswith("<answer>null<"):
        return "it repeats the form of the question; answer it"
    if "{" not in text:
        return None
    if breaks_off(text):
        return CUT_OFF
    quoted = text.removeprefix("```json").strip("`\n ")
    is_form = '{"' in quoted and ('"…"' in quoted or '": "' in quoted or " or " in quoted)
    return "it repeats the form of the question; answer it" if is_form and quoted in question else None


def _yaml_value(text: str, form: type[Struct]) -> dict[str, Any] | None:
    """Read YAML from the last fence of a text or, if the text has no fence, from the whole text."""
    piece = (_YAML_FENCE.findall(text) or [text])[-1]
    known = set(map(plain_name, asked_fields(form)))
    depths = accumulate((char in "[{") - (char in "]}") for char in piece)
    has_keys = len(piece) <= MAX_REPAIRED and not known.isdisjoint(map(plain_name, _YAML_KEY.findall(piece)))
    if not has_keys or "&" in piece or max(depths, default=0) > MAX_DEPTH:
        return None
    from ruamel.yaml import YAML, YAMLError

    try:
        value: Any = YAML(typ="base", pure=True).load(piece)
    except (YAMLError, ValueError, RecursionError):
        return None
    # A key without a value is ignored, not null.
    values = {key: item for key, item in value.items() if item != ""} if isinstance(value, dict) else {}
    return {key: _numbers_in(item, key) for key, item in values.items()} or None


def _numbers_in(value: Any, name: str) -> Any:
    """Convert texts such as `0.7` in a YAML value to numbers. A number in an answer remains a text.

    The line end after a block of text is removed, because it belongs to the YAML and not to the text.
    """
    if isinstance(value, dict):
        return {key: _numbers_in(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers_in(item, name) for item in value]
    is_answer = plain_name(name).endswith(("answer", "value", "result"))
    return json.loads(value) if not is_answer and _YAML_NUMBER.fullmatch(value) else value.rstrip("\n")


@cache
def marked_field(form: type[Struct]) -> str | None:
    """Return the field of a form that a marked answer fills. If the form is not for an answer, return None."""
    fields = asked_fields(form)
    field = next((name for name in _MARKED if name in fields), None)
    others = {name for name, required in fields.items() if required} - {field, "answer"}
    return field if fields.get(field or "") and others <= {*_ROOM} else None


def _fill(form: type[Struct], field: str, marked: Marked) -> tuple[Any, str] | Unreadable:
    fields = asked_fields(form)
    room = next((name for name in _ROOM if name in fields), None)
    values: dict[str, Any] = {field: marked.answer}
    if room is not None:
        lines = [line for part in marked.before.split("\n\n") if (line := part.strip())]
        lines = lines or ([marked.answer] if fields[room] else [])
        values[room] = lines if room == "steps" else "\n\n".join(lines)
    if field == "final_answer":
        values["answer"] = f"{marked.before}\n\n{marked.answer}".strip()
    fitted = fit(values, form)
    return fitted if isinstance(fitted, Unreadable) else (fitted, marked.mode)
