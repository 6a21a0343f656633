"""Reading what a model wrote into a form: the repair ladder.

The rungs, first that holds: the whole text is JSON; an object stands in a fence; one stands somewhere in prose; one
can be put right (quotes, commas, brackets), see `json_in_text`; the text is YAML; its lines or headings name the
fields; it states the answer; it is, as a whole, the one text that is wanted. On each of them a value counts as what it
means, see `fit`.

Rule 1: nothing here raises, whatever the text.
Rule 2: a value comes out only if it fits the wanted form; text that was not read never passes for one.
Rule 3: two readings are none: whoever wrote them is asked which. Of several objects the last that fits counts, since
        models restate a question's example before they answer it; one that only repeats the example counts for nothing.
"""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Struct

from ..patterns import lazy_pattern
from .closing import without_closing
from .fit import (
    NO_FIELD,
    NO_OBJECT,
    Unreadable,
    asked_fields,
    choice_field,
    fit,
    list_fields,
    names_of,
    plain_name,
    text_fields,
)
from .json_in_text import (
    CUT_OFF,
    MAX_REPAIRED,
    MAX_SEARCHED,
    breaks_off,
    json_objects,
    json_values,
    last_two,
    plain_escapes,
    whole_value,
    without_surrogates,
)
from .lists import list_items
from .prose import (
    TAKES_BACK,
    Subject,
    blocks,
    declines,
    find_answer,
    only_answer,
    stated_answer,
)
from .synonyms import SYNONYMS

