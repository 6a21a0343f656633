"""Reading what a model wrote: the pure part of the repair ladder.

The rungs, first that holds: the whole text is JSON; a JSON object stands in a fence; one stands somewhere in
prose; one can be put right (quotes, commas, brackets). Of several objects the last that fits counts, since models
restate a question's example before they answer it.

Rule 1: nothing here raises, whatever the text.
Rule 2: a value comes out only if it fits the wanted form; text that was not read never passes for one.
Rule 3: the time taken is bounded: only the end of a very long text is searched, hopeless starts are given up, and
        only short pieces are put right.
"""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .effects import Ask
from .events import Answered

MAX_SEARCHED: Final = 1_000_000
"""Characters at the end of a text that are searched for JSON."""

MAX_REPAIRED: Final = 12_000
"""Characters; longer pieces are not put right: whoever wrote them is better asked again."""

MAX_MARKS: Final = 600
"""Brackets and quotes in a piece that is put right; the time that takes grows with their square."""

MAX_DEPTH: Final = 64
"""Deeper nesting is no answer to anything."""

MAX_EXCERPT: Final = 2_000
"""Characters of an unusable reply that are shown to whoever is asked again."""

_MAX_FALSE_STARTS: Final = 300
_MAX_OBJECTS: Final = 300
_START = re.compile(r'\{\s*["}]')
_FENCE_BEFORE = re.compile(r"```[\w+-]*\s*\Z")
_MARK = re.compile(r"[{}\[\]\"'“”]")
_FENCE = re.compile(r"```[\w+-]*\s*(?=[{\[])")


class Unreadable(Struct, frozen=True):
    """Why a reply cannot be used; shown to whoever is asked again."""

    reason: str


def read_form(text: str, form: type[Struct], *, whole: bool = False) -> tuple[Any, str] | Unreadable:
    """Read a reply into a form.

    Args:
        text: What was replied.
        form: The wanted form; numbers and booleans may come as text (`"0.7"`).
        whole: The reply may have been cut off: take it only if all of it is strict JSON.

    Returns:
        The value and the rung it was read on: `json`, `fenced`, `embedded` or `repaired`.
    """
    try:
        return _read_form(text, form, whole=whole)
    except RecursionError:
        return Unreadable("the reply is nested too deeply")


def _read_form(text: str, form: type[Struct], *, whole: bool) -> tuple[Any, str] | Unreadable:
    wanted = ", ".join(form.__struct_encode_fields__)
    reason = Unreadable(f"no JSON object was found in it; the fields wanted are: {wanted}")
    for value, mode in json_values(text, whole=whole):
        fitted = _fit(value, form)
        if not isinstance(fitted, Unreadable):
            return fitted, mode
        reason = fitted
    return reason


def is_whole(text: str) -> bool:
    """Whether a text is one complete JSON document, so that nothing of it can have been cut off."""
    return bool(_strict(text))


def json_values(text: str, *, whole: bool = False) -> Iterator[tuple[Any, str]]:
    """Yield JSON values a text holds, likeliest first, with the rung each was found on.

    Strings hold no lone surrogates and numbers are finite; a number that is not is None.

    Raises:
        RecursionError: A value is nested too deeply.
    """
    strict = _strict(text)
    yield from ((value, "json") for value in strict)
    if whole or (strict and isinstance(strict[0], dict)):
        return
    tail = text[-MAX_SEARCHED:]
    for value, start in reversed(deque(_objects(tail), maxlen=_MAX_OBJECTS)):
        yield _clean(value), "fenced" if _FENCE_BEFORE.search(tail, max(0, start - 40), start) else "embedded"
    if not strict:
        yield from ((value, "repaired") for value in _repaired(tail))


def _strict(text: str) -> list[Any]:
    """Return the value of a text that is JSON as a whole, if it is."""
    stripped = text.strip().removeprefix("\ufeff").lstrip()
    try:
        value, end = _decoder.raw_decode(stripped)
    except (ValueError, RecursionError):
        return []
    return [_clean(value)] if end == len(stripped) else []


