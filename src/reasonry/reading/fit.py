"""Fitting data to a form: what a reply says, however its keys and values are dressed.

A key is the field it names whatever its case, its spaces and its underscores, and so is a common synonym of the
field's own word. A list stands for text and text for a list, yes for true, `"7/10"` for a number that has a scale, and
`"n/a"` for null where null may be.

Rule 1: two readings are none: if two keys name one field and differ, or a value could be two things, it does not fit.
Rule 2: what does not fit says which field, and why, to whoever is asked again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Struct, inspect

from ..patterns import lazy_pattern
from .lists import list_items
from .synonyms import SYNONYMS
from .yes_no import MAX_NONE_CHARS, NONE_WORDS, TRUTHS


class Unreadable(Struct, frozen=True):
    """Why a reply cannot be used; shown to whoever is asked again."""

    reason: str


NO_OBJECT: Final = "it is JSON, but not a JSON object"
NO_FIELD: Final = "its JSON object has none of the fields wanted"


class Misfit(ValueError):
    """Why a value is not what a field wants."""


_NOT: Final = lazy_pattern(r"(?:not|does not|doesn't|isn't|is not)\s+(\w+)", re.IGNORECASE)
_FIRST_WORD: Final = lazy_pattern(r"\W*(\w+)\W*(?:\Z|[,.;:!\n(–—-])")
_NUMBER: Final = lazy_pattern(
    r"\W*?(?:about|around|approximately|approx\.?|roughly|ca\.?|~|≈)?\s*(?P<number>[-+−]?(?:\d{1,3}(?:,\d{3})+"
    r"|\d+)?(?:\.\d+)?)"
    r"(?:\s*(?:/|out of)\s*(?P<scale>\d+(?:\.\d+)?)|\s*(?P<percent>%|percent)|\s+[a-z]+)?[\s*_`.]*",
    re.IGNORECASE,
)
_ORDINAL: Final = lazy_pattern(r"(?:[a-z]+[\s_-]*)?\d{1,3}", re.IGNORECASE)
_ASSIGNED: Final = lazy_pattern(r"\s*(?:[-*•]\s+)?[`*]*(?P<name>\w[\w ]*?)[`*]*\s*[=:]\s*(?P<value>[^,;\n]+)")
_LABELS: Final = frozenset({"id", "number", "index", "no", "nr", "position", "step", "candidate"})


def fit(value: Any, form: type[Struct]) -> Any | Unreadable:
    """Fit JSON data to a form.

    Returns:
        An instance of the form, or why it is none.
    """
    as_asked = _fit_as_asked(value, form)
    if as_asked is not None:
        return as_asked
    try:
        data = _to_struct(value, _shape(form))
        fitted = msgspec.convert(data, form, strict=False)
    except Misfit as error:
        return Unreadable(str(error))
    except (msgspec.MsgspecError, ValueError, OverflowError) as error:
        return Unreadable(f"it does not fit the form: {error}")
    if not _is_finite(msgspec.to_builtins(fitted)):
        return Unreadable("a number in it is not finite")
    return fitted


def _fit_as_asked(value: Any, form: type[Struct]) -> Struct | None:
    """Return what a reply says that is just as it was asked for: its own keys, plain values of the right types."""
    if not isinstance(value, dict) or not value or not value.keys() <= set(form.__struct_encode_fields__):
        return None
    for item in value.values():
        is_plain = isinstance(item, list) and item and all(isinstance(entry, str) and entry for entry in item)
        if isinstance(item, list | dict) and not is_plain:
            return None
        if isinstance(item, str) and (
            not item or (len(item) < MAX_NONE_CHARS and NONE_WORDS.fullmatch(item))
        ):
            return None
    try:
        return msgspec.convert(value, form)
    except (msgspec.MsgspecError, ValueError, OverflowError):
        return None


def names_of(form: type[Struct]) -> dict[str, str]:
    """Return what the fields of a form may be called, as `plain_name` writes it, with the field each names."""
    shape = _shape(form)
    own = {plain_name(field.encode_name): field.encode_name for field in shape.fields}
    own |= {plain_name(field.name): field.encode_name for field in shape.fields}
    also = {
        synonym: field.encode_name
        for field in reversed(shape.fields)
        for synonym in reversed(SYNONYMS.get(plain_name(field.encode_name), ()))
    }
    return {**also, **own}


def read_texts(value: Any) -> list[str]:
    """Return the texts of a value that stands for a list of texts; of objects, their texts; none if it is none."""
    try:
        return _to_list(value, inspect.StrType())
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


def plain_name(key: str) -> str:
    """Return what spellings of a name have in common: `Step-Back Question` and `step_back_question`."""
    return re.sub(r"[\W_]+", "", key.casefold())


def choice_field(form: type[Struct]) -> str | None:
    """Return the one field that must be there and is a choice, a truth value or a number, if there is one."""
    kinds = inspect.LiteralType | inspect.BoolType | inspect.IntType | inspect.FloatType
    found = [
        field for field in _shape(form).fields if field.required and isinstance(_bare(field.type), kinds)
    ]
    return found[0].encode_name if len(found) == 1 else None


def text_fields(form: type[Struct], *, beside: str | None = None) -> dict[str, bool] | None:
    """Return the fields that must be there, and whether each is a list of texts; None: some are neither.

    Args:
        beside: A field that is left out.
    """
    found: dict[str, bool] = {}
    for field in _shape(form).fields:
        kind = _bare(field.type)
        is_list = isinstance(kind, inspect.ListType | inspect.VarTupleType) and _takes_text(kind.item_type)
        is_wanted = field.required and field.encode_name != beside
        if is_wanted and not is_list and not _takes_text(kind):
            return None
        if is_wanted:
            found[field.encode_name] = is_list
    return found


def asked_fields(form: type[Struct]) -> list[str]:
    """Return the fields of a form that are asked for; others are only read where they are given."""
    return [field.encode_name for field in _shape(form).fields if not _is_unasked(field.type)]


def _is_unasked(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.Metadata) and bool((kind.extra_json_schema or {}).get("unasked"))


def list_fields(form: type[Struct]) -> dict[str, bool]:
    """Return the fields of a form, and whether each is a list."""
    kinds = inspect.ListType | inspect.VarTupleType
    return {field.encode_name: isinstance(_bare(field.type), kinds) for field in _shape(form).fields}


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


# -- objects


def _to_struct(value: Any, shape: inspect.StructType) -> dict[str, Any]:
    value = _unwrap_form(_as_object(value, shape), shape)
    found = _by_field(value, shape)
    if shape.fields and not found:
        names = ", ".join(asked_fields(shape.cls))
        raise Misfit(f"{NO_FIELD}: {names}")
    fitted: dict[str, Any] = {}
    for field in shape.fields:
        name, raw = field.encode_name, found.get(field.encode_name)
        # Null in the place of a text or list that has a default stands for the default.
        if name in found and (raw is not None or field.required or not _has_plain_default(field)):
            if plain_name(name).endswith("question") and isinstance(raw, list) and len(raw) > 1:
                raise Misfit(f"`{name}` has several questions; ask one")
            is_answer = plain_name(name).endswith(("answer", "result"))
            is_empty = isinstance(raw, str) and not raw.strip()
            if field.required and is_answer and is_empty and _may_be_none(field.type):
                raise Misfit(f"`{name}` is empty; give it, or null")
            if is_answer and isinstance(raw, list | dict) and _takes_text(field.type):
                # A list or an object as the answer is the answer: as JSON, so that nothing of it is lost.
                raw = _json(raw)
            try:
                fitted[name] = _to(raw, field.type)
            except Misfit as error:
                raise Misfit(f"`{name}`: {error}") from None
    return fitted


def _unwrap_form(value: dict[str, Any], shape: inspect.StructType) -> dict[str, Any]:
    """Return the object inside one that only wraps it: `{"response": {…}}`, or the schema with its values filled in."""
    own = {plain_name(field.encode_name) for field in shape.fields}
    inner = value.get("properties") if value.get("type") == "object" else None
    if inner is None and len(value) == 1:
        (inner,) = value.values()
    if not isinstance(inner, dict) or own & {plain_name(str(key)) for key in value}:
        return value
    is_ours = own & {plain_name(str(key)) for key in inner}
    return inner if is_ours or not _by_field(value, shape) else value


def _as_object(value: Any, shape: inspect.StructType) -> dict[str, Any]:
    """Return the object a value is: it may stand in a list, in a text, or be the only field that is wanted."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        value = _decode(value, value)
    if isinstance(value, dict):
        return value
    required = [field for field in shape.fields if field.required]
    is_none = value is None and not (len(required) == 1 and _may_be_none(required[0].type))
    if len(required) != 1 or is_none or isinstance(_bare(required[0].type), inspect.StructType):
        raise Misfit(NO_OBJECT)
    return {required[0].encode_name: value}


