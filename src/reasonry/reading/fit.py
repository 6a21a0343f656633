"""Fitting data to a form: what a reply says, however its keys and values are dressed.

A form is a Struct, or any JSON schema. A key is the field it names whatever its case, its spaces and its underscores,
and so is a common synonym of the field's own word. A list stands for text and text for a list, yes for true, `"7/10"`
for a number that has a scale, and `"n/a"` for null where null may be.

Rule 1: two readings are none: if two keys name one field and differ, or a value could be two things, it does not fit.
Rule 2: what does not fit says which field, and why, to whoever is asked again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from ..patterns import lazy_pattern
from .json_in_text import json_value
from .names import NONE_WORDS, SYNONYMS, TRUTHS, plain_name
from .numbers import read_scaled


class Unreadable(Struct, frozen=True):
    """Why a reply cannot be used; shown to whoever is asked again.

    Attributes:
        is_doubt: It could be used as it is, and is better than none: its reader would rather ask again.
    """

    reason: str
    is_doubt: bool = False


Schema = Mapping[str, Any]
_ANY: Final[Schema] = {}
NO_OBJECT: Final = "it is JSON, but not a JSON object"
NO_FIELD: Final = "its JSON object has none of the fields wanted"


class Misfit(ValueError):
    """Why a value is not what a field wants."""


class FormField(Struct, frozen=True):
    """A field of a form, as a reader of plain text sees it."""

    name: str
    kind: Literal["text", "texts", "choice", "list", "other"]
    """`choice`: a choice, a truth value or a number; `list`: of anything but texts."""
    is_required: bool
    is_asked: bool
    """Whether it is asked for; others are only read where they are given."""


_VERDICT: Final = lazy_pattern(
    r"(?P<denied>(?:not|does not|doesn't|isn't|is not)\s+)?[\W_]*(?P<word>\w+?)_*\W*(?:\Z|[,.;:!\n(–—-])"
)
_NUMBERED: Final = lazy_pattern(
    r"\s{0,8}(?:#{1,6}\s+)?(?:[-*]\s+)?\*{0,2}"
    r"(?:(?:step|thought|option|approach|candidate|idea)\s+)?\d{1,4}(?:\)\s*|[.:]\*{0,2}\s+)(?P<text>\S.*)",
    re.IGNORECASE,
)
_BULLETED: Final = lazy_pattern(r"\s{0,8}[-*•–‣]\s+(?P<text>\S.*)")
_ORDINAL: Final = lazy_pattern(r"(?:[a-z]+[\s_-]*)?\d{1,3}", re.IGNORECASE)
_LABELS: Final = frozenset({"id", "number", "index", "no", "nr", "position", "step", "candidate"})


def fit(value: Any, form: type[Struct]) -> Any | Unreadable:
    """Fit JSON data to a form.

    Returns:
        An instance of the form, or why it is none.
    """
    try:
        return msgspec.convert(_to_struct(value, _schema_of(form)), form, strict=False)
    except Misfit as error:
        return Unreadable(str(error))
    except (msgspec.MsgspecError, ValueError, OverflowError) as error:
        return Unreadable(str(error).partition(" - at `")[0])


def fit_value(value: Any, schema: Schema) -> Any:
    """Return a value as a JSON schema wants it.

    Raises:
        Misfit: It has no such meaning.
    """
    members = {_kind_of(member): member for member in _members(schema)}
    if "any" in members:
        return value
    if "null" in members and _is_none(value, members):
        return None
    own = next((kinds for plain, kinds in _OWN if isinstance(value, plain)), ())
    kind = next(kind for kind in (*own, "string", *members) if kind in members and kind != "null")
    return _CONVERT[kind](value, members[kind])


def read_texts(value: Any) -> list[str]:
    """Return the texts of a value that stands for a list of texts; of objects, their texts; none if it is none."""
    try:
        return _to_list(value, {"items": {"type": "string"}})
    except Misfit:
        return []


def unwrap(value: Any, names: Collection[str]) -> Any:
    """Return the object with one of these names that a list of one, or an object of one entry, only wraps."""
    inner = value
    while not (isinstance(inner, dict) and any(plain_name(str(key)) in names for key in inner)):
        if not isinstance(inner, dict | list) or len(inner) != 1:
            return value
        (inner,) = inner.values() if isinstance(inner, dict) else inner
    return inner


# -- forms


@cache
def _schema_of(form: type[Struct]) -> dict[str, Any]:
    """Return the schema of a form, in which each reference is the schema that it leads to."""
    (top,), parts = msgspec.json.schema_components([form], ref_template="{name}")

    def link(node: Any) -> Any:
        if isinstance(node, list):
            return [link(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return parts[node["$ref"]]
        node.update({key: link(item) for key, item in node.items()})
        return node

    for part in parts.values():
        link(part)
    return link(top)


@cache
def fields_of(form: type[Struct]) -> tuple[FormField, ...]:
    """Return the fields of a form."""
    schema = _schema_of(form)
    return tuple(
        FormField(name, _role_of(part), name in schema.get("required", ()), "unasked" not in part)
        for name, part in schema["properties"].items()
    )


def _role_of(part: Schema) -> Literal["text", "texts", "choice", "list", "other"]:
    kind = _kind_of(part)
    if kind == "array":
        return "texts" if _takes_text(part["items"]) else "list"
    if kind in ("enum", "boolean", "integer", "number"):
        return "choice"
    return "text" if _takes_text(part) else "other"


@cache
def names_of(form: type[Struct]) -> dict[str, str]:
    """Return what the fields of a form may be called, as `plain_name` writes it, with the field each names."""
    return _names_in(_schema_of(form))


def _names_in(schema: Schema) -> dict[str, str]:
    names = list(schema["properties"])
    also = {
        synonym: name for name in reversed(names) for synonym in reversed(SYNONYMS.get(plain_name(name), ()))
    }
    return {**also, **{plain_name(name): name for name in names}}


def _members(schema: Schema) -> Iterator[Schema]:
    """Yield the schemas of the types a value may have."""
    kinds = schema.get("type")
    if "anyOf" in schema:
        for part in schema["anyOf"]:
            yield from _members(part)
    elif isinstance(kinds, list):
        yield from ({**schema, "type": kind} for kind in kinds)
    else:
        yield schema


def _kind_of(schema: Schema) -> str:
    return schema.get("type") or ("enum" if "enum" in schema else "any")


def _takes_text(schema: Schema) -> bool:
    return any(_kind_of(member) == "string" for member in _members(schema))


# -- objects


def _to_struct(value: Any, schema: Schema) -> dict[str, Any]:
    written = _as_object(value, schema)
    found, required = _by_field(written, schema), schema.get("required", ())
    if not found and len(required) == 1 and _role_of(schema["properties"][required[0]]) == "list":
        found = {required[0]: written}
    if schema["properties"] and not found:
        names = ", ".join(name for name, part in schema["properties"].items() if "unasked" not in part)
        raise Misfit(f"{NO_FIELD}: {names}")
    fitted: dict[str, Any] = {}
    for name, raw in found.items():
        part = schema["properties"][name]
        # Null is a value, or a fault; where it is neither, it stands for the default.
        if raw is None and name not in required and not _keeps_null(part):
            continue
        try:
            fitted[name] = fit_value(_field_value(name, raw, part, name in required), part)
        except Misfit as error:
            raise Misfit(f"`{name}`: {error}") from None
    if missing := [f"`{name}`" for name in required if name not in fitted]:
        raise Misfit(f"it lacks {' and '.join(missing)}")
    return fitted


def _keeps_null(part: Schema) -> bool:
    kinds = {_kind_of(member) for member in _members(part)}
    return bool(kinds & {"null", "any"}) or kinds <= {"integer", "number"}


def _field_value(name: str, raw: Any, part: Schema, is_required: bool) -> Any:
    """Return the value of a field as its name says it is meant: one question, an answer with nothing left out."""
    if plain_name(name).endswith("question") and isinstance(raw, list) and len(raw) > 1:
        raise Misfit("it has several questions; ask one")
    if not plain_name(name).endswith(("answer", "result")):
        return raw
    if is_required and isinstance(raw, str) and not raw.strip() and _keeps_null(part):
        raise Misfit("it is empty; give it, or null")
    return _json(raw) if isinstance(raw, list | dict) and _takes_text(part) else raw


def _as_object(value: Any, schema: Schema) -> dict[str, Any]:
    """Return the object a value is: it may be wrapped, stand in a text, or be the only field that is wanted."""
    value, properties = _decode(value), schema["properties"]
    if (
        isinstance(value, dict)
        and value.get("type") == "object"
        and isinstance(value.get("properties"), dict)
    ):
        # The schema, with its values filled in.
        value = value["properties"]
    inner = unwrap(value, set(map(plain_name, properties)))
    inner = unwrap(value, _names_in(schema)) if inner is value else inner
    if isinstance(inner, list) and len(inner) == 1:
        inner = inner[0]
    if isinstance(inner, dict):
        return inner
    required = schema.get("required", ())
    if len(required) != 1 or "properties" in properties[required[0]]:
        raise Misfit(NO_OBJECT)
    if inner is None and not _keeps_null(properties[required[0]]):
        raise Misfit(NO_OBJECT)
    return {required[0]: inner}


def _by_field(value: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return what an object says of each field, by its own name first, by a synonym where it does not stand."""
    by_plain: dict[str, Any] = {}
    for key, item in value.items():
        name = plain_name(str(key))
        if name in by_plain and by_plain[name] != item:
            raise Misfit(f"`{key}` is there twice, and differs; give it once")
        by_plain[name] = item
    names = {name: plain_name(name) for name in schema["properties"]}
    found = {name: by_plain.pop(plain) for name, plain in names.items() if plain in by_plain}
    for name, plain in names.items():
        synonym = next((word for word in SYNONYMS.get(plain, ()) if word in by_plain), None)
        if name not in found and synonym is not None:
            found[name] = by_plain.pop(synonym)
    return found