def _objects(text: str) -> Iterator[tuple[Any, int]]:
    """Yield the JSON objects in a text that are not inside one another, and where each starts."""
    position = false_starts = 0
    while false_starts < _MAX_FALSE_STARTS and (match := _START.search(text, position)):
        start = match.start()
        try:
            value, position = _decoder.raw_decode(text, start)
            yield value, start
        except (ValueError, RecursionError):
            false_starts, position = false_starts + 1, start + 1


def _repaired(text: str) -> Iterator[Any]:
    import json_repair

    for piece in _repairable(text):
        try:
            value = json_repair.repair_json(piece, return_objects=True, skip_json_loads=True)
            # Several pieces of JSON come back as a list of them.
            values = [_clean(each) for each in reversed(value if isinstance(value, list) else [value])]
        except Exception:
            # A library that guesses may trip over its own guess; the reply is then unreadable, no more.
            continue
        yield from (each for each in values if isinstance(each, dict))


def _repairable(text: str) -> Iterator[str]:
    """Yield the pieces worth putting right: what stands in the last fence, and all from the first brace on."""
    fences = [match.end() for match in _FENCE.finditer(text)]
    starts = {fences[-1]} if fences else set[int]()
    if (first := text.find("{")) >= 0:
        starts.add(first)
    for start in sorted(starts, reverse=True):
        closing = text.find("\n```", start)
        piece = text[start : closing if closing >= 0 else len(text)]
        if len(piece) <= MAX_REPAIRED and len(_MARK.findall(piece)) <= MAX_MARKS:
            yield piece


def _float(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


def _int(digits: str) -> int | float | None:
    return int(digits) if len(digits) <= 18 else _float(digits)


def _nothing(_: str) -> None:
    """NaN and the infinities are no JSON."""


_decoder = json.JSONDecoder(parse_float=_float, parse_int=_int, parse_constant=_nothing)


def without_surrogates(text: str) -> str:
    """Return text that can be encoded: pairs joined, lone surrogates replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _clean(value: Any, depth: int = 0) -> Any:
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, dict):
        return {without_surrogates(key): _clean(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item, depth + 1) for item in value]
    return value if not isinstance(value, float) or math.isfinite(value) else None


def _fit(value: Any, form: type[Struct]) -> Any | Unreadable:
    if not isinstance(value, dict):
        return Unreadable("it is JSON, but not a JSON object")
    names = form.__struct_encode_fields__
    if names and not any(name in value for name in names):
        return Unreadable(f"its JSON object has none of the fields wanted: {', '.join(names)}")
    try:
        fitted = msgspec.convert(value, form, strict=False)
    except (msgspec.MsgspecError, ValueError, OverflowError) as error:
        return Unreadable(f"its JSON does not fit the form: {error}")
    if not _finite(msgspec.to_builtins(fitted)):
        return Unreadable("a number in it is not finite")
    return fitted


def _finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_finite(item) for item in value.values())
    if isinstance(value, list):
        return all(_finite(item) for item in value)
    return not isinstance(value, float) or math.isfinite(value)


def ask_again(ask: Ask, reply: Answered, reason: str) -> Ask:
    """Return the question once more, with what was wrong with the last reply.

    What was asked before stays the beginning of the prompt, so that providers can cache it. After a reply that was
    cut off there is twice the room, and a shorter answer is asked for.
    """
    wish = "Answer the same question again"
    if reply.truncated:
        wish += ", much more briefly"
    if ask.form is not None:
        wish += "; reply with one JSON object of the form asked for and nothing else"
    said = _excerpt(without_surrogates(reply.text).strip()) or "(nothing)"
    prompt = f"{ask.prompt}\n\nYour last reply was:\n<<<\n{said}\n>>>\nIt cannot be used: {reason}.\n{wish}."
    room = ask.max_output_tokens
    if room is not None and reply.truncated:
        room *= 2
    return replace(ask, prompt=prompt, max_output_tokens=room)


def _excerpt(text: str) -> str:
    if len(text) <= MAX_EXCERPT:
        return text
    half = MAX_EXCERPT // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
