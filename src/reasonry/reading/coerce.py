"""Coerce a reply's data to a form.

A form is a Struct, or any JSON schema. A key matches its field in any case, with any spaces, dashes and underscores. A
text is accepted for a list, and a list for a text. `yes` counts as true, and `"7/10"` as a number on the field's scale.
`"n/a"` counts as null, unless the field is an answer or must not be null.

Rule 1: ambiguous input does not fit, such as two keys with different values for one field, or a value with two senses.
Rule 2: if a value does not fit, the error names the field and the reason. The next question to the model repeats both.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import Any, Final

import msgspec
from msgspec import Struct

from ..core.readings import Unreadable
from ..text import lazy_pattern, plain_name
from .json_in_text import json_value
from .numbers import read_scaled
from .words import NONE_WORDS, TRUTHS, VERDICTS

Schema = Mapping[str, Any]
_ANY: Final[Schema] = {}
_TEXTS: Final[Schema] = {"type": "array", "items": {"type": "string"}}
NO_OBJECT: Final = "it is JSON, but not a JSON object"
NO_FIELD: Final = "its JSON object has none of the fields wanted"


class Misfit(ValueError):
    """A value does not fit its field."""


_NUMBERED: Final = lazy_pattern(
    r"\s{0,8}(?:#{1,6}\s)?(?:[-*]\s)?\*{0,2}\d{1,4}(?:\)\s?|[.:]\*{0,2}\s)\s*(?P<text>\S.*)"
)
_BULLETED: Final = lazy_pattern(r"\s{0,8}[-*•–‣]\s+(?P<text>\S.*)")
_ANSWERS: Final = ("answer", "result")
"""Endings of the names of answer fields. In these fields, words such as "none" are never read as null."""


def fit(value: Any, form: type[Struct]) -> Any | Unreadable:
    """Coerce JSON data to a form.

    Returns:
        An instance of the form, or the reason why the data does not fit.
    """
    try:
        return msgspec.convert(_to_struct(value, _schema_of(form)), form, strict=False)
    except Misfit as error:
        return Unreadable(str(error))
    except (msgspec.MsgspecError, ValueError, OverflowError) as error:
        return Unreadable(str(error).partition(" - at `")[0])


def fit_value(value: Any, schema: Schema) -> Any:
    """Coerce a value to a JSON schema.

    Raises:
        Misfit: The value does not fit.
    """
    members = _kinds(schema)
    if "any" in members:
        return value
    if "null" in members and _is_none(value, members):
        return None
    own = next((kinds for plain, kinds in _OWN if isinstance(value, plain)), ())
    kind = next(kind for kind in (*own, "string", *members) if kind in members and kind != "null")
    return _CONVERT[kind](value, members[kind])


def without_misfits(value: Any, schema: Schema, at: str = "") -> tuple[Any, dict[str, str]]:
    """From each list in `value`, remove the entries that do not fit. If no entry fits, leave the list unchanged.

    Return the value, and a mapping from the place of each removed entry (such as `tasks[2]`) to the reason.
    """
    members, lost = _kinds(schema), dict[str, str]()
    if fields := members.get("object", _ANY).get("properties"):
        by_plain = {plain_name(name): name for name in fields}
        with suppress(Misfit):
            value = dict(_as_object(value, members["object"]))
            for key, item in value.items():
                name = by_plain.get(plain_name(str(key)), str(key))
                place = f"{at}.{name}".lstrip(".")
                value[key], inside = without_misfits(item, fields.get(name, _ANY), place)
                lost |= inside
    elif "array" in members and isinstance(written := _decode(value), list):
        items, kept = members["array"].get("items", _ANY), list[Any]()
        for number, entry in enumerate(written, 1):
            less, inside = without_misfits(entry, items, f"{at}[{number}]")
            try:
                _fit_entry(less, items)
                kept.append(less)
            except Misfit as error:
                inside = {f"{at}[{number}]": str(error)}
            lost |= inside
        return (kept, lost) if kept else (value, {})
    return value, lost


def read_texts(value: Any) -> list[str]:
    """Read a list of texts from a list, an object or a text. Return an empty list if the value has no texts."""
    try:
        return _to_list(without_misfits(value, _TEXTS)[0], _TEXTS)
    except Misfit:
        return []


def unwrap(value: Any, names: Collection[str]) -> Any:
    """Remove the one-entry lists and objects around an object with a key in `names`. Return other values unchanged."""
    inner = value
    while not (isinstance(inner, dict) and any(plain_name(str(key)) in names for key in inner)):
        if not isinstance(inner, dict | list) or len(inner) != 1:
            return value
        (inner,) = inner.values() if isinstance(inner, dict) else inner
    return inner


# -- forms


@cache
def _schema_of(form: type[Struct]) -> dict[str, Any]:
    """Return the schema of a form, with each reference replaced by its target."""
    (top,), parts = msgspec.json.schema_components([form], ref_template="{name}")
    targets: dict[str, dict[str, Any]] = {name: {} for name in parts}

    def link(node: dict[str, Any]) -> dict[str, Any]:
        return targets[node["$ref"]] if "$ref" in node else node

    # A form may contain itself, so the targets are filled only after all references to them exist.
    linked, found = json.loads(json.dumps([top, parts]), object_hook=link)
    for name, part in found.items():
        targets[name] |= part
    return linked


@cache
def asked_fields(form: type[Struct]) -> dict[str, bool]:
    """Return the fields that a form asks the model for, and whether each field is required."""
    schema = _schema_of(form)
    required = schema.get("required", ())
    return {name: name in required for name, part in schema["properties"].items() if "unasked" not in part}


def _kinds(schema: Schema) -> dict[str, Schema]:
    """Return the types that a schema allows, each with its own schema."""
    if "anyOf" in schema:
        return {kind: member for part in schema["anyOf"] for kind, member in _kinds(part).items()}
    kinds = schema.get("type") or ("enum" if "enum" in schema else "any")
    return {kind: {**schema, "type": kind} for kind in kinds} if isinstance(kinds, list) else {kinds: schema}


# -- objects


def _to_struct(value: Any, schema: Schema) -> dict[str, Any]:
    written = _as_object(value, schema)
    found, required = _by_field(written, schema), schema.get("required", ())
    if schema["properties"] and not found:
        names = ", ".join(name for name, part in schema["properties"].items() if "unasked" not in part)
        raise Misfit(f"{NO_FIELD}: {names}")
    fitted: dict[str, Any] = {}
    for name, raw in found.items():
        part = schema["properties"][name]
        # If an optional field cannot be null, null stands for its default.
        if raw is None and name not in required and not _keeps_null(part):
            continue
        try:
            fitted[name] = _fit_field(name, raw, part)
        except Misfit as error:
            raise Misfit(f"`{name}`: {error}") from None
    if missing := [f"`{name}`" for name in required if name not in fitted]:
        raise Misfit(f"it lacks {' and '.join(missing)}")
    return fitted


def _keeps_null(part: Schema) -> bool:
    kinds = _kinds(part).keys()
    return bool(kinds & {"null", "any"}) or kinds <= {"integer", "number"}


def _fit_field(name: str, value: Any, part: Schema) -> Any:
    """Coerce a field's value. A `question` field accepts only one question. The text of an answer is not changed."""
    if plain_name(name).endswith("question") and isinstance(value, list) and len(value) > 1:
        raise Misfit("it has several questions; ask one")
    if plain_name(name).endswith(_ANSWERS) and "string" in _kinds(part):
        if isinstance(value, str) and value.strip():
            return value
        value = _json(value) if isinstance(value, list | dict) else value
    return fit_value(value, part)