# -- values


def _is_none(value: Any, members: Mapping[str, Schema]) -> bool:
    if value is None or (isinstance(value, str) and NONE_WORDS.fullmatch(value) is not None):
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
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    written = value.strip().casefold() if isinstance(value, str) else ""
    found = _VERDICT.match(written)
    # `1` is true, and `1. Turn off the gas.` begins a list; so does `Okay, let me see` begin what may end otherwise.
    may_go_on = found is not None and (found["word"].isdigit() or found["word"] in ("ok", "okay", "right"))
    if found and found["word"] in TRUTHS and not (may_go_on and len(written) > len(found["word"]) + 4):
        return TRUTHS[found["word"]] is (found["denied"] is None)
    raise Misfit(f"{_short(value)} is neither true nor false")


def _to_number(value: Any, schema: Schema) -> Any:
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _bound(value, schema)
    found = read_scaled(value.strip()) if isinstance(value, str) else None
    if found is None or not re.fullmatch(r"(?:\s*[a-z]+)?[\s*_`.]*", found.rest, re.IGNORECASE):
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
    choices = {plain_name(str(choice)): choice for choice in schema["enum"]}
    if value in schema["enum"]:
        return value
    if isinstance(value, str):
        # "ACCEPTED: all rules are quoted" says which, and why; "Accept" is the choice ACCEPTED.
        head = plain_name(re.split(r"[.,;:!(\n]| [–—-] ", value.strip(" *_`\"'"), maxsplit=1)[0])
        for written in (plain_name(value), head, f"{head}d", f"{head}ed"):
            if written in choices:
                return choices[written]
    truths = [TRUTHS.get(written) for written in choices]
    if truths in ([True, False], [False, True]):
        # Two choices that mean yes and no are a yes-or-no question.
        return schema["enum"][truths.index(_to_truth(value))]
    raise Misfit(f"{_short(value)} is none of: {', '.join(map(str, schema['enum']))}")