def _by_field(value: Mapping[str, Any], shape: inspect.StructType) -> dict[str, Any]:
    """Return what an object says of each field, by its own name first, by a synonym where it does not stand."""
    own = {
        plain_name(name): field.encode_name
        for field in shape.fields
        for name in (field.name, field.encode_name)
    }
    found: dict[str, tuple[str, Any]] = {}
    rest: dict[str, tuple[str, Any]] = {}
    for key, item in value.items():
        name = own.get(plain_name(str(key)))
        if name is None:
            rest.setdefault(plain_name(str(key)), (key, item))
        else:
            found[name] = _one_of(name, found.get(name), (key, item))
    for field in shape.fields:
        name = field.encode_name
        if name in found:
            continue
        for synonym in SYNONYMS.get(plain_name(name), ()):
            if synonym in rest:
                found[name] = _one_of(name, found.get(name), rest.pop(synonym))
                break
    return {name: item for name, (_, item) in found.items()}


def _one_of(name: str, first: tuple[str, Any] | None, second: tuple[str, Any]) -> tuple[str, Any]:
    if first is None or first[1] == second[1]:
        return second
    raise Misfit(f"`{first[0]}` and `{second[0]}` both say what `{name}` is, and differ; give it once")


# -- values


def _may_be_none(kind: inspect.Type) -> bool:
    return any(isinstance(member, inspect.NoneType | inspect.AnyType) for member in _members(kind))


