"""Fitting data to a form: what a reply says, however its keys and values are dressed.

A key is the field it names whatever its case, its spaces and its underscores, and so is a common synonym of the
field's own word. A list stands for text and text for a list, yes for true, `"7/10"` for a number that has a scale, and
`"n/a"` for null where null may be.

Rule 1: two readings are none: if two keys name one field and differ, or a value could be two things, it does not fit.
Rule 2: what does not fit says which field, and why, to whoever is asked again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, inspect

from ..patterns import lazy_pattern
from .names import NONE_WORDS, SYNONYMS, TRUTHS, plain_name
from .numbers import read_scaled


class Unreadable(Struct, frozen=True):
    """Why a reply cannot be used; shown to whoever is asked again."""

    reason: str


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
_LISTS: Final = inspect.ListType | inspect.VarTupleType
_NUMBERS: Final = inspect.IntType | inspect.FloatType


def fit(value: Any, form: type[Struct]) -> Any | Unreadable:
    """Fit JSON data to a form.

    Returns:
        An instance of the form, or why it is none.
    """
    try:
        return msgspec.convert(_to_struct(value, _shape(form)), form, strict=False)
    except Misfit as error:
        return Unreadable(str(error))
    except (msgspec.MsgspecError, ValueError, OverflowError) as error:
        return Unreadable(f"it does not fit the form: {error}")


@cache
def fields_of(form: type[Struct]) -> tuple[FormField, ...]:
    """Return the fields of a form."""
    return tuple(
        FormField(field.encode_name, _kind_of(field.type), field.required, not _is_unasked(field.type))
        for field in _shape(form).fields
    )


def _kind_of(kind: inspect.Type) -> Literal["text", "texts", "choice", "list", "other"]:
    kind = _bare(kind)
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return "texts" if _takes_text(kind.item_type) else "list"
    if isinstance(kind, inspect.LiteralType | inspect.BoolType | _NUMBERS):
        return "choice"
    return "text" if _takes_text(kind) else "other"


def _is_unasked(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.Metadata) and bool((kind.extra_json_schema or {}).get("unasked"))


@cache
def names_of(form: type[Struct]) -> dict[str, str]:
    """Return what the fields of a form may be called, as `plain_name` writes it, with the field each names."""
    names = form.__struct_encode_fields__
    also = {
        synonym: name for name in reversed(names) for synonym in reversed(SYNONYMS.get(plain_name(name), ()))
    }
    return {**also, **{plain_name(name): name for name in names}}


def read_texts(value: Any) -> list[str]:
    """Return the texts of a value that stands for a list of texts; of objects, their texts; none if it is none."""
    try:
        return _to_list(value, inspect.ListType(inspect.StrType()))
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


# -- types


@cache
def _plain_names(form: type[Struct]) -> dict[str, str]:
    """Return the fields of a form, each with its name as `plain_name` writes it."""
    return {name: plain_name(name) for name in form.__struct_encode_fields__}


@cache
def _shape(form: type[Struct]) -> inspect.StructType:
    found = inspect.type_info(form)
    assert isinstance(found, inspect.StructType)
    return found


def _bare(kind: inspect.Type) -> inspect.Type:
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    return kind


def _members(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    """Return the types a value may have, those of unions inside a union too."""
    kind = _bare(kind)
    if not isinstance(kind, inspect.UnionType):
        return (kind,)
    return tuple(member for part in kind.types for member in _members(part))


def _takes_text(kind: inspect.Type) -> bool:
    return any(isinstance(member, inspect.StrType) for member in _members(kind))


def _may_be_none(kind: inspect.Type) -> bool:
    return any(isinstance(member, inspect.NoneType | inspect.AnyType) for member in _members(kind))


# -- objects


def _to_struct(value: Any, shape: inspect.StructType) -> dict[str, Any]:
    found = _by_field(_as_object(value, shape), shape)
    if shape.fields and not found:
        names = ", ".join(field.name for field in fields_of(shape.cls) if field.is_asked)
        raise Misfit(f"{NO_FIELD}: {names}")
    fitted: dict[str, Any] = {}
    for field in shape.fields:
        name, raw = field.encode_name, found.get(field.encode_name)
        if name not in found or (raw is None and not field.required and not _keeps_null(field.type)):
            continue
        try:
            fitted[name] = _to(_field_value(name, raw, field), field.type)
        except Misfit as error:
            raise Misfit(f"`{name}`: {error}") from None
    return fitted


def _keeps_null(kind: inspect.Type) -> bool:
    """Whether null is a value here, or a fault; where it is neither, it stands for the default."""
    return _may_be_none(kind) or isinstance(_bare(kind), _NUMBERS)


def _field_value(name: str, raw: Any, field: inspect.Field) -> Any:
    """Return the value of a field as its name says it is meant: one question, an answer with nothing left out."""
    if plain_name(name).endswith("question") and isinstance(raw, list) and len(raw) > 1:
        raise Misfit("it has several questions; ask one")
    if not plain_name(name).endswith(("answer", "result")):
        return raw
    if field.required and isinstance(raw, str) and not raw.strip() and _may_be_none(field.type):
        raise Misfit("it is empty; give it, or null")
    return _json(raw) if isinstance(raw, list | dict) and _takes_text(field.type) else raw


def _as_object(value: Any, shape: inspect.StructType) -> dict[str, Any]:
    """Return the object a value is: it may be wrapped, stand in a text, or be the only field that is wanted."""
    value = _decode(value)
    if (
        isinstance(value, dict)
        and value.get("type") == "object"
        and isinstance(value.get("properties"), dict)
    ):
        # The schema, with its values filled in.
        value = value["properties"]
    inner = unwrap(value, _plain_names(shape.cls).values())
    inner = unwrap(value, names_of(shape.cls)) if inner is value else inner
    if isinstance(inner, list) and len(inner) == 1:
        inner = inner[0]
    if isinstance(inner, dict):
        return inner
    required = [field for field in shape.fields if field.required]
    is_none = inner is None and not (len(required) == 1 and _may_be_none(required[0].type))
    if len(required) != 1 or is_none or isinstance(_bare(required[0].type), inspect.StructType):
        raise Misfit(NO_OBJECT)
    return {required[0].encode_name: inner}


def _by_field(value: Mapping[str, Any], shape: inspect.StructType) -> dict[str, Any]:
    """Return what an object says of each field, by its own name first, by a synonym where it does not stand."""
    by_plain: dict[str, Any] = {}
    for key, item in value.items():
        name = plain_name(str(key))
        if name in by_plain and by_plain[name] != item:
            raise Misfit(f"`{key}` is there twice, and differs; give it once")
        by_plain[name] = item
    names = _plain_names(shape.cls)
    found = {name: by_plain.pop(plain) for name, plain in names.items() if plain in by_plain}
    for name, plain in names.items():
        synonym = next((word for word in SYNONYMS.get(plain, ()) if word in by_plain), None)
        if name not in found and synonym is not None:
            found[name] = by_plain.pop(synonym)
    return found


# -- values


def _to(value: Any, kind: inspect.Type) -> Any:
    """Return a value as its type wants it, or raise `Misfit`."""
    members = _members(kind)
    if any(isinstance(member, inspect.AnyType) for member in members):
        return value
    if _may_be_none(kind) and _is_none(value, members):
        return None
    wanted = [member for member in members if not isinstance(member, inspect.NoneType)]
    own = next((kinds for plain, kinds in _OWN if isinstance(value, plain)), inspect.StrType)
    chosen = next((member for member in wanted if isinstance(member, own)), None)
    chosen = chosen or next((member for member in wanted if isinstance(member, inspect.StrType)), wanted[0])
    return next((convert(value, chosen) for kinds, convert in _CONVERT if isinstance(chosen, kinds)), value)


def _is_none(value: Any, members: Sequence[inspect.Type]) -> bool:
    if value is None or (isinstance(value, str) and NONE_WORDS.fullmatch(value) is not None):
        return True
    return value in ({}, [], False, 0) and any(isinstance(member, inspect.StructType) for member in members)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _to_text(value: Any, _: Any = None) -> str:
    match value:
        case None:
            raise Misfit("it is null, and text is wanted")
        case str():
            return value
        case list():
            return "\n".join(_to_text(item) for item in value)
        case dict():
            return "\n".join(
                f"{key}: {item if isinstance(item, str) else _json(item)}" for key, item in value.items()
            )
        case _:
            return _json(value)


def _to_truth(value: Any, _: Any = None) -> bool:
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    written = value.strip().casefold() if isinstance(value, str) else ""
    found = _VERDICT.match(written)
    # `1` is true, and `1. Turn off the gas.` begins a list.
    if found and found["word"] in TRUTHS and not (found["word"].isdigit() and len(written) > 6):
        return TRUTHS[found["word"]] is (found["denied"] is None)
    raise Misfit(f"{_short(value)} is neither true nor false")


def _to_number(value: Any, kind: inspect.IntType | inspect.FloatType) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    found = read_scaled(value.strip()) if isinstance(value, str) else None
    if found is None or not re.fullmatch(r"(?:\s*[a-z]+)?[\s*_`.]*", found.rest, re.IGNORECASE):
        raise Misfit(f"{_short(value)} is not one number")
    if found.scale is None:
        return int(found.number) if found.number.is_integer() else found.number
    if not found.scale or kind.le is None or (kind.le == 100 and found.scale not in (10, 100)):
        raise Misfit(f"{_short(value)} has a scale that is not asked for")
    number = found.number * kind.le / found.scale
    return int(number) if number.is_integer() else number


def _to_choice(value: Any, kind: inspect.LiteralType) -> Any:
    choices = {plain_name(str(choice)): choice for choice in kind.values}
    if value in kind.values:
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
        return kind.values[truths.index(_to_truth(value))]
    raise Misfit(f"{_short(value)} is none of: {', '.join(map(str, kind.values))}")


def _to_list(value: Any, kind: inspect.ListType | inspect.VarTupleType) -> list[Any]:
    value = _decode(value)
    members = _members(kind.item_type)
    shape = next((member for member in members if isinstance(member, inspect.StructType)), None)
    if value is None or (isinstance(value, str) and NONE_WORDS.fullmatch(value)):
        return []
    if isinstance(value, dict):
        value = _entries(value, shape)
    elif isinstance(value, str) and shape is None:
        value = list_items(value) or [line.strip() for line in value.splitlines()]
    elif not isinstance(value, list):
        value = [value]
    entries = [entry for entry in value if entry not in (None, "")]
    if value and not entries:
        raise Misfit("there is nothing in its list")
    if shape is None and _takes_text(kind.item_type):
        return [_entry_text(entry) for entry in entries]
    return [_to(entry, kind.item_type) for entry in entries]


def _entries(value: Mapping[str, Any], shape: inspect.StructType | None) -> list[Any]:
    """Return the items of an object that stands where a list is wanted: it is one item, or has them by number."""
    if shape is not None and not all(isinstance(item, dict | list) for item in value.values()):
        return [value]
    items = list(value.values())
    if all(_ORDINAL.fullmatch(key.strip()) for key in value):
        return items
    if len(items) == 1 and isinstance(items[0], list):
        return items[0]
    if shape is None:
        return [f"{key}: {_to_text(item)}" for key, item in value.items()]
    return [value] if _by_field(value, shape) else items


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


def _to_dict(value: Any, kind: inspect.DictType) -> dict[str, Any]:
    value = {} if value is None else _decode(value)
    if isinstance(value, list) and all(isinstance(entry, dict) and len(entry) == 1 for entry in value):
        value = {key: item for entry in value for key, item in entry.items()}
    if not isinstance(value, dict):
        raise Misfit(f"{_short(value)} is no object")
    plain = _takes_text(kind.value_type)
    return {
        key: entry if plain and isinstance(entry, str) else _to(entry, kind.value_type)
        for key, entry in value.items()
    }


def list_items(text: str) -> list[str]:
    """Return the items of the list a text has: its numbered lines, else its bulleted ones; none if it has no list."""
    lines = text.splitlines()
    return _items(lines, _NUMBERED) or _items(lines, _BULLETED)


def _items(lines: Sequence[str], start: re.Pattern[str]) -> list[str]:
    """Return the items of a list; remarks before the first and after the last are left out."""
    items: list[list[str]] = []
    after_gap: list[str] | None = None
    for line in lines:
        if line.lstrip().startswith("```"):
            continue
        if match := start.match(line):
            if after_gap:
                items[-1] += after_gap
            items.append([match["text"]])
            after_gap = None
        elif items and not line.strip():
            after_gap = after_gap or []
        elif items and after_gap is None:
            items[-1].append(line)
        elif items and after_gap is not None:
            # Text after a blank line belongs to the item if it is indented or if another item follows.
            after_gap.append(line)
            if line[:1].isspace() and len(after_gap) == 1:
                items[-1].append(line)
                after_gap = None
    texts = [_drop_unpaired("\n".join(part.strip() for part in item).strip()) for item in items]
    return [text for text in texts if text.strip("*_ ")]


def _drop_unpaired(text: str) -> str:
    """Drop the bold mark whose twin stood before the number."""
    return text.replace("**", "", 1) if text.count("**") % 2 else text


def _decode(value: Any) -> Any:
    """Return the JSON value that a text is, if it is one; anything else as it is."""
    written = value.strip() if isinstance(value, str) else ""
    if not written.startswith(("{", "[", '"')) and not re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?", written):
        return value
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return value


def _short(value: Any) -> str:
    written = value if isinstance(value, str) else _json(value)
    return repr(written if len(written) <= 60 else f"{written[:57]}…")


_OWN: Final[tuple[tuple[Any, Any], ...]] = (
    (bool, inspect.BoolType),
    (int | float, _NUMBERS),
    (dict, inspect.DictType | inspect.StructType),
    (list, _LISTS),
)
"""By the type of a value, the types that take it as it is."""
_CONVERT: Final[tuple[tuple[Any, Callable[[Any, Any], Any]], ...]] = (
    (inspect.StructType, _to_struct),
    (inspect.StrType, _to_text),
    (inspect.BoolType, _to_truth),
    (_NUMBERS, _to_number),
    (inspect.LiteralType, _to_choice),
    (_LISTS, _to_list),
    (inspect.DictType, _to_dict),
)
