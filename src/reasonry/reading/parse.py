"""Reading what a model wrote into a form: the repair ladder.

The rungs, first that holds: the whole text is JSON; an object stands in a fence; one stands somewhere in prose; one
can be put right (quotes, commas, brackets), see `json_in_text`; the text is YAML; its lines or headings name the
fields; it states the answer, see `prose`; it is, as a whole, the one text that is wanted. On each of them a value
counts as what it means, see `fit`.

Rule 1: nothing here raises, whatever the text.
Rule 2: a value comes out only if it fits the wanted form; text that was not read never passes for one.
Rule 3: two readings are none: whoever wrote them is asked which. Of several objects the last that fits counts, since
        models restate a question's example before they answer it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from ..patterns import lazy_pattern
from .conclusion import Subject
from .fit import NO_FIELD, NO_OBJECT, Unreadable, fields_of, fit, list_items, names_of
from .json_in_text import (
    CUT_OFF,
    MAX_REPAIRED,
    MAX_SEARCHED,
    WHOLE_FENCE,
    breaks_off,
    json_values,
    last_two,
    without_surrogates,
)
from .names import SYNONYMS, plain_name
from .no_answer import without_closing
from .prose import blocks, find_answer, only_answer
from .withheld import declines

_YAML_FENCE: Final = lazy_pattern(r"```(?:ya?ml)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_YAML_KEY: Final = lazy_pattern(
    r"^[ \t]*(?:- )?[\"']?(?P<name>[\w][\w -]{0,50})[\"']?:(?:\s|$)", re.MULTILINE
)
_YAML_ALIAS: Final = lazy_pattern(r"(?:^|[:\s-]\s)[&*]\w+\s*$", re.MULTILINE)
_YAML_NUMBER: Final = lazy_pattern(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?")
_DATA: Final = lazy_pattern(r'\s*(?:\{|\[\s*["\'{\[\d\]-])')
"""How data begins, and no text: `[Your name]` begins a letter."""
_LABEL: Final = lazy_pattern(
    r"\s{0,8}(?P<heading>#{1,6}\s+)?(?:[-*•>]\s+)?(?:\d{1,2}[.)]\s+)?(?P<bold>[*_]{2}|`)?"
    r"(?P<name>[A-Za-z][\w'’ /-]{0,50}?)(?:\s*\([^)\n]{0,60}\))?[*_`]{0,2}\s*(?P<mark>[:=])?[*_`]{0,2}"
    r"(?P<rest>(?(mark).*|\s*))$"
)
_BESIDE: Final = lazy_pattern(
    r"[\s,;`]*(?:(?:or|oder|if|otherwise|alternatively)\b[^{}]{0,120})?(?:```(?:json)?)?[\s`]*", re.IGNORECASE
)
"""What stands between two objects that are two replies, none of which is taken back."""
_REASONS: Final = frozenset({"reason", "thought", *SYNONYMS["reason"]})
"""Fields that a verdict written as plain text fills, too: it says why."""
_ROOM: Final = ("steps", "reasoning", "thought", "reason", "differences")
"""Fields beside an answer that hold what leads to it."""
_MAY_BE_UNKNOWN: Final = ("subquestionanswer", "result")
"""Fields that may say that something cannot be found out."""


def read_form(
    text: str, form: type[Struct], *, subject: Subject | None = None
) -> tuple[Any, str] | Unreadable:
    """Read a reply into a form.

    Args:
        text: What was replied.
        form: The wanted form.
        subject: What the reply answers; what is known of it says what in a plain text is the answer.

    Returns:
        The value and the rung it was read on: `json`, `fenced`, `embedded`, `repaired`, `yaml`, `lines`, `stated` or
        `plain`.
    """
    subject = subject or Subject()
    is_open = subject.is_open and bool(_answers(form))
    reason: Unreadable | None = None
    for value, rung in json_values(text):
        if is_open and rung != "json" and 2 * len(json.dumps(value, ensure_ascii=False)) <= len(text):
            # It is a piece of the text that was asked for.
            continue
        fitted = fit(value, form)
        if not isinstance(fitted, Unreadable):
            return fitted, rung
        reason = reason or fitted
    has_no_field = reason is None or NO_FIELD in reason.reason or reason.reason == NO_OBJECT
    if has_no_field and (is_open or not _DATA.match(text)):
        plain = without_closing(without_surrogates(text[-MAX_SEARCHED:]))
        for values, rung in _readings(plain, form, subject, is_open):
            if isinstance(values, Unreadable):
                return values
            fitted = fit(values, form) if values is not None else None
            if fitted is not None and not isinstance(fitted, Unreadable):
                return fitted, rung
            reason = reason or fitted
    wanted = ", ".join(field.name for field in fields_of(form) if field.is_asked)
    return reason or Unreadable(f"no JSON object was found in it; the fields wanted are: {wanted}")


def no_reply(text: str, question: str) -> str | None:
    """Return why a text is no reply, whatever its form; None if nothing of that kind is wrong with it.

    It may be empty, break off, repeat the form of the question, or be two replies.
    """
    text = text.strip()
    if not text:
        return "the reply was empty, or nothing but thinking; give the answer"
    if "{" not in text:
        return None
    if breaks_off(text):
        return CUT_OFF
    quoted = _without_fence(text)
    if '{"' in quoted and quoted in question and re.search(r":\s*[\[{]*\s*\"|…|\bor\b", quoted):
        return "it repeats the form of the question; answer the question"
    rivals = last_two(text, _BESIDE)
    if rivals is None or rivals[0].keys() != rivals[1].keys():
        return None
    first, last = (without_surrogates(json.dumps(value, ensure_ascii=False))[:80] for value in rivals)
    return f"it has two replies that differ, {first} and {last}; give one"


def _readings(
    text: str, form: type[Struct], subject: Subject, is_open: bool
) -> Iterator[tuple[dict[str, Any] | Unreadable | None, str]]:
    """Yield what a reply without JSON may say of the fields, likeliest first; `Unreadable` if it says two things."""
    answers = _answers(form)
    # Nothing but an answer is asked for, and what leads to it.
    beside = {plain_name(field.name) for field in fields_of(form) if field.name not in answers}
    is_answer = len(answers) == 1 and beside <= {*_ROOM, "done"}
    yield _yaml_values(text, form), "yaml"
    if not is_answer and not is_open:
        yield _labelled_values(text, form), "lines"
    yield _stated_values(text, form, subject if is_answer or is_open else None), "stated"
    if not is_open:
        yield _plain_values(text, form), "plain"


def _answers(form: type[Struct]) -> list[str]:
    """Return the fields of a form that are the answer to the problem."""
    return [field.name for field in fields_of(form) if plain_name(field.name) in ("answer", "finalanswer")]


def _yaml_values(text: str, form: type[Struct]) -> dict[str, Any] | None:
    """Return the mapping a text is in YAML, all of it or what stands in its last fence, where it names a field."""
    fences = _YAML_FENCE.findall(text)
    piece = fences[-1] if fences else text
    names = names_of(form)
    has_field = any(plain_name(name) in names for name in _YAML_KEY.findall(piece))
    is_bare = not any(mark in piece for mark in "\n'\"")
    if not has_field or is_bare or len(piece) > MAX_REPAIRED or _YAML_ALIAS.search(piece):
        return None
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        value: Any = YAML(typ="base", pure=True).load(piece)
    except (YAMLError, ValueError):
        return None
    # A key without a value says nothing, not even null.
    values = {key: item for key, item in value.items() if item != ""} if isinstance(value, dict) else {}
    return {key: _numbers_in(item, key) for key, item in values.items()} or None


def _numbers_in(value: Any, name: str) -> Any:
    """Return a value of YAML, which was read as text, with its numbers as numbers; an answer stays as it is written."""
    if isinstance(value, dict):
        return {key: _numbers_in(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers_in(item, name) for item in value]
    is_answer = plain_name(name).endswith(("answer", "value", "result"))
    return json.loads(value) if not is_answer and _YAML_NUMBER.fullmatch(value) else value


def _labelled_values(text: str, form: type[Struct]) -> dict[str, Any] | Unreadable | None:
    """Return what lines such as `**Reason:** …`, and headings, say of the fields."""
    names = names_of(form)
    before: list[str] = []
    found: dict[str, list[str]] = {}
    current = before
    is_code = False
    for line in text.splitlines():
        is_code ^= line.lstrip().startswith("```")
        match = None if is_code else _LABEL.match(line)
        name = names.get(plain_name(match["name"])) if match else None
        if match is None or name is None or not (match["mark"] or match["heading"] or match["bold"]):
            current.append(line)
            continue
        if name in found and "".join(found[name]).strip():
            return Unreadable(f"it gives `{name}` twice; give it once")
        current = found[name] = [match["rest"].strip().removeprefix("**").strip()]
    texts = {name: _without_fence("\n".join(lines).strip()) for name, lines in found.items()}
    values = {name: text for name, text in texts.items() if text}
    lead = "\n".join(before).strip()
    if not values or not lead or (lead.endswith(":") and "\n" not in lead):
        return values or None
    # The reasoning stands before the answer, as often as not without a heading of its own.
    missing = [field for field in fields_of(form) if field.is_required and field.name not in values]
    room = [field.name for field in missing if len(missing) == 1 and field.kind == "text"]
    room = room or [field.name for field in fields_of(form) if plain_name(field.name) in _REASONS]
    if not room:
        return Unreadable("what stands before its fields belongs to none of them; give the fields alone")
    return {**values, room[0]: f"{lead}\n{values.get(room[0], '')}".strip()}


def _without_fence(text: str) -> str:
    fenced = WHOLE_FENCE.fullmatch(text)
    return fenced["inside"].strip() if fenced else text.removeprefix("**").removesuffix("**")


def _stated_values(
    text: str, form: type[Struct], subject: Subject | None
) -> dict[str, Any] | Unreadable | None:
    """Return the answer a text states, and what leads to it; without a subject the form wants something else, too."""
    fields = {field.name: field for field in fields_of(form)}
    required = [field for field in fields.values() if field.is_required]
    wanted = (
        _answers(form) if subject else [n for n in fields if plain_name(n).endswith(("answer", "result"))]
    )
    is_text = all(field.kind in ("text", "texts") for field in required)
    if not subject and not (len(wanted) == 1 and is_text):
        return None
    found = find_answer(text, subject)
    if found is None or isinstance(found, Unreadable) or not (subject or found.is_stated):
        return found if isinstance(found, Unreadable) else None
    beside = [field for name, field in fields.items() if plain_name(name) in _ROOM]
    if not subject:
        others = (field.name for field in (*required, *beside))
        return {**dict.fromkeys(others, text), wanted[0]: found.answer}
    rest = [*blocks(found.before), *blocks(found.after)]
    if not rest and subject.is_open and beside and beside[0].is_required:
        # The text is all there is of the steps that are asked for.
        rest = [found.answer]
    room = {field.name: rest if field.kind == "texts" else text for field in beside[:1] if rest}
    # Where the answer is asked for twice, the whole of it comes first, with its reasoning.
    return {**room, **dict.fromkeys(wanted, text if rest else found.answer), wanted[-1]: found.answer}


def _plain_values(text: str, form: type[Struct]) -> dict[str, Any] | Unreadable | None:
    """Return the text as the one field that is wanted; where that is a list, the list the text has."""
    required = [field for field in fields_of(form) if field.is_required]
    choices = [field for field in required if field.kind == "choice"]
    if len(choices) == 1:
        return _choice_values(text, form, choices[0].name)
    if len(required) != 1 or required[0].kind not in ("text", "texts"):
        return None
    name, kind = required[0].name, plain_name(required[0].name)
    is_answer = kind.endswith(("answer", "value", "result"))
    if kind not in _MAY_BE_UNKNOWN and declines(text) and (len(text) <= 500 or is_answer):
        return Unreadable("it declines, or says that it has no answer; answer the question as asked")
    if required[0].kind == "texts":
        return {name: items} if (items := list_items(text)) else None
    if kind == "code":
        fences = [match["inside"] for match in WHOLE_FENCE.finditer(text)]
        return {name: fences[-1] if fences else text}
    plain = only_answer(text) if is_answer else _without_fence(text)
    beside = (field for field in fields_of(form) if field.is_asked and field.name != name)
    has_room = any(field.name in _ROOM[:3] for field in beside)
    # Where there is room to reason, words alone may be the reasoning.
    is_reasoning = plain is None or (has_room and len(plain.split()) > 6)
    return None if is_reasoning else {name: plain}


def _choice_values(text: str, form: type[Struct], choice: str) -> dict[str, Any] | Unreadable | None:
    """Return a verdict, and the text as its reason: `ACCEPTED`, or `Yes, since …`."""
    others = [field.name for field in fields_of(form) if field.is_required and field.name != choice]
    if any(name not in _REASONS for name in others):
        wanted = ", ".join(f"`{name}`" for name in (*others, choice))
        return Unreadable(f"it is plain text; give each of the fields {wanted} in one JSON object")
    texts = [field.name for field in fields_of(form) if field.kind == "text"]
    reasons = [name for name in texts if plain_name(name) in _REASONS] or texts
    return {**dict.fromkeys(others or reasons[:1], text), choice: text}
