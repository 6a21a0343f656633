"""Proposals that come with their scores: candidate thoughts, each with how promising whoever proposes it finds it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from .fit import plain_name
from .parse import json_values
from .proposal import parse_thoughts, texts_in
from .score import SCORE_KEYS, parse_scores, read_score

_AT_END: Final = re.compile(
    r"[\s,;:–—|-]*(?:[(\[]\s*)?\b(?:score|value|rating)\s*(?:is\b|[:=])?\s*(?P<score>[\d.]+(?:\s*%|\s*/\s*[\d.]+)?)"
    r"\s*[)\]]?[\s.]*\Z",
    re.IGNORECASE,
)
"""Only a number that is called a score is one: `(left: 6 4)` ends with another."""


class ScoredThought(Struct, frozen=True, omit_defaults=True):
    """A proposal; the score is None where none could be read."""

    thought: str
    score: float | None = None


def parse_scored_thoughts(text: str) -> tuple[list[ScoredThought], str]:
    """Read the thoughts a reply lists, with their scores.

    Understood: what `parse_thoughts` understands, where an entry is an object with a score beside its text, or a pair
    of both; `scores` beside `thoughts`, as `parse_scores` reads them; lines that end with `score 0.7`.

    Returns:
        The thoughts, none of them empty, and the mode, as `parse_thoughts` has it. Never raises.
    """
    try:
        for value, mode in json_values(text):
            if thoughts := _in_data(value):
                return thoughts, mode
    except RecursionError:
        return [], "none"
    texts, mode = parse_thoughts(text)
    return [_in_line(line) for line in texts], mode


def _in_data(value: Any) -> list[ScoredThought]:
    entries = value if isinstance(value, list) else _entries(value)
    if entries and all(_is_scored(entry) for entry in entries):
        return [_in_entry(entry) for entry in entries]
    texts = texts_in(value)
    if not texts or not isinstance(value, dict):
        return [_in_line(line) for line in texts]
    beside = next((item for key, item in value.items() if plain_name(str(key)) == "scores"), {})
    scores = _scores_beside(beside, texts)
    return [
        ScoredThought(line, scores.get(f"t{number}")) if scores else _in_line(line)
        for number, line in enumerate(texts, 1)
    ]


def _entries(value: Any) -> list[Any]:
    """Return the entries of the only list an object holds."""
    lists = [item for item in value.values() if isinstance(item, list)] if isinstance(value, dict) else []
    return lists[0] if len(lists) == 1 else []


def _scores_beside(beside: Any, texts: list[str]) -> Mapping[str, float]:
    from msgspec.json import encode

    return parse_scores(encode({"scores": beside}).decode(), texts)[0] if beside else {}


def _is_scored(entry: Any) -> bool:
    if isinstance(entry, list):
        return len(entry) == 2 and isinstance(entry[0], str) and read_score(entry[1]) is not None
    return isinstance(entry, dict) and len(texts_in([_without_score(entry)])) == 1


def _in_entry(entry: Any) -> ScoredThought:
    if isinstance(entry, list):
        return ScoredThought(entry[0].strip(), read_score(entry[1]))
    named = (item for key, item in entry.items() if plain_name(str(key)) in SCORE_KEYS)
    (text,) = texts_in([_without_score(entry)])
    return ScoredThought(text, read_score(next(named, None)))


def _without_score(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in entry.items() if plain_name(str(key)) not in SCORE_KEYS}


def _in_line(line: str) -> ScoredThought:
    found = _AT_END.search(line)
    score = read_score(found["score"]) if found else None
    if found is None or score is None or not line[: found.start()].strip():
        return ScoredThought(line)
    return ScoredThought(line[: found.start()].strip(), score)
