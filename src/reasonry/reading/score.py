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

from ..patterns import lazy_pattern
from .fit import plain_name, unwrap
from .json_in_text import json_values, without_surrogates
from .proposal import normal

SCORE_KEYS: Final = frozenset({"score", "value", "rating", "overallscore", "probability", "confidence"})
_NAME_KEYS: Final = (
    "id",
    "candidate",
    "number",
    "position",
    "index",
    "thought",
    "content",
    "name",
    "step",
    "option",
    "text",
)
"""What an entry of a list says which candidate it is of by, first that holds."""

_LIST_KEYS: Final = frozenset({"scores", "evaluations", "ratings", "candidates", "results", "evaluation"})

_NUMBER: Final = r"(?:\d{1,12}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE]-?\d{1,2})?"
_SCORE: Final = lazy_pattern(
    rf"\s*[*_`]*(?P<number>{_NUMBER})(?:\s*(?P<percent>%)|\s*(?:/|out\s+of)\s*(?P<scale>{_NUMBER}))?"
    r"[*_`]*\s*(?:\Z|[(\[|]|[-–—:;,.](?:\s|\Z))",
    re.IGNORECASE,
)
_LABEL: Final = r"(?:thought|candidate|option|step|score|approach|idea|node)"
_POSITION: Final = lazy_pattern(
    rf"[*_`\[(#]*(?:{_LABEL}[\s_-]*)?[#t]?(?P<position>\d{{1,6}})[\])*_`.:]*", re.IGNORECASE
)
_LINE: Final = lazy_pattern(
    rf"\s{{0,8}}(?:[-*•]\s+)?[*_`'\"]*(?:{_LABEL}\s*)?#?(?P<position>\d{{1,6}})[*_`'\"]*(?:\s*\([^)\n]*\))?"
    r"\s?(?:[):=→]|\.(?=\s)|[-–—](?=\s))[*_`]*\s*(?P<rest>\S.*)",
    re.IGNORECASE,
)
_BLOCK: Final = lazy_pattern(
    rf"\s{{0,8}}(?:[-*•]\s+)?(?:#{{1,6}}\s*)?[*_`]*(?:{_LABEL})\s*#?(?P<position>\d{{1,6}})\b[^\d]*\Z",
    re.IGNORECASE,
)
"""A heading, or a line of its own, that begins what is said of a candidate."""
_OWN_LINE: Final = lazy_pattern(
    r".*?\b(?:score|value|rating)[*_`]*\s*(?:is\b|[:=])[*_`]*\s*[*_`]*(?P<rest>[\d.].*)", re.IGNORECASE
)
_NAMED: Final = lazy_pattern(r"(?:score|value|rating)\s*(?:(?:is|[:=])\s*)?(?P<rest>[\d.].*)", re.IGNORECASE)
_AT_END: Final = lazy_pattern(
    r"(?:[(\[](?P<score>[01]?\.\d+|\d{1,3}\s?%|\d{1,3}/\d{1,3})[)\]]"
    r"|(?:[.!?;:→]|\s[-–—=])\s+[*_]*(?P<last>0?\.\d+|[01]\.\d+|[01])[*_]*)[\s.]*\Z"
)
"""A score in brackets, or after the words that lead to it."""
_IN_A_SENTENCE: Final = lazy_pattern(
    rf"\b{_LABEL}\s*#?(?P<position>\d{{1,6}})\b[^.\n\d]{{0,40}}?\b(?:scores?|gets|rated(?:\s+at)?"
    rf"|is)\s+(?:a\s+)?(?P<score>[01]?\.\d+"
    r"|\d{1,3}\s?%|\d{1,3}/\d{1,3})",
    re.IGNORECASE,
)
_PAIR: Final = (
    rf"[*_`]*(?:{_LABEL}\s*)?#?(?P<position>\d{{1,6}})[*_`]*\s*[:=]\s*[*_`]*"
    rf"(?P<score>{_NUMBER}(?:\s*%|\s*/\s*{_NUMBER})?)[*_`]*"
)
_PAIRS: Final = lazy_pattern(_PAIR, re.IGNORECASE)
_UNNAMED_PAIR: Final = re.sub(r"\?P<\w+>", "?:", _PAIR)
_ROW: Final = lazy_pattern(
    rf"[^\d\n]*?(?<!\w)(?P<pairs>{_UNNAMED_PAIR}(?:\s*[,;]\s*(?:and\s+)?{_UNNAMED_PAIR})+)[\s.]*",
    re.IGNORECASE,
)
"""Scores side by side on one line: `So scores: 1: 0.95, 2: 0.95, 3: 0.02`."""
_BULLET: Final = lazy_pattern(r"\A\s*[-*•]\s+")