def _to_list(value: Any, schema: Schema) -> list[Any]:
    value, items = _decode(value), schema.get("items", {})
    takes_objects = any(_kind_of(member) == "object" for member in _members(items))
    if value is None or (isinstance(value, str) and NONE_WORDS.fullmatch(value)):
        value = []
    if isinstance(value, dict):
        value = _entries(value, items, takes_objects)
    elif isinstance(value, str) and not takes_objects:
        value = list_items(value) or [line.strip() for line in value.splitlines()]
    elif not isinstance(value, list):
        value = [value]
    entries = [entry for entry in value if entry not in (None, "")]
    if value and not entries:
        raise Misfit("there is nothing in its list")
    lowest, highest = schema.get("minItems", 0), schema.get("maxItems", len(entries))
    if not lowest <= len(entries) <= highest:
        wanted = f"at least {lowest}" if len(entries) < lowest else f"at most {highest}"
        raise Misfit(f"it has {len(entries)} items; give {wanted}")
    if not takes_objects and _takes_text(items):
        return [_entry_text(entry) for entry in entries]
    return [fit_value(entry, items) for entry in entries]


def _entries(value: Mapping[str, Any], items: Schema, takes_objects: bool) -> list[Any]:
    """Return the items of an object that stands where a list is wanted: it is one item, or names each."""
    inner = list(value.values())
    if takes_objects and not all(isinstance(item, dict | list) for item in inner):
        required = items.get("required", ())
        is_keyed = len(required) == 2 and not _by_field(value, items)
        return [dict(zip(required, entry, strict=True)) for entry in value.items()] if is_keyed else [value]
    if all(_ORDINAL.fullmatch(key.strip()) for key in value):
        return inner
    if len(inner) == 1 and isinstance(inner[0], list):
        return inner[0]
    if not takes_objects:
        return [f"{key}: {_to_text(item)}" for key, item in value.items()]
    if "properties" not in items or _by_field(value, items):
        return [value]
    # The keys say which item each is.
    name = next(iter(items["properties"]))
    return [{name: key, **item} if isinstance(item, dict) else item for key, item in value.items()]


