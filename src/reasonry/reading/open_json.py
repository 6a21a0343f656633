"""Where JSON that was not written to its end breaks off: within a text, or with brackets left open.

Missing brackets can be put right, since nothing of what was said is lost. The rest of a text cannot: `"Who` may be the
beginning of any question.
"""

from __future__ import annotations

import json
import re
from typing import Final, Literal

from ..patterns import lazy_pattern

OPEN_TEXT: Final = "the reply ends in the middle of a text; give it whole"
OPEN_BRACKETS: Final = "the reply is JSON that ends before it is closed; give it whole"

_START: Final = lazy_pattern(r"\{\s*[\"'“]")
_START_OF_ALL: Final = lazy_pattern(r"(?:```\w*)?\s*(?P<start>\{|\[(?=\s*[\"'“{\[]))")
_FENCE_AT_END: Final = lazy_pattern(r"\s*`{3,}\s*\Z")
_MARK: Final = lazy_pattern(r"[{}\[\]\"'“]")
_ESCAPED_OR_QUOTE: Final = lazy_pattern(r"\\.|\"", re.DOTALL)
_CLOSING: Final = {'"': '"', "'": "'", "“": "”"}
_MAX_STARTS: Final = 300


def open_end(text: str) -> Literal["text", "brackets"] | None:
    """Return what the JSON of a text leaves open at its end; None: nothing, or there is no JSON in it."""
    text = _FENCE_AT_END.sub("", text)
    start = _broken_start(text)
    return None if start is None else _left_open(text, start)


def _broken_start(text: str) -> int | None:
    """Return where the first JSON begins that is not valid as it stands."""
    whole = _START_OF_ALL.match(text)
    match = whole or _START.search(text)
    for _ in range(_MAX_STARTS):
        if match is None:
            return None
        start = match.start("start") if match is whole else match.start()
        try:
            _, position = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            return start
        except RecursionError:
            return None
        match = _START.search(text, position)
    return None


def _left_open(text: str, start: int) -> Literal["text", "brackets"] | None:
    depth, position = 0, start
    while match := _MARK.search(text, position):
        mark, position = match[0], match.end()
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if depth <= 0:
                return None
        elif _before(text, match.start()) in ("{", "[", ",", ":", '"', "'", "”"):
            end = _end_of_text(text, position, _CLOSING[mark])
            if end is None:
                return "text" if _is_cut(text, start) else "brackets"
            position = end
    return "brackets" if depth else None


def _end_of_text(text: str, position: int, closing: str) -> int | None:
    """Return the end of a text in quotes; a quote inside it that is not escaped does not end it."""
    ends = lazy_pattern(rf"\\.|{closing}(?=\s*(?:[,:}}\]\"'“/#]|\Z))", re.DOTALL)
    for match in ends.finditer(text, position):
        if match[0][0] != "\\":
            return match.end()
    return None


def _is_cut(text: str, start: int) -> bool:
    """Whether a text that seems open is: where brackets close at the end, a stray quote may only make it seem so."""
    if not text.rstrip().endswith(("}", "]")):
        return True
    quotes = sum(match[0] == '"' for match in _ESCAPED_OR_QUOTE.finditer(text, start))
    return quotes % 2 == 1


def _before(text: str, place: int) -> str:
    """Return the last character before a place that is not blank."""
    while place > 0 and text[place - 1].isspace():
        place -= 1
    return text[place - 1 : place]