def read_score(value: Any) -> float | None:
    """Return a score from 0 to 1, or None if this is none or its scale is not known."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if 0 <= value <= 1 else None
    if isinstance(value, Mapping):
        return read_score(
            next((item for key, item in value.items() if plain_name(str(key)) in SCORE_KEYS), None)
        )
    if not isinstance(value, str) or not (match := _SCORE.match(value)):
        return None
    number, scale = float(match["number"]), float(match["scale"] or (100 if match["percent"] else 1))
    score = number / scale if scale else math.nan
    return score if 0 <= score <= 1 else None


def parse_scores(text: object, thoughts: Sequence[object]) -> tuple[dict[str, float], str]:
    """Read the scores a reply gives to thoughts.

    Understood: `{"scores": {…}}` keyed by id, position (1, 2, …) or text; a list in the order of the thoughts, or of
    objects with `id` and `score`; the bare mapping; plain lines such as `1: 0.7`, `Thought 2 - 90%`.

    Args:
        text: What was replied.
        thoughts: `{"id", "content"}`, or plain texts, which get the ids `t1`, `t2`, …; what is neither has no score.

    Returns:
        The scores by id, and the mode: `json`, `fenced`, `embedded`, `repaired`, `list` or `none`. A thought whose
        score could not be read is not in it. Never raises.
    """
    if not isinstance(text, str):
        return {}, "none"
    named = [_name_and_text(number, thought) for number, thought in enumerate(thoughts, start=1)]
    best: tuple[dict[str, float], str] = {}, "none"
    for scores, mode in _readings(text, named):
        if len(scores) > len(best[0]):
            best = scores, mode
        if len(scores) == len(named):
            break
    return best


def _name_and_text(number: int, thought: object) -> tuple[str, str]:
    if isinstance(thought, Mapping):
        return str(thought.get("id", f"t{number}")), str(thought.get("content", ""))
    return f"t{number}", thought if isinstance(thought, str) else ""


def _readings(text: str, named: Sequence[tuple[str, str]]) -> Iterator[tuple[dict[str, float], str]]:
    try:
        for value, mode in json_values(text):
            yield _by_id(_scores_in(value), named), mode
    except RecursionError:
        return
    lines = without_surrogates(text).splitlines()
    yield _by_id(_from_lines(lines, named), named), "list"


def _scores_in(value: Any) -> dict[str, Any]:
    """Return what a JSON value gives scores to: keys are ids, positions or texts."""
    value = unwrap(value, _LIST_KEYS)
    if isinstance(value, dict):
        named = next((item for key, item in value.items() if plain_name(str(key)) in _LIST_KEYS), value)
        value = named if isinstance(named, dict | list) else value
    if isinstance(value, dict):
        return value
    if not isinstance(value, list):
        return {}
    keys = [_candidate(item) for item in value]
    if any(key is None for key in keys):
        # Some do not say whose they are: then the order says it, for all or for none.
        return {} if any(keys) else {str(place): item for place, item in enumerate(value, start=1)}
    first = 0 if "0" in keys and str(len(keys)) not in keys else 1
    if len(set(keys)) < len(keys):
        return {}
    return {_from_one(str(key), 1 - first): item for key, item in zip(keys, value, strict=True)}


def _candidate(item: Any) -> str | None:
    """Return which candidate an entry of a list says it is of."""
    if not isinstance(item, dict):
        return None
    by_name = {plain_name(str(key)): entry for key, entry in item.items()}
    found = next((by_name[name] for name in _NAME_KEYS if name in by_name), None)
    return None if found is None or isinstance(found, dict | list | bool) else str(found)


def _from_one(key: str, shift: int) -> str:
    return str(int(key) + shift) if shift and re.fullmatch(r"[0-9]{1,6}", key) else key


def _by_id(written: Mapping[str, Any], named: Sequence[tuple[str, str]]) -> dict[str, float]:
    by_text = {normal(key): value for key, value in written.items()}
    by_position: dict[int, Any] = {}
    for key, value in written.items():
        if match := _POSITION.fullmatch(key.strip()):
            by_position[int(match["position"])] = value
    scores: dict[str, float] = {}
    for position, (name, content) in enumerate(named, start=1):
        candidates = (written.get(name), by_position.get(position), by_text.get(normal(content)))
        score = read_score(next((value for value in candidates if value is not None), None))
        if score is not None:
            scores[name] = score
    return scores


def _from_lines(lines: Sequence[str], named: Sequence[tuple[str, str]]) -> dict[str, Any]:
    if side_by_side := _from_table(lines) or _from_row(lines):
        return side_by_side
    found: dict[str, Any] = {}
    block = 0
    for line in lines:
        heading = _BLOCK.match(line)
        if match := _LINE.match(line):
            position = int(match["position"])
            content = named[position - 1][1] if 1 <= position <= len(named) else ""
            found[str(position)] = _in_line(match["rest"], content)
            block = position if found[str(position)] is None else 0
        elif heading:
            block = int(heading["position"])
        elif block and (match := _OWN_LINE.match(line)) and found.get(str(block)) is None:
            found[str(block)] = read_score(match["rest"].rstrip(")] *"))
    if not found:
        found = {name: score for name, content in named if (score := _by_content(lines, content)) is not None}
    sentences = [*_IN_A_SENTENCE.finditer("\n".join(lines))]
    if not found and len({match["position"] for match in sentences}) == len(sentences):
        found = {str(int(match["position"])): read_score(match["score"]) for match in sentences}
    own = [read_score(match["rest"].rstrip(")] *")) for line in lines if (match := _OWN_LINE.match(line))]
    if not found and len(named) == len(own) == 1:
        found = {"1": own[0]}
    texts = [_BULLET.sub("", line, count=1) for line in lines if line.strip()]
    bare = [read_score(text) for text in (texts[0].split(",") if len(texts) == 1 else texts)]
    if not found and len(bare) == len(named) and None not in bare:
        found = {str(position): score for position, score in enumerate(bare, start=1)}
    return found


def _from_row(lines: Sequence[str]) -> dict[str, Any]:
    """Return the scores of the one line that has them side by side; two such lines that differ are none."""
    rows = [match["pairs"] for line in lines if len(line) <= 2_000 and (match := _ROW.fullmatch(line))]
    found = [[(int(pair["position"]), pair["score"]) for pair in _PAIRS.finditer(row)] for row in rows]
    if not found or any(pairs != found[0] for pairs in found):
        return {}
    scores = {str(position): score for position, score in found[0] if position > 0}
    return scores if len(scores) == len(found[0]) else {}


def _by_content(lines: Sequence[str], content: str) -> float | None:
    """Return the score of the one line that begins with a candidate's own words."""
    texts = [_BULLET.sub("", line, count=1).strip().lstrip("*_`\"'") for line in lines]
    found = [text for text in texts if normal(content) and normal(text).startswith(normal(content))]
    return _in_line(found[0].replace("**", ""), content) if len(found) == 1 else None


def _from_table(lines: Sequence[str]) -> dict[str, Any]:
    """Read a table that has a column of candidates and one of scores."""
    rows = [
        [cell.strip(" *_`") for cell in line.strip().strip("|").split("|")]
        for line in lines
        if line.count("|") > 1
    ]
    rows = [row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]
    heads = [plain_name(cell) for cell in rows[0]] if rows else []
    column = next(
        (place for place, head in enumerate(heads) if head in SCORE_KEYS or head.startswith("score")), None
    )
    if column is None:
        return {}
    found: dict[str, Any] = {}
    for row in rows[1:]:
        name = _POSITION.match(row[0])
        if name is None or len(row) != len(heads):
            return {}
        found[str(int(name["position"]))] = read_score(row[column])
    return found


def _in_line(rest: str, content: str) -> float | None:
    if content and rest.startswith(content):
        rest = rest[len(content) :].lstrip(" :=-–—>→(")
    score = read_score(rest)
    if score is None and (match := _NAMED.search(rest)):
        score = read_score(match["rest"].rstrip(")] "))
    if score is None and (match := _AT_END.search(rest)):
        score = read_score(match["score"] or match["last"])
    return score
