"""Scores: how promising candidates are, from 0 to 1, as models write it.

Rule 1: a score is read with its scale (`0.7`, `90%`, `7/10`, `0.7/1.0`) or not at all. `85` has no scale; nothing is
        ever cut down to 1.
Rule 2: a score of 0 is a score.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .parse import json_values, without_surrogates
from .proposal import normal

_NUMBER: Final = r"(?:\d{1,12}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE]-?\d{1,2})?"
_SCORE: Final = re.compile(
    rf"\s*[*_`]*(?P<number>{_NUMBER})(?:\s*(?P<percent>%)|\s*(?:/|out\s+of)\s*(?P<scale>{_NUMBER}))?"
    r"[*_`]*\s*(?:\Z|[(\[|]|[-–—:;,.](?:\s|\Z))",
    re.IGNORECASE,
)
_LABEL: Final = r"(?:thought|candidate|option|step|score|approach|idea)"
_POSITION: Final = re.compile(
    rf"[*_`\[(#]*(?:{_LABEL}\s*)?[#t]?(?P<position>\d{{1,6}})[\])*_`.:]*", re.IGNORECASE
)
_LINE: Final = re.compile(
    rf"\s{{0,8}}(?:[-*•]\s+)?[*_`]*(?:{_LABEL}\s*)?#?(?P<position>\d{{1,6}})[*_`]*"
    r"\s?(?:[):=→]|\.(?=\s)|[-–—](?=\s))[*_`]*\s*(?P<rest>\S.*)",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(r"(?:score|value|rating)\s*(?:(?:is|[:=])\s*)?(?P<rest>[\d.].*)", re.IGNORECASE)
_BULLET: Final = re.compile(r"\A\s*[-*•]\s+")


def read_score(value: Any) -> float | None:
    """Return a score from 0 to 1, or None if this is none or its scale is not known."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if 0 <= value <= 1 else None
    if isinstance(value, Mapping):
        return read_score(value.get("score", value.get("value")))
    if not isinstance(value, str) or not (match := _SCORE.match(value)):
        return None
    number, scale = float(match["number"]), float(match["scale"] or (100 if match["percent"] else 1))
    score = number / scale if scale else math.nan
    return score if 0 <= score <= 1 else None


def parse_scores(text: str, thoughts: Sequence[str | Mapping[str, str]]) -> tuple[dict[str, float], str]:
    """Read the scores a reply gives to thoughts.

    Understood: `{"scores": {…}}` keyed by id, position (1, 2, …) or text; a list in the order of the thoughts, or of
    objects with `id` and `score`; the bare mapping; plain lines such as `1: 0.7`, `Thought 2 - 90%`.

    Args:
        text: What was replied.
        thoughts: `{"id", "content"}`, or plain texts, which get the ids `t1`, `t2`, ….

    Returns:
        The scores by id, and the mode: `json`, `fenced`, `embedded`, `repaired`, `list` or `none`. A thought whose
        score could not be read is not in it. Never raises.
    """
    named = [
        (f"t{number}", thought) if isinstance(thought, str) else (thought["id"], thought["content"])
        for number, thought in enumerate(thoughts, start=1)
    ]
    best: tuple[dict[str, float], str] = {}, "none"
    for scores, mode in _readings(text, named):
        if len(scores) > len(best[0]):
            best = scores, mode
        if len(scores) == len(named):
            break
    return best


def _readings(text: str, named: Sequence[tuple[str, str]]) -> Iterator[tuple[dict[str, float], str]]:
    try:
        for value, mode in json_values(text):
            yield _by_id(_given(value), named), mode
    except RecursionError:
        return
    lines = without_surrogates(text).splitlines()
    yield _by_id(_from_lines(lines, named), named), "list"


def _given(value: Any) -> dict[str, Any]:
    """Return what a JSON value gives scores to: keys are ids, positions or texts."""
    if isinstance(value, dict):
        value = value.get("scores", value)
    if isinstance(value, dict):
        return value
    if not isinstance(value, list):
        return {}
    given: dict[str, Any] = {}
    for position, item in enumerate(value, start=1):
        key: Any = position
        if isinstance(item, dict):
            key = next(
                (item[name] for name in ("id", "position", "thought", "content") if name in item), position
            )
        given[str(key)] = item
    return given


def _by_id(given: Mapping[str, Any], named: Sequence[tuple[str, str]]) -> dict[str, float]:
    by_text = {normal(key): value for key, value in given.items()}
    by_position: dict[int, Any] = {}
    for key, value in given.items():
        if match := _POSITION.fullmatch(key.strip()):
            by_position[int(match["position"])] = value
    scores: dict[str, float] = {}
    for position, (name, content) in enumerate(named, start=1):
        found = (given.get(name), by_position.get(position), by_text.get(normal(content)))
        score = read_score(next((value for value in found if value is not None), None))
        if score is not None:
            scores[name] = score
    return scores


def _from_lines(lines: Sequence[str], named: Sequence[tuple[str, str]]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for line in lines:
        if match := _LINE.match(line):
            position = int(match["position"])
            content = named[position - 1][1] if 1 <= position <= len(named) else ""
            given[str(position)] = _in_line(match["rest"], content)
    bare = [read_score(_BULLET.sub("", line, count=1)) for line in lines if line.strip()]
    if not given and len(bare) == len(named):
        given = {str(position): score for position, score in enumerate(bare, start=1)}
    return given


def _in_line(rest: str, content: str) -> float | None:
    if content and rest.startswith(content):
        rest = rest[len(content) :].lstrip(" :=-–—>→(")
    score = read_score(rest)
    if score is None and (match := _NAMED.search(rest)):
        score = read_score(match["rest"].rstrip(")] "))
    return score