def _to(value: Any, kind: inspect.Type) -> Any:
    """Return a value as its type wants it, or raise `Misfit`."""
    members = _members(kind)
    if any(isinstance(member, inspect.AnyType) for member in members):
        return value
    if _may_be_none(kind) and _is_none(value, members):
        return None
    wanted = [member for member in members if not isinstance(member, inspect.NoneType)]
    return _to_any(value, wanted) if len(wanted) > 1 else _to_only(value, wanted[0])


def _to_only(value: Any, kind: inspect.Type) -> Any:
    match kind:
        case inspect.StructType():
            return _to_struct(value, kind)
        case inspect.StrType():
            return _to_text(value)
        case inspect.BoolType():
            return _to_truth(value)
        case inspect.IntType() | inspect.FloatType():
            return _to_number(value, kind)
        case inspect.LiteralType():
            return _to_choice(value, kind.values)
        case inspect.ListType() | inspect.VarTupleType():
            return _to_list(value, kind.item_type)
        case inspect.DictType():
            return _to_dict(value, kind.value_type)
        case _:
            return value


def _has_plain_default(field: inspect.Field) -> bool:
    numbers = inspect.IntType | inspect.FloatType
    return not _may_be_none(field.type) and not isinstance(_bare(field.type), numbers)


def _is_none(value: Any, members: Sequence[inspect.Type]) -> bool:
    if value is None or (isinstance(value, str) and NONE_WORDS.fullmatch(value) is not None):
        return True
    return value in ({}, [], False, 0) and any(isinstance(member, inspect.StructType) for member in members)


def _to_any(value: Any, wanted: Sequence[inspect.Type]) -> Any:
    """Fit a value to one of several types: to its own, else to text."""
    own = (
        (str, inspect.StrType),
        (bool, inspect.BoolType),
        (int | float, inspect.IntType | inspect.FloatType),
        (dict, inspect.DictType | inspect.StructType),
        (list, inspect.ListType | inspect.VarTupleType),
    )
    for plain, kinds in own:
        fits = isinstance(value, plain) and not (isinstance(value, bool) and plain is not bool)
        for member in wanted if fits else ():
            if isinstance(member, kinds):
                return value if plain in (str, int | float) else _to(value, member)
    if any(isinstance(member, inspect.StrType) for member in wanted):
        return _json(value) if isinstance(value, list | dict | bool) else _to_text(value)
    return _to(value, wanted[0])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _to_text(value: Any) -> str:
    if value is None:
        raise Misfit("it is null, and text is wanted")
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_to_text(item) for item in value)
    if isinstance(value, dict):
        return "\n".join(
            f"{key}: {item if isinstance(item, str) else _json(item)}" for key, item in value.items()
        )
    return _json(value)


def _to_truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    if isinstance(value, str):
        written = value.strip().casefold()
        negated = _NOT.match(written)
        word = negated or _FIRST_WORD.match(written)
        # `1` is true, and `1. Turn off the gas.` begins a list.
        if word is not None and not (word[1].isdigit() and written.strip("*_`. ") != word[1]):
            known = TRUTHS.get(word[1])
            if known is not None:
                return known is (negated is None)
    raise Misfit(f"{_short(value)} is neither true nor false")


def _truth_of(value: Any) -> bool | None:
    """Return whether a value means yes or no; None if neither."""
    try:
        return _to_truth(value)
    except Misfit:
        return None


def _to_number(value: Any, kind: inspect.IntType | inspect.FloatType) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    found = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or not found["number"].strip("-+−"):
        raise Misfit(f"{_short(value)} is not one number")
    number = float(found["number"].replace(",", "").replace("−", "-"))
    if found["scale"] or found["percent"]:
        scale, top = float(found["scale"] or 100), kind.le
        if not scale or top is None or (top == 100 and scale not in (10, 100)):
            raise Misfit(f"{_short(value)} has a scale that is not asked for")
        number *= top / scale
    return int(number) if number.is_integer() else number