def _as_object(value: Any, schema: Schema) -> dict[str, Any]:
    """Turn a value into an object that may fit `schema`. A bare value becomes the only required field."""
    value, properties = _decode(value), schema["properties"]
    inner = unwrap(value, set(map(plain_name, properties)))
    if isinstance(inner, list) and len(inner) == 1:
        inner = inner[0]
    if isinstance(inner, dict):
        return inner
    required = schema.get("required", ())
    only = properties[required[0]] if len(required) == 1 else None
    if only is None or "properties" in only or (inner is None and not _keeps_null(only)):
        raise Misfit(NO_OBJECT)
    return {required[0]: inner}


def _by_field(value: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    by_plain: dict[str, Any] = {}
    for key, item in value.items():
        name = plain_name(str(key))
        if name in by_plain and by_plain[name] != item:
            raise Misfit(f"`{key}` is there twice, and differs; give it once")
        by_plain[name] = item
    names = {name: plain_name(name) for name in schema["properties"]}
    return {name: by_plain[plain] for name, plain in names.items() if plain in by_plain}


# -- values


def _is_none(value: Any, members: Mapping[str, Schema]) -> bool:
    if value is None or (isinstance(value, str) and value.strip().lower() in NONE_WORDS):
        return True
    return value in ({}, [], False, 0) and "properties" in members.get("object", ())


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _to_text(value: Any, schema: Schema = _ANY) -> str:
    match value:
        case None:
            raise Misfit("it is null, and text is wanted")
        case str() if len(value) < schema.get("minLength", 0):
            raise Misfit("it is empty")
        case str():
            return value
        case list():
            return "\n".join(_to_text(item) for item in value)
        case _:
            return _json(value)


def _to_truth(value: Any, _: Any = None) -> bool:
    written = str(value).strip(" \n*_`\"'.").lower()
    if (found := TRUTHS.get(written.removesuffix(".0"))) is None:
        raise Misfit(f"{_short(value)} is neither true nor false")
    return found


def _to_number(value: Any, schema: Schema) -> Any:
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _bound(value, schema)
    found = read_scaled(value.strip()) if isinstance(value, str) else None
    if found is None or found.rest.strip(" \n*_`\"')]."):
        raise Misfit(f"{_short(value)} is not one number")
    number = found.number
    if found.scale is not None:
        if not found.scale or "maximum" not in schema:
            raise Misfit(f"{_short(value)} has a scale that is not asked for")
        number = round(number * schema["maximum"] / found.scale, 9)
    return _bound(int(number) if number.is_integer() and found.scale is None else number, schema)


def _bound(number: float, schema: Schema) -> float:
    low, high = schema.get("minimum", number), schema.get("maximum", number)
    if low <= number <= high:
        return number
    raise Misfit(f"{number} is not from {low} to {high}")


def _to_choice(value: Any, schema: Schema) -> Any:
    if value in schema["enum"]:
        return value
    written = plain_name(str(value))
    choices = {plain_name(str(choice)): choice for choice in schema["enum"]}
    if written not in choices and written in VERDICTS:
        # Synonyms match: `refuted` for `fails`, and false for `no`.
        same = [name for name in choices if VERDICTS.get(name) == VERDICTS[written]]
        written = same[0] if len(same) == 1 else written
    if written not in choices:
        raise Misfit(f"{_short(value)} is none of: {', '.join(map(str, schema['enum']))}")
    return choices[written]


def _to_list(value: Any, schema: Schema) -> list[Any]:
    items = schema.get("items", {})
    listed = _as_list(value, items)
    entries = [entry for entry in listed if entry != "" and (entry is not None or _are_texts(items))]
    if listed and not any(entry not in (None, "") for entry in entries):
        raise Misfit("there is nothing in its list")
    lowest, highest = schema.get("minItems", 0), schema.get("maxItems", len(entries))
    if not lowest <= len(entries) <= highest:
        wanted = f"at least {lowest}" if len(entries) < lowest else f"at most {highest}"
        raise Misfit(f"it has {len(entries)} items; give {wanted}")
    return [_fit_entry(entry, items) for entry in entries]


def _as_list(value: Any, items: Schema) -> list[Any]:
    value = _decode(value)
    if value is None or (isinstance(value, str) and value.strip().lower() in NONE_WORDS):
        return []
    if isinstance(value, dict):
        # An object may number the items, wrap the list, or be the only item.
        inner = list(value.values())
        is_wrapped = len(inner) == 1 and isinstance(inner[0], list)
        return inner if all(map(str.isdigit, value)) else inner[0] if is_wrapped else [value]
    if isinstance(value, str) and "object" not in _kinds(items):
        return list_items(value) or [line.strip() for line in value.splitlines()]
    return value if isinstance(value, list) else [value]


def _are_texts(items: Schema) -> bool:
    kinds = _kinds(items)
    return "string" in kinds and "object" not in kinds


def _fit_entry(entry: Any, items: Schema) -> Any:
    """Coerce an item of a list. In a list of texts, an object becomes one text."""
    if not _are_texts(items):
        return fit_value(entry, items)
    if not isinstance(entry, dict):
        return _to_text(entry)
    texts = (_to_text(item) for item in entry.values() if item not in (None, ""))
    if not (text := ": ".join(text for text in texts if not text.strip().isdigit())):
        raise Misfit(f"{_short(entry)} has no text")
    return text


def _to_object(value: Any, schema: Schema) -> dict[str, Any]:
    if "properties" in schema:
        return _to_struct(value, schema)
    value, items = {} if value is None else _decode(value), schema.get("additionalProperties", {})
    if not isinstance(value, dict):
        raise Misfit(f"{_short(value)} is no object")
    return {key: fit_value(item, items) for key, item in value.items()}


def list_items(text: str) -> list[str]:
    """Return the items of the list in a text: the numbered lines or, if no line is numbered, the bulleted lines."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("```")]
    return _items(lines, _NUMBERED) or _items(lines, _BULLETED)


def _items(lines: Sequence[str], start: re.Pattern[str]) -> list[str]:
    """Return the items of a list, without the text before the first item and after the last item."""
    starts = [place for place, line in enumerate(lines) if start.match(line)]
    items = [lines[begin:end] for begin, end in pairwise([*starts, len(lines)])]
    for place in range(1, len(items[-1]) if items else 0):
        # Text after a blank line belongs to the last item only if it is indented.
        if not items[-1][place - 1].strip() and items[-1][place][:1].strip():
            items[-1] = items[-1][:place]
            break
    texts: list[str] = []
    for head, *rest in items:
        parts = [start.sub(r"\g<text>", head), *(part for part in rest if part.strip())]
        text = "\n".join(part.strip() for part in parts)
        # The counterpart of an unpaired bold mark was before the number.
        texts.append(text.replace("**", "", 1) if text.count("**") % 2 else text)
    return [text for text in texts if text.strip("*_ ")]


def _decode(value: Any) -> Any:
    """Decode a text that is a JSON object or list. Return other values unchanged."""
    found = json_value(value) if isinstance(value, str) else None
    return value if found is None else found


def _short(value: Any) -> str:
    written = value if isinstance(value, str) else _json(value)
    return repr(written if len(written) <= 60 else f"{written[:57]}…")


_OWN: Final[tuple[tuple[Any, tuple[str, ...]], ...]] = (
    (bool, ("boolean",)),
    (int | float, ("integer", "number")),
    (dict, ("object",)),
    (list, ("array",)),
)
"""For each Python type, the schema types that accept its values unchanged."""
_CONVERT: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "object": _to_object,
    "string": _to_text,
    "boolean": _to_truth,
    "integer": _to_number,
    "number": _to_number,
    "enum": _to_choice,
    "array": _to_list,
}
