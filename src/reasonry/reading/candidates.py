"""Candidate thoughts as a model lists them, and how promising it finds each: from 0 to 1.

Rule 1: a score is read with its scale (`0.7`, `90%`, `7/10`, `0.7/1.0`) or not at all. `85` has no scale; nothing is
        ever cut down to 1.
Rule 2: a score of 0 is a score.
Rule 3: a number in a thought is its score only where it can be nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from ..patterns import lazy_pattern
from .fit import list_items, read_texts, unwrap
from .json_in_text import json_values, without_surrogates
from .names import SYNONYMS, plain_name
from .numbers import read_scaled

_THOUGHT_LISTS: Final = frozenset({"thoughts", *SYNONYMS["thoughts"]})
_SCORE_LISTS: Final = frozenset({"scores", "evaluations", "ratings", "candidates", "results", "evaluation"})
_SCORE_KEYS: Final = frozenset({"score", "value", "rating", "overallscore", "probability", "confidence"})
_NAME_KEYS: Final = ("id", "candidate", "number", "position", "index", "thought", "content", "step", "text")
"""What an entry of a list says which candidate it is of by, first that holds."""

_FENCED_LIST: Final = lazy_pattern(r"```\w*\s*(?P<list>\[.*\])\s*```", re.DOTALL)
_BREAK: Final = lazy_pattern(r"\s*(?:\Z|[(\[|]|[-–—:;,.](?:\s|\Z))")
"""What may follow a score."""
_LABEL: Final = r"(?:thought|candidate|option|step|score|approach|idea|node)"
_POSITION: Final = lazy_pattern(
    rf"[*_`\[(#]*(?:{_LABEL}[\s_-]*)?[#t]?(?P<position>\d{{1,6}})[\])*_`.:]*", re.IGNORECASE
)
_LINE: Final = lazy_pattern(
    rf"\s{{0,8}}(?:[-*•]\s+)?(?:#{{1,6}}\s*)?[*_`'\"]*(?P<label>{_LABEL}\s*)?#?(?P<position>\d{{1,6}})[*_`'\"]*"
    r"(?:\s*\([^)\n]*\))?(?:\s?(?:[):=→]|\.(?=\s)|[-–—](?=\s))[*_`]*\s*(?P<rest>\S.*)|(?(label)[^\d]*\Z|(?!)))",
    re.IGNORECASE,
)
"""A line that begins with the number of a candidate, or is the heading of what is said of one."""
_NAMED: Final = lazy_pattern(
    r"\b(?:score|value|rating)[*_`]*\s*(?:(?:is\b|[:=])[*_`]*\s*)?[*_`]*(?P<rest>[\d.].*)", re.IGNORECASE
)
_LAST: Final = lazy_pattern(
    r"(?:[(\[](?P<score>[01]?\.\d+|\d{1,3}\s?%|\d{1,3}/\d{1,3})[)\]]"
    r"|(?:[.!?;:→]|\s[-–—=])\s+[*_]*(?P<last>0?\.\d+|[01]\.\d+|[01])[*_]*)[\s.]*\Z"
)
"""A score in brackets, or after the words that lead to it."""
_SCORED: Final = (
    lazy_pattern(
        r"(?P<step>.*?)[\s,;:–—|-]*(?:[(\[]\s*)?\b(?:score|value|rating)\s*(?:is\b|[:=])?\s*"
        r"(?P<score>[\d.]+(?:\s*%|\s*/\s*[\d.]+)?)\s*[)\]]?[\s.]*",
        re.IGNORECASE | re.DOTALL,
    ),
    lazy_pattern(
        r"(?P<step>.*\([^()]{0,200}[^\W\d_][^()]{0,200}\))(?:\s+[-–—]|\s*:)\s+"
        r"(?P<score>[01](?:\.\d+)?|\.\d+|\d{1,3}\s?%)\s*",
        re.DOTALL,
    ),
)
"""A thought, and a number that is called its score or stands behind what is left, `… (left: 8 6) - 0.9`."""
_LONGEST: Final = 2_000
"""Characters; a number at the end of a longer text is no score of it."""


class ScoredThought(Struct, frozen=True, omit_defaults=True):
    """A proposal; the score is None where none could be read."""

    thought: str
    score: float | None = None


# -- thoughts


def parse_thoughts(text: object) -> tuple[list[str], str]:
    """Read the thoughts a reply lists.

    Understood: `{"thoughts": ["…"]}` (entries may be objects with `content`) or a JSON list, alone, in a fence or in
    prose; lines numbered `1.`, `2)`, `3:` or `Step 1:`; bulleted lines. A line that begins no item continues the one
    before.

    Returns:
        The thoughts, none of them empty, and the mode: `json`, `fenced`, `embedded`, `repaired`, `list`, or `none` if
        there are no thoughts to be found, or this is no text. Never raises.
    """
    if not isinstance(text, str):
        return [], "none"
    for value, mode in _values(text):
        if thoughts := _texts_in(value):
            return thoughts, mode
    if text.lstrip().startswith(("{", "[")):
        return [], "none"
    thoughts = list_items(without_surrogates(text))
    return thoughts, "list" if thoughts else "none"


def parse_scored_thoughts(text: str) -> tuple[list[ScoredThought], str]:
    """Read the thoughts a reply lists, with their scores.

    Understood: what `parse_thoughts` understands, where an entry is an object with a score beside its text; `scores`
    beside `thoughts`, as `parse_scores` reads them; lines that end with `score 0.7`.

    Returns:
        The thoughts, none of them empty, and the mode, as `parse_thoughts` has it. Never raises.
    """
    for value, mode in _values(text):
        if thoughts := _scored_in(value):
            return thoughts, mode
    texts, mode = parse_thoughts(text)
    return [_split_score(line) for line in texts], mode


def distinct(thoughts: Iterable[str]) -> list[str]:
    """Return the thoughts that differ in more than case and white space, the first of each kind."""
    seen: dict[str, str] = {}
    for thought in thoughts:
        seen.setdefault(normal(thought), thought)
    return list(seen.values())


def normal(text: str) -> str:
    """Return what equal thoughts have in common, however they are spaced and capitalised."""
    return " ".join(text.split()).casefold()


def _values(text: str) -> list[tuple[Any, str]]:
    match = _FENCED_LIST.fullmatch(text.strip())
    try:
        fenced = [(value, "fenced") for value, _ in json_values(match["list"], whole=True)] if match else []
        return [*json_values(text), *fenced]
    except RecursionError:
        return []


def _texts_in(value: Any) -> list[str]:
    """Return the texts of JSON data that lists thoughts; none if it lists none."""
    value = unwrap(value, _THOUGHT_LISTS)
    if isinstance(value, dict):
        value = next((item for key, item in value.items() if plain_name(str(key)) in _THOUGHT_LISTS), None)
    return [text.strip() for text in read_texts(value) if text.strip()]


def _scored_in(value: Any) -> list[ScoredThought]:
    """Return the thoughts of JSON data, with the scores that stand in each entry or beside them."""
    entries = value if isinstance(value, list) else []
    if isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, list)]
        entries = lists[0] if len(lists) == 1 else [] if lists else [value]
    if entries and all(isinstance(entry, dict) for entry in entries) and any(map(_score_of, entries)):
        texts = [_texts_in([_without_score(entry)]) for entry in entries]
        if all(len(found) == 1 for found in texts):
            found = [next(iter(_score_of(entry)), None) for entry in entries]
            return [
                ScoredThought(text, read_score(score)) for (text,), score in zip(texts, found, strict=True)
            ]
    texts = _texts_in(value)
    beside = value.get("scores") if isinstance(value, dict) else None
    scores = _by_id(_scores_in(beside), [(text, text) for text in texts]) if beside else {}
    return [ScoredThought(text, scores.get(text)) if scores else _split_score(text) for text in texts]


def _score_of(entry: Mapping[str, Any]) -> list[Any]:
    return [item for key, item in entry.items() if plain_name(str(key)) in _SCORE_KEYS]


def _without_score(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in entry.items() if plain_name(str(key)) not in _SCORE_KEYS}


def _split_score(line: str) -> ScoredThought:
    """Return a thought apart from the score that its text ends with."""
    matches = (pattern.fullmatch(line) for pattern in _SCORED) if len(line) <= _LONGEST else ()
    found = next((match for match in matches if match and match["step"].strip()), None)
    score = read_score(found["score"]) if found else None
    return (
        ScoredThought(line) if found is None or score is None else ScoredThought(found["step"].strip(), score)
    )


# -- scores


def read_score(value: Any) -> float | None:
    """Return a score from 0 to 1, or None if this is none or its scale is not known."""
    if isinstance(value, Mapping):
        return read_score(next(iter(_score_of(value)), None))
    number, scale = value, 1.0
    if isinstance(value, str):
        found = read_scaled(value)
        if found is None or not _BREAK.match(found.rest):
            return None
        number, scale = found.number, 1.0 if found.scale is None else found.scale
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= scale:
        return None
    return number / scale if scale else None


def parse_scores(text: object, thoughts: Sequence[object]) -> tuple[dict[str, float], str]:
    """Read the scores a reply gives to thoughts.

    Understood: `{"scores": {…}}` keyed by id, position (1, 2, …) or text; a list in the order of the thoughts, or of
    objects with `id` and `score`; the bare mapping; a table; plain lines such as `1: 0.7`, `Thought 2 - 90%`.

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
    lines = without_surrogates(text).splitlines()
    found = [(_by_id(_scores_in(value), named), mode) for value, mode in _values(text)]
    found.append((_by_id(_from_table(lines) or _from_lines(lines, named), named), "list"))
    best = max(found, key=lambda reading: len(reading[0]))
    return best if best[0] else ({}, "none")