def _to_choice(value: Any, choices: Sequence[Any]) -> Any:
    if value in choices:
        return value
    written = plain_name(value) if isinstance(value, str) else ""
    alike = [choice for choice in choices if isinstance(choice, str) and plain_name(choice) == written]
    if not alike and isinstance(value, str):
        # "ACCEPTED: all rules are quoted" says which, and why.
        head = plain_name(re.split(r"[.,;:!(\n]| [–—-] ", value.strip(" *_`\"'"), maxsplit=1)[0])
        alike = [
            choice
            for choice in choices
            # "Accept" is the choice ACCEPTED.
            if isinstance(choice, str) and plain_name(choice) in (head, f"{head}d", f"{head}ed")
        ]
    if not alike and [_truth_of(choice) for choice in choices] in ([True, False], [False, True]):
        # Two choices that mean yes and no are a yes-or-no question.
        alike = [choice for choice in choices if _truth_of(choice) is _truth_of(value)]
    if len(alike) != 1:
        listed = ", ".join(str(choice) for choice in choices)
        raise Misfit(f"{_short(value)} is none of: {listed}")
    return alike[0]


def _to_list(value: Any, item: inspect.Type) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str):
        value = _decode(value, value)
    members = _members(item)
    shape = next((member for member in members if isinstance(member, inspect.StructType)), None)
    if isinstance(value, dict):
        value = _entries(value, shape)
    elif isinstance(value, str):
        if NONE_WORDS.fullmatch(value):
            return []
        value = _lines(value) if shape is None else [value]
    elif not isinstance(value, list):
        value = [value]
    entries = [entry for entry in value if entry not in (None, "")]
    if value and not entries:
        raise Misfit("there is nothing in its list")
    if shape is None and _takes_text(item):
        return [_entry_text(entry) for entry in entries]
    return [_to(entry, item) for entry in entries]


def _lines(text: str) -> list[str]:
    return list_items(text) or [line.strip() for line in text.splitlines() if line.strip()]


def _entries(value: Mapping[str, Any], shape: inspect.StructType | None) -> list[Any]:
    """Return the items of an object that stands where a list is wanted: it is one item, or has them by number."""
    if shape is not None and not all(isinstance(item, dict | list) for item in value.values()):
        return [value]
    if all(_ORDINAL.fullmatch(key.strip()) for key in value):
        return list(value.values())
    inner = next(iter(value.values()))
    if len(value) == 1 and isinstance(inner, list):
        return inner
    return (
        [value]
        if shape is not None and _by_field(value, shape)
        else [item if shape is not None else f"{key}: {_to_text(item)}" for key, item in value.items()]
    )


def _entry_text(entry: Any) -> str:
    """Return an item of a list of texts; of an object, its texts without its number."""
    if isinstance(entry, dict):
        texts = [
            _to_text(item)
            for key, item in entry.items()
            if item not in (None, "")
            and not (plain_name(str(key)) in _LABELS and _ORDINAL.fullmatch(_to_text(item).strip()))
        ]
        return ": ".join(texts)
    return _to_text(entry)


def _to_dict(value: Any, item: inspect.Type) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, str):
        value = _decode(value, value)
    if isinstance(value, str):
        parts = [part for part in re.split(r"[,;\n]", value) if part.strip()]
        pairs = [_ASSIGNED.fullmatch(part) for part in parts]
        if not pairs or None in pairs:
            raise Misfit(f"{_short(value)} is no object")
        value = {
            pair["name"]: _decode(pair["value"].strip(), pair["value"].strip()) for pair in pairs if pair
        }
    if isinstance(value, list):
        value = dict(_pairs(value))
    if not isinstance(value, dict):
        raise Misfit(f"{_short(value)} is no object")
    plain = _takes_text(item)
    return {
        key: entry if plain and isinstance(entry, str) else _to(entry, item) for key, entry in value.items()
    }


def _pairs(entries: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    for entry in entries:
        if isinstance(entry, dict) and len(entry) == 1:
            yield from entry.items()
        elif isinstance(entry, dict) and {"name", "value"} <= entry.keys():
            yield str(entry["name"]), entry["value"]
        else:
            raise Misfit(f"{_short(entry)} is no name with its value")


def _decode(text: str, default: Any) -> Any:
    """Return the JSON value a text is, if it is one."""
    stripped = text.strip()
    if not stripped.startswith(("{", "[", '"')) and not re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?", stripped):
        return default
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError):
        return default


def _short(value: Any) -> str:
    written = value if isinstance(value, str) else _json(value)
    return repr(written if len(written) <= 60 else f"{written[:57]}…")


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_finite(item) for item in value.values())
    if isinstance(value, list):
        return all(_is_finite(item) for item in value)
    return not isinstance(value, float) or math.isfinite(value)