_WHOLE_FENCE = lazy_pattern(r"```[\w+-]*\s*\n(?P<inside>.*?)\n?```", re.DOTALL)
_YAML_FENCE = lazy_pattern(r"```(?:ya?ml)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_YAML_KEY = lazy_pattern(r"^[ \t]*(?:- )?[\"']?(?P<name>[\w][\w -]{0,50})[\"']?:(?:\s|$)", re.MULTILINE)
_YAML_ALIAS = lazy_pattern(r"(?:^|[:\s-]\s)[&*]\w+\s*$", re.MULTILINE)
_LABEL = lazy_pattern(
    r"\s{0,8}(?P<heading>#{1,6}\s+)?(?:[-*•>]\s+)?(?:\d{1,2}[.)]\s+)?(?P<bold>[*_]{2}|`)?"
    r"(?P<name>[A-Za-z][\w'’ /-]{0,50}?)(?:\s*\([^)\n]{0,60}\))?[*_`]{0,2}\s*(?P<mark>[:=])?[*_`]{0,2}"
    r"(?P<rest>(?(mark).*|\s*))$"
)
_BESIDE = lazy_pattern(
    r"[\s,;`]*(?:or|oder|if|otherwise|alternatively)\b[^{}]{0,120}(?:```(?:json)?)?[\s`]*", re.IGNORECASE
)
"""What stands between two objects that are two replies, none of which is taken back."""
_REASONS = frozenset({"reason", *SYNONYMS["reason"]})
"""Fields that a verdict written as plain text fills, too: it says why."""
_LEADS_TO_IT = frozenset({"steps", "reasoning", "thought", "reason", "done"})
"""Fields beside an answer that hold what leads to it."""
_MAY_BE_UNKNOWN = ("subquestionanswer", "result")
"""Fields that may say that something cannot be found out."""
_FORMULA = lazy_pattern(r"(?=.*\d)[\d\s.,()\[\]+*/^=×÷·−–-]{1,200}")
"""A text of numbers and signs alone has nothing of a reasoning."""
_NOTHING = lazy_pattern(r"[\s`]*(?:json\b)?[\s`]*", re.IGNORECASE)
_CORRECTION = lazy_pattern(rf"\b(?:{TAKES_BACK}|rather|revised?)", re.IGNORECASE)


def read_form(
    text: str,
    form: type[Struct],
    *,
    whole: bool = False,
    shown: str = "",
    prose: bool = True,
    subject: Subject | None = None,
) -> tuple[Any, str] | Unreadable:
    """Read a reply into a form.

    Args:
        text: What was replied.
        form: The wanted form.
        whole: The reply may have been cut off: take it only if all of it is strict JSON.
        shown: The question, as it was first put; an object that stands in it is an example, not a reply.
        prose: Read text that is neither JSON nor YAML too.
        subject: What the reply answers; what is known of it says what in a plain text is the answer.

    Returns:
        The value and the rung it was read on: `json`, `fenced`, `embedded`, `repaired`, `yaml`, `lines`, `stated` or
        `plain`.
    """
    try:
        return _read_form(text, form, whole, shown, prose, subject or Subject())
    except RecursionError:
        return Unreadable("the reply is nested too deeply")


def _read_form(
    text: str, form: type[Struct], whole: bool, shown: str, prose: bool, subject: Subject
) -> tuple[Any, str] | Unreadable:
    reason: Unreadable | None = None
    examples: list[Any] | None = None
    is_open = subject.is_open and _answer_field(form) is not None
    for value, rung in json_values(text, whole=whole):
        if is_open and not _is_most(value, rung, text):
            continue
        if rung in ("fenced", "embedded", "repaired") and examples is None:
            examples = [example for example, *_ in json_objects(plain_escapes(shown))]
        if rung in ("fenced", "embedded", "repaired") and value in (examples or ()):
            reason = reason or Unreadable("it repeats the example of the question; answer the question")
            continue
        fitted = fit(value, form)
        if not isinstance(fitted, Unreadable):
            rivals = last_two(text, _NOTHING) if rung in ("fenced", "embedded", "repaired") else None
            if rivals and not any(isinstance(fit(rival, form), Unreadable) for rival in rivals):
                return Unreadable(_differ(*rivals))
            return fitted, rung
        reason = reason or fitted
    text = _bare_text(text)
    no_field = reason is None or NO_FIELD in reason.reason or reason.reason == NO_OBJECT
    is_text = no_field and (is_open or not text.lstrip().startswith(("{", "[")))
    if is_text and not whole:
        plain = without_closing(without_surrogates(text[-MAX_SEARCHED:]))
        found = _from_text(plain, form, subject) if prose else _from_yaml(plain, form)
        if not isinstance(found, Unreadable):
            return found
        reason = reason or found
    return reason or Unreadable(_no_object(form))


def _bare_text(text: str) -> str:
    """Return the text that a reply is as a whole, where it is one in quotes."""
    values = whole_value(text)
    return values[0] if values and isinstance(values[0], str) else text


def _from_yaml(text: str, form: type[Struct]) -> tuple[Any, str] | Unreadable:
    # Lines such as `Action: search[x]` are YAML, too, and say something else.
    values = [
        value
        for value in _yaml_values(text, form)
        if any(isinstance(item, dict | list) for item in value.values())
    ]
    fitted = fit(values[0], form) if values else Unreadable(_no_object(form))
    return fitted if isinstance(fitted, Unreadable) else (fitted, "yaml")


def _no_object(form: type[Struct]) -> str:
    return f"no JSON object was found in it; the fields wanted are: {', '.join(asked_fields(form))}"


def _answer_field(form: type[Struct]) -> str | None:
    """Return the field of the answer, in a form that asks for nothing else but what leads to it."""
    answers = [
        name for name in form.__struct_encode_fields__ if plain_name(name) in ("answer", "finalanswer")
    ]
    rest = {plain_name(name) for name in form.__struct_encode_fields__} - {
        plain_name(name) for name in answers
    }
    return answers[0] if len(answers) == 1 and rest <= _LEADS_TO_IT else None


def _is_most(value: Any, rung: str, text: str) -> bool:
    """Whether an object is what a reply comes to, and not a piece of the text that was asked for."""
    return rung == "json" or 2 * len(json.dumps(value, ensure_ascii=False)) > len(text)


def _from_text(text: str, form: type[Struct], subject: Subject) -> tuple[Any, str] | Unreadable:
    """Read a reply that has no JSON in it."""
    reason: Unreadable | None = None
    answer = _answer_field(form)
    readings: list[tuple[Any, str]] = [(_yaml_values(text, form), "yaml")]
    if answer is not None:
        readings.append((_found_answer(text, form, answer, subject), "stated"))
    else:
        readings.append((_labelled_values(text, form), "lines"))
        readings.append((_stated_values(text, form), "stated"))
    if not (answer and subject.is_open):
        readings.append((_plain_value(text, form), "plain"))
    for values, rung in readings:
        if isinstance(values, Unreadable):
            return values
        for value in values:
            fitted = fit(value, form)
            if not isinstance(fitted, Unreadable):
                return fitted, rung
            reason = reason or fitted
    return reason or Unreadable(_no_object(form))


def no_reply(text: str, question: str) -> str | None:
    """Return why a text is no reply, whatever its form; None if nothing of that kind is wrong with it.

    It may be empty, end in the middle of a text, repeat the form of the question, or be two replies.
    """
    text = text.strip()
    if not text:
        return "the reply was empty, or nothing but thinking; give the answer"
    if breaks_off(text):
        return CUT_OFF
    fenced = _WHOLE_FENCE.fullmatch(text)
    quoted = fenced["inside"].strip() if fenced else text
    if '{"' in quoted and quoted in question and re.search(r":\s*[\[{]*\s*\"|…|\bor\b", quoted):
        return "it repeats the form of the question; answer the question"
    rivals = last_two(text, _BESIDE)
    return None if rivals is None or rivals[0].keys() != rivals[1].keys() else _differ(*rivals)


def _differ(first: Any, last: Any) -> str:
    return f"it has two replies that differ, {_brief(first)} and {_brief(last)}; give one"


def _is_taken_back(text: str) -> bool:
    """Whether a text corrects itself, so that what it says last is what it says."""
    return _CORRECTION.search(text) is not None


def _brief(value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= 80 else f"{written[:77]}…"


def _yaml_values(text: str, form: type[Struct]) -> list[Any]:
    """Return the mapping a text is in YAML, all of it or what stands in its last fence, where it names a field."""
    fences = _YAML_FENCE.findall(text)
    piece = fences[-1] if fences else text
    names = names_of(form)
    has_field = any(plain_name(match["name"]) in names for match in _YAML_KEY.finditer(piece))
    if not has_field or len(piece) > MAX_REPAIRED or _YAML_ALIAS.search(piece):
        return []
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        value: Any = YAML(typ="base", pure=True).load(piece)
    except (YAMLError, ValueError):
        return []
    # A key without a value says nothing, not even null.
    mapping = value if isinstance(value, dict) else {}
    values = {
        str(key): item
        if plain_name(str(key)).endswith(("answer", "value", "result"))
        else _number_or_text(item)
        for key, item in mapping.items()
        if item != ""
    }
    return [values] if values else []


def _numbers_inside(value: Any) -> Any:
    """Return a list or a mapping with its numbers as numbers; YAML was read as text."""
    if isinstance(value, dict):
        return {key: _number_or_text(item) for key, item in value.items()}
    return [_number_or_text(item) for item in value] if isinstance(value, list) else value


def _number_or_text(value: Any) -> Any:
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,15}(?:\.\d{1,15})?", value):
        return json.loads(value) if not re.match(r"-?0\d", value) else value
    return _numbers_inside(value)


def _labelled_values(text: str, form: type[Struct]) -> list[Any] | Unreadable:
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
        if name in found and "".join(found[name]).strip() and not _is_taken_back(text):
            return Unreadable(f"it gives `{name}` twice; give it once")
        current = found[name] = [match["rest"].strip().removeprefix("**").strip()]
    texts = {name: _labelled_text(name, "\n".join(lines).strip()) for name, lines in found.items()}
    values = {name: text for name, text in texts.items() if text}
    lead = "\n".join(before).strip()
    missing = [name for name in (text_fields(form) or {}) if name not in values]
    room = [name for name in values if plain_name(name) in _REASONS | {"thought", "reasoning"}]
    if values and lead and len(missing) == 1 and missing[0] != "confidence":
        # The reasoning stands before the answer, as often as not without a heading of its own.
        values[missing[0]] = lead
    elif values and room:
        values[room[0]] = f"{lead}\n{values[room[0]]}".strip()
    elif values and lead and ("\n" in lead or not lead.endswith(":")):
        return Unreadable("what stands before its fields belongs to none of them; give the fields alone")
    return [values] if values else []


def _labelled_text(name: str, text: str) -> str:
    plain = _without_marks(text)
    is_line = plain_name(name).endswith("answer") and "\n\n" not in plain
    answer = stated_answer(plain) if is_line else None
    return answer if isinstance(answer, str) else plain


def _without_marks(text: str) -> str:
    """Return a value without the bold marks, quotes or fences around all of it."""
    fenced = _WHOLE_FENCE.fullmatch(text)
    text = fenced["inside"].strip() if fenced else text
    for mark in ("**", "__", "`", '"'):
        if (
            len(text) > 2 * len(mark)
            and text.startswith(mark)
            and text.endswith(mark)
            and text.count(mark) == 2
        ):
            text = text[len(mark) : -len(mark)]
    return text


def _found_answer(text: str, form: type[Struct], name: str, subject: Subject) -> list[Any] | Unreadable:
    """Return the answer a text gives, and what leads to it as what else is wanted."""
    found = find_answer(text, subject)
    if found is None or isinstance(found, Unreadable):
        return found or []
    beside = [
        other for other in form.__struct_encode_fields__ if plain_name(other) in _LEADS_TO_IT - {"done"}
    ]
    is_list = list_fields(form)
    rest = [*blocks(found.before), *blocks(found.after)]
    whole = text if rest else ""
    room = {other: rest if is_list[other] else whole for other in beside[:1]}
    return [{**{key: value for key, value in room.items() if value}, name: found.answer}]


def _stated_values(text: str, form: type[Struct]) -> list[Any] | Unreadable:
    """Return the answer a text states, and the text as what else is wanted."""
    wanted = ("answer", "result")
    names = [name for name in form.__struct_encode_fields__ if plain_name(name).endswith(wanted)]
    fields = text_fields(form)
    if len(names) != 1 or fields is None:
        return []
    found = find_answer(text)
    if isinstance(found, Unreadable):
        return found
    if found is None or not found.is_stated:
        return []
    beside = [name for name in form.__struct_encode_fields__ if name in ("reasoning", "steps", "thought")]
    return [{**dict.fromkeys((*fields, *beside), text), names[0]: found.answer}]


def _plain_value(text: str, form: type[Struct]) -> list[Any] | Unreadable:
    """Return the text as the one field that is wanted; where that is a list, the list the text has."""
    choice = choice_field(form)
    if choice is not None:
        beside = [name for name in text_fields(form, beside=choice) or {} if name not in _REASONS]
        if beside:
            wanted = ", ".join(f"`{name}`" for name in (*beside, choice))
            return Unreadable(f"it is plain text; give each of the fields {wanted} in one JSON object")
        # "ACCEPTED", or "Yes, since …": the verdict, and all of it as the reason.
        reasons = [name for name in form.__struct_encode_fields__ if plain_name(name) in _REASONS]
        return [{**dict.fromkeys(text_fields(form, beside=choice) or reasons[:1], text), choice: text}]
    fields = text_fields(form) or {}
    if len(fields) != 1:
        return []
    ((name, is_list),) = fields.items()
    kind = plain_name(name)
    is_answer = kind in ("answer", "finalanswer", "value")
    if (is_answer and declines(text)) or (kind not in _MAY_BE_UNKNOWN and declines(text)):
        return Unreadable("it declines, or says that it has no answer; answer the question as asked")
    if is_list:
        items = list_items(text)
        if items and _answer_field(form):
            # Beside the answer there is room for all that leads to it.
            items = list(blocks(text))
        return [{name: items}] if items else []
    if kind == "code":
        fences = [match["inside"] for match in _WHOLE_FENCE.finditer(text)]
        return [{name: fences[-1] if fences else text}]
    plain = only_answer(text) if kind.endswith(("answer", "result", "value")) else _without_marks(text)
    has_room = any(
        other != name and other in ("reasoning", "steps", "thought") for other in asked_fields(form)
    )
    is_formula = plain is not None and _FORMULA.fullmatch(plain) is not None
    longest = 4 if text.rstrip().endswith(".") else 6
    if plain is None or (has_room and len(plain.split()) > longest and not is_formula):
        # Where there is room to reason, words alone may be the reasoning.
        return []
    return [{name: plain}]
