"""Proposals that come with their scores: candidate thoughts, each with how promising whoever proposes it finds it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, json

from ..patterns import lazy_pattern
from .fit import plain_name
from .json_in_text import json_values
from .proposal import parse_thoughts, texts_in
from .score import SCORE_KEYS, parse_scores, read_score

_AT_END: Final = lazy_pattern(
    r"[\s,;:–—|-]*(?:[(\[]\s*)?\b(?:score|value|rating)\s*(?:is\b|[:=])?\s*(?P<score>[\d.]+(?:\s*%|\s*/\s*[\d.]+)?)"
    r"\s*[)\]]?[\s.]*\Z",
    re.IGNORECASE,
)
"""A number that is called a score is one."""
_MAX_LINE: Final = 2_000
"""Characters; a number at the end of a longer text is no score of it."""
_SCORE_WORD: Final = lazy_pattern(r"\b(?:score|value|rating)\b", re.IGNORECASE)
_THOUGHT_KEYS: Final = frozenset({"thought", "content", "text", "step", "candidate", "idea", "name"})

_AFTER_STEP: Final = lazy_pattern(
    r"(?P<step>.*\([^()]{0,200}[^\W\d_][^()]{0,200}\))(?:\s+[-–—]|\s*:)\s+(?P<score>[01](?:\.\d+)?|\.\d+"
    r"|\d{1,3}\s?%)\s*",
    re.DOTALL,
)
"""A step that is complete, `… (left: 8 6)`, and a number after it."""
_IN_BRACKETS: Final = lazy_pattern(
    r"(?P<step>.*\S(?<!left)(?<!remaining))\s+[(\[](?P<score>[01]?\.\d+|1\.0*|\d{1,3}\s?%)[)\]]\s*",
    re.DOTALL | re.IGNORECASE,
)


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
    if not texts and (only := _only_thought(text)):
        return [only], "plain"
    return [_in_line(line) for line in texts], mode


def _only_thought(text: str) -> ScoredThought | None:
    """Return the thought that a text is as a whole; None: it is JSON, or has more than one line or score."""
    line = text.strip()
    if line.startswith(("{", "[", "```")) or "\n" in line or len(_SCORE_WORD.findall(line)) > 1:
        return None
    found = _in_line(line)
    return found if found.score is not None else None


def _in_data(value: Any) -> list[ScoredThought]:
    entries = value if isinstance(value, list) else _entries(value)
    if isinstance(value, dict) and _is_only_thought(value):
        entries = [value]
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


def _is_only_thought(value: Mapping[str, Any]) -> bool:
    """Whether an object is a thought with its score, and not a list of thoughts."""
    names = [plain_name(str(key)) for key in value]
    is_flat = not any(isinstance(item, list | dict) for item in value.values())
    return is_flat and bool(SCORE_KEYS & {*names}) and len(_THOUGHT_KEYS & {*names}) == 1


def _entries(value: Any) -> list[Any]:
    """Return the entries of the only list an object holds."""
    lists = [item for item in value.values() if isinstance(item, list)] if isinstance(value, dict) else []
    return lists[0] if len(lists) == 1 else []


def _scores_beside(beside: Any, texts: list[str]) -> Mapping[str, float]:
    return parse_scores(json.encode({"scores": beside}).decode(), texts)[0] if beside else {}


def _is_scored(entry: Any) -> bool:
    if isinstance(entry, list):
        return len(entry) == 2 and isinstance(entry[0], str) and read_score(entry[1]) is not None
    return isinstance(entry, dict) and len(texts_in([_without_score(entry)])) == 1


def _in_entry(entry: Any) -> ScoredThought:
    if isinstance(entry, list):
        return ScoredThought(entry[0].strip(), read_score(entry[1]))
    named = [item for key, item in entry.items() if plain_name(str(key)) in SCORE_KEYS]
    (text,) = texts_in([_without_score(entry)])
    return ScoredThought(text, read_score(named[0])) if named else _in_line(text)


def _without_score(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in entry.items() if plain_name(str(key)) not in SCORE_KEYS}


def _in_line(line: str) -> ScoredThought:
    found = _AT_END.search(line)
    step = line[: found.start()] if found else ""
    if (
        found is None
        and len(line) <= _MAX_LINE
        and (found := _AFTER_STEP.fullmatch(line) or _IN_BRACKETS.fullmatch(line))
    ):
        step = found["step"]
    score = read_score(found["score"]) if found else None
    return ScoredThought(line) if score is None or not step.strip() else ScoredThought(step.strip(), score)