def _name_and_text(number: int, thought: object) -> tuple[str, str]:
    if isinstance(thought, Mapping):
        return str(thought.get("id", f"t{number}")), str(thought.get("content", ""))
    return f"t{number}", thought if isinstance(thought, str) else ""


def _scores_in(value: Any) -> dict[str, Any]:
    """Return what a JSON value gives scores to: keys are ids, positions or texts."""
    value = unwrap(value, _SCORE_LISTS)
    if isinstance(value, dict):
        named = next((item for key, item in value.items() if plain_name(str(key)) in _SCORE_LISTS), value)
        value = named if isinstance(named, dict | list) else value
    if isinstance(value, dict):
        return value
    if not isinstance(value, list):
        return {}
    keys = [_candidate(item) for item in value]
    if None in keys:
        # Some do not say whose they are: then the order says it, for all or for none.
        return {} if any(keys) else {str(place): item for place, item in enumerate(value, start=1)}
    if "0" in keys and str(len(keys)) not in keys:
        keys = [str(int(key) + 1) if key and re.fullmatch(r"[0-9]{1,6}", key) else key for key in keys]
    return {} if len(set(keys)) < len(keys) else dict(zip(map(str, keys), value, strict=True))


def _candidate(item: Any) -> str | None:
    """Return which candidate an entry of a list says it is of."""
    if not isinstance(item, dict):
        return None
    by_name = {plain_name(str(key)): entry for key, entry in item.items()}
    found = next((by_name[name] for name in _NAME_KEYS if name in by_name), None)
    return str(found) if isinstance(found, str | int) else None