def _entry_text(entry: Any) -> str:
    """Return an item of a list of texts; of an object, its texts without its number."""
    if not isinstance(entry, dict):
        return _to_text(entry)
    texts = {str(key): _to_text(item) for key, item in entry.items() if item not in (None, "")}
    return ": ".join(
        text
        for key, text in texts.items()
        if not (plain_name(key) in _LABELS and _ORDINAL.fullmatch(text.strip()))
    )


def _to_object(value: Any, schema: Schema) -> dict[str, Any]:
    if "properties" in schema:
        return _to_struct(value, schema)
    value, items = {} if value is None else _decode(value), schema.get("additionalProperties", {})
    if isinstance(value, list) and all(isinstance(entry, dict) and len(entry) == 1 for entry in value):
        value = {key: item for entry in value for key, item in entry.items()}
    if not isinstance(value, dict):
        raise Misfit(f"{_short(value)} is no object")
    return {key: fit_value(item, items) for key, item in value.items()}


def list_items(text: str) -> list[str]:
    """Return the items of the list a text has: its numbered lines, else its bulleted ones; none if it has no list."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("```")]
    return _items(lines, _NUMBERED) or _items(lines, _BULLETED)


def _items(lines: Sequence[str], start: re.Pattern[str]) -> list[str]:
    """Return the items of a list; remarks before the first and after the last are left out."""
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
        # The twin of an unpaired bold mark stood before the number.
        texts.append(text.replace("**", "", 1) if text.count("**") % 2 else text)
    return [text for text in texts if text.strip("*_ ")]


def _decode(value: Any) -> Any:
    """Return the JSON value that a text is, if it is one; anything else as it is."""
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
"""By the type of a value, the kinds that take it as it is."""
_CONVERT: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "object": _to_object,
    "string": _to_text,
    "boolean": _to_truth,
    "integer": _to_number,
    "number": _to_number,
    "enum": _to_choice,
    "array": _to_list,
}
