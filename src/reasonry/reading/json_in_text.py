r"""Find JSON in a reply, and repair JSON with small syntax errors.

Rule 1: only complete JSON is repaired. If a text is cut off, its missing rest is not invented.
Rule 2: the time is bounded: only the end of a very long text is searched, the search ends after too many false starts,
        only short pieces are repaired, and values that are nested too deeply are rejected.
Rule 3: in the values found, strings have no lone surrogates, and None replaces a number that is not finite.
"""

import json
import math
import re
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from ..text import lazy_pattern, without_surrogates

CUT_OFF: Final = "the reply breaks off within its JSON; give it whole"
MAX_SEARCHED: Final = 1_000_000
"""How many characters at the end of a text are searched for JSON."""
MAX_REPAIRED: Final = 12_000
"""The longest piece to repair, in characters; for a longer piece it is better to ask again."""
_MAX_MARKS: Final = 600
"""The most brackets and quotes in a piece to repair. The repair time grows with the square of this count."""
MAX_DEPTH: Final = 64
_MAX_VALUE: Final = 100_000
"""The longest text, in characters, to search for one value."""
_MAX_TRIES: Final = 300

WHOLE_FENCE: Final = lazy_pattern(r"```[\w+-]*\s*\n(?P<inside>.*?)\n?```", re.DOTALL)
_START: Final = lazy_pattern(r'\{\s*["}]')
_START_OF_REPLY: Final = lazy_pattern(r"(?:\A|```\w*)\s*(?P<start>\{\s*[\"'“])")
_FENCE_BEFORE: Final = lazy_pattern(r"```[\w+-]*\s*\Z")
_FENCE: Final = lazy_pattern(r"```[\w+-]*\s*(?=[{\[])")
_BRACE: Final = lazy_pattern(r"(?:\\[A-Za-z]+|[}^_\\])\{|(?P<brace>\{)")
r"""An opening brace. The group `brace` is empty for a brace of LaTeX, such as `\frac{1}{2}`."""
_MARKS: Final = "{}[]\"'“”"
_ESCAPE: Final = lazy_pattern(
    r"\\(?:\\|(?P<command>(?:b(?:oxed|eta|ar|egin|ig|inom|f|ecause|ullet|ot|old|oldsymbol)"
    r"|f(?:rac|orall|loor|box)|n(?:eq|abla|mid|geq|leq|otin|eg)|r(?:ight|ightarrow|ho|angle|floor|ceil)"
    r"|t(?:imes|ext|extbf|extit|heta|frac|an|o|au|op|herefore|riangle|ilde))(?![a-z])"
    r"|u(?![0-9A-Fa-f]{4})|[^\"\\/bfnrtu\s]))"
)
r"""A backslash that begins a LaTeX command and not a JSON escape. `\\` matches too, so that it is left intact."""


def json_values(text: str, *, whole: bool = False) -> Iterator[tuple[Any, str]]:
    """Yield the JSON values in a text, the likeliest first, each with the place where it was found.

    The place is `json` (the value is the whole text), `fenced`, `embedded` (in prose) or `repaired`.
    """
    if "\\" in text:
        # The backslash of a LaTeX command is escaped, so that `\frac` does not begin with a form feed.
        text = _ESCAPE.sub(lambda match: f"\\\\{match['command']}" if match["command"] else match[0], text)
    fence = WHOLE_FENCE.fullmatch(text.strip())
    strict = _whole_values(fence["inside"] if fence else text)
    yield from ((value, "fenced" if fence else "json") for value in strict)
    if whole or (strict and isinstance(strict[0], dict)):
        return
    tail = text[-MAX_SEARCHED:]
    is_broken = not strict and text.lstrip().startswith("{")
    if is_broken:
        # An object inside a broken object is only a part of it, not the reply.
        yield from ((value, "repaired") for value in _repair(tail))
    for value, start, _ in reversed(deque(_objects(tail), maxlen=_MAX_TRIES)):
        how = "fenced" if _FENCE_BEFORE.search(tail, max(0, start - 40), start) else "embedded"
        yield from ((each, how) for each in _clean(value))
    if not strict and not is_broken:
        yield from ((value, "repaired") for value in _repair(tail))