def _by_id(written: Mapping[str, Any], named: Sequence[tuple[str, str]]) -> dict[str, float]:
    by_text = {normal(key): value for key, value in written.items()}
    positions = [(_POSITION.fullmatch(key.strip()), value) for key, value in written.items()]
    by_position = {int(match["position"]): value for match, value in positions if match}
    scores: dict[str, float] = {}
    for position, (name, content) in enumerate(named, start=1):
        candidates = (written.get(name), by_position.get(position), by_text.get(normal(content)))
        score = read_score(next((value for value in candidates if value is not None), None))
        if score is not None:
            scores[name] = score
    return scores


def _from_lines(lines: Sequence[str], named: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the scores of lines that begin with the number of a candidate, or stand below it; else with its words."""
    found: dict[str, Any] = {}
    current = ""
    for line in lines:
        if match := _LINE.match(line):
            current = str(int(match["position"]))
            content = named[int(current) - 1][1] if 1 <= int(current) <= len(named) else ""
            found[current] = _in_line(match["rest"] or "", content)
        elif current and found[current] is None and (match := _NAMED.search(line)):
            found[current] = read_score(match["rest"].rstrip(")] *"))
    if any(score is not None for score in found.values()):
        return found
    texts = [line.strip().lstrip("-*•_`\"' ") for line in lines if line.strip()]
    bare = [read_score(text) for text in texts]
    if len(bare) == len(named) and None not in bare:
        return {str(position): score for position, score in enumerate(bare, start=1)}
    return {
        name: _in_line(own[0].replace("**", ""), content)
        for name, content in named
        if len(own := [text for text in texts if content and normal(text).startswith(normal(content))]) == 1
    }


def _in_line(rest: str, content: str) -> float | None:
    if content and rest.startswith(content):
        rest = rest[len(content) :].lstrip(" :=-–—>→(")
    score = read_score(rest)
    if score is None and (match := _NAMED.search(rest)):
        score = read_score(match["rest"].rstrip(")] "))
    if score is None and (match := _LAST.search(rest)):
        score = read_score(match["score"] or match["last"])
    return score


def _from_table(lines: Sequence[str]) -> dict[str, Any]:
    """Read a table that has a column of candidates and one of scores."""
    cells = (line.strip().strip("|").split("|") for line in lines if line.count("|") > 1)
    rows = [[cell.strip(" *_`") for cell in row] for row in cells]
    rows = [row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]
    heads = [plain_name(cell) for cell in rows[0]] if rows else []
    column = next(
        (place for place, head in enumerate(heads) if head in _SCORE_KEYS or head.startswith("score")), None
    )
    if column is None or any(len(row) != len(heads) for row in rows):
        return {}
    return {match["position"]: row[column] for row in rows[1:] if (match := _POSITION.match(row[0]))}