def json_value(text: str) -> Any:
    """Return the JSON object or list in a text, repaired if necessary. If there is none, return None."""
    if len(text) > _MAX_VALUE or text.lstrip()[:1] not in ("{", "[", "`"):
        return None
    return next((value for value, _ in json_values(text) if isinstance(value, dict | list)), None)


def is_whole(text: str) -> bool:
    """Whether a text is one complete JSON document, so that it cannot have been cut off."""
    return bool(_whole_values(text))


def breaks_off(text: str) -> bool:
    """Whether the JSON object of a reply, alone or in a fence, is cut off before its end."""
    starts = [match.start("start") for match in _START_OF_REPLY.finditer(text[-MAX_SEARCHED:])]
    return bool(starts) and not _decode_at(text, starts[-1]) and _is_cut(text[starts[-1] :])


def _whole_values(text: str) -> list[Any]:
    """If the whole text is JSON, return a list with its value. Otherwise, return an empty list."""
    stripped = text.strip().removeprefix("\ufeff").lstrip()
    found = _decode_at(stripped, 0)
    return _clean(found[0]) if found and found[1] == len(stripped) else []


def _objects(text: str) -> Iterator[tuple[Any, int, int]]:
    """Yield the outermost JSON objects in a text, each with its start and end."""
    position = false_starts = 0
    while false_starts < _MAX_TRIES and (match := _START.search(text, position)):
        start = match.start()
        if found := _decode_at(text, start):
            value, position = found
            yield value, start, position
        else:
            false_starts, position = false_starts + 1, start + 1


def _decode_at(text: str, start: int) -> tuple[Any, int] | None:
    try:
        return _decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def _repair(text: str) -> Iterator[Any]:
    import json_repair

    for piece in _repairable(text):
        try:
            value = json_repair.repair_json(piece, return_objects=True, skip_json_loads=True)
        except Exception:
            # The library guesses, and may fail on its own guess; then the reply is merely unreadable.
            continue
        # The library returns several pieces of JSON as a list.
        for each in reversed(value if isinstance(value, list) else [value]):
            yield from _clean(each) if isinstance(each, dict) else ()


def _repairable(text: str) -> Iterator[str]:
    """Yield the pieces worth repairing: the last fence, and the text from the first brace on."""
    fences = [match.end() for match in _FENCE.finditer(text)]
    starts = {fences[-1]} if fences else set[int]()
    first = next((match.start("brace") for match in _BRACE.finditer(text) if match["brace"]), -1)
    if first >= 0 and text.count("```", 0, first) % 2 == 0:
        # A brace in a fence is code if the fence does not begin with a brace.
        starts.add(first)
    for start in sorted(starts, reverse=True):
        closing = text.find("\n```", start)
        piece = text[start : closing if closing >= 0 else len(text)]
        if len(piece) <= MAX_REPAIRED and sum(map(piece.count, _MARKS)) <= _MAX_MARKS and not _is_cut(piece):
            yield piece


def _is_cut(piece: str) -> bool:
    """Whether a broken piece of JSON ends within a string or a number. Missing brackets alone do not count."""
    piece = piece.rstrip("` \t\r\n")
    rest = piece[max(piece.rfind("}"), piece.rfind("]")) + 1 :]
    has_more = rest == piece or re.search(r"[\"'“]", rest) is not None
    is_quoted = re.sub(r"\\.", "", piece, flags=re.DOTALL).count('"') % 2 == 1
    return is_quoted or (has_more and not piece.endswith(('"', "'", "”")))


_decoder = json.JSONDecoder(
    strict=False, parse_int=lambda digits: int(digits) if len(digits) <= 18 else float(digits)
)


def _clean(value: Any) -> list[Any]:
    """Return [value] without lone surrogates and non-finite numbers. If the value is nested too deeply, return []."""
    try:
        return [_clean_value(value, 0)]
    except RecursionError:
        return []


def _clean_value(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, dict):
        return {without_surrogates(key): _clean_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean_value(item, depth + 1) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
