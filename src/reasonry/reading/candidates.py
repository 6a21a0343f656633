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
from .fit import Unreadable, read_texts, unwrap
from .json_in_text import json_values, without_surrogates
from .names import SYNONYMS, plain_name
from .numbers import read_scaled
from .parse import read_form

_THOUGHT_LISTS: Final = frozenset({"thoughts", *SYNONYMS["thoughts"]})
_SCORE_LISTS: Final = frozenset({"scores", *SYNONYMS["scores"], "evaluation"})
_SCORE_KEYS: Final = frozenset({"score", *SYNONYMS["score"], "probability", "confidence"})
_NAME_KEYS: Final = ("id", "candidate", "number", "position", "index", "thought", "content", "step", "text")
"""What an entry of a list says which candidate it is of by, first that holds."""

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
    r"\b(?:score|value|rating)[*_`]*\s*(?:(?:is\b|[:=])[*_`]*\s*)?[*_`]*(?P<score>[\d.][^)\]]*)",
    re.IGNORECASE,
)
"""A score that is called so."""
_LEFT: Final = lazy_pattern(r"(?<=\))\s{0,9}[-–—:]\s+(?P<score>[01](?:\.\d+)?|\.\d+|\d{1,3}\s?%)\s*\Z")
"""A number behind what is left after a step: `… (left: 8 6) - 0.9`."""
_CELL: Final = lazy_pattern(r"[*_`]*\s?\|\s?[*_`]*")
_LAST: Final = lazy_pattern(
    r"(?:[(\[](?P<score>[01]?\.\d+|\d{1,3}\s?%|\d{1,3}/\d{1,3})[)\]]"
    r"|(?:[.!?;:→]|\s[-–—=])\s+[*_]*(?P<last>0?\.\d+|[01]\.\d+|[01])[*_]*)[\s.]*\Z"
)
"""A score in brackets, or after the words that lead to it."""
_LONGEST: Final = 2_000
"""Characters; a number at the end of a longer text is no score of it."""


class Proposals(Struct, frozen=True):
    """What is replied to generation."""

    thoughts: list[str]


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
    found = read_form(text, Proposals) if isinstance(text, str) else Unreadable("it is no text")
    thoughts = [] if isinstance(found, Unreadable) else [each.strip() for each in found[0].thoughts]
    if isinstance(found, Unreadable) or not any(thoughts):
        return [], "none"
    return [each for each in thoughts if each], found[1] if found[1] in _DATA else "list"


_DATA: Final = ("json", "fenced", "embedded", "repaired")


def parse_scored_thoughts(text: str) -> tuple[list[ScoredThought], str]:
    """Read the thoughts a reply lists, with their scores.

    Understood: what `parse_thoughts` understands, where an entry is an object with a score beside its text; `scores`
    beside `thoughts`, as `parse_scores` reads them; lines that end with `score 0.7`.

    Returns:
        The thoughts, none of them empty, and the mode, as `parse_thoughts` has it. Never raises.
    """
    for value, mode in json_values(text):
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


def _scored_in(value: Any) -> list[ScoredThought]:
    """Return the thoughts of JSON data, with the scores that stand in each entry or beside them."""
    value = unwrap(value, _THOUGHT_LISTS)
    entries = value
    if isinstance(value, dict):
        entries = next((item for key, item in value.items() if plain_name(str(key)) in _THOUGHT_LISTS), value)
    found: list[ScoredThought] = []
    for entry in entries if isinstance(entries, list) else [entries]:
        for text in filter(None, map(str.strip, read_texts([_without_score(entry)]))):
            written = _score_of(entry) if isinstance(entry, Mapping) else []
            is_scored = written not in ([], [None])
            found.append(ScoredThought(text, read_score(entry)) if is_scored else _split_score(text))
    beside = value.get("scores") if isinstance(value, dict) and entries is not value else None
    scores = _by_id(_scores_in(beside), [(each.thought, each.thought) for each in found])
    return (
        [ScoredThought(each.thought, scores[each.thought]) for each in found]
        if len(scores) == len(found)
        else found
    )


def _score_of(entry: Mapping[str, Any]) -> list[Any]:
    return [item for key, item in entry.items() if plain_name(str(key)) in _SCORE_KEYS]


def _without_score(entry: Any) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    return {key: item for key, item in entry.items() if plain_name(str(key)) not in _SCORE_KEYS}


def _split_score(line: str) -> ScoredThought:
    """Return a thought apart from the score that its text ends with: one called so, or behind what is left in words."""
    match = _NAMED.search(line) if len(line) <= _LONGEST else None
    if match is None and re.search(r"\([^()]*[^\W\d_][^()]*\)[^()]*\Z", line[-_LONGEST:]):
        match = _LEFT.search(line)
    if match is None or line[match.end() :].strip(" )].") or (score := read_score(match["score"])) is None:
        return ScoredThought(line)
    return ScoredThought(line[: match.start()].rstrip(" ,;:–—|-([") or line, score)


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
    # The cells of a row follow one another.
    lines = [_CELL.sub(": ", line).strip(": ") for line in without_surrogates(text).splitlines()]
    found = [(_by_id(_scores_in(value), named), mode) for value, mode in json_values(text)]
    found.append((_by_id(_from_lines(lines, named), named), "list"))
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
    """Return the scores of lines that begin with the number of a candidate, or stand below it, or that are scores."""
    found: dict[str, Any] = {}
    current = ""
    for line in lines:
        if match := _LINE.match(line):
            current = str(int(match["position"]))
            content = named[int(current) - 1][1] if 1 <= int(current) <= len(named) else ""
            found[current] = _in_line(match["rest"] or "", content)
        elif current and found[current] is None and (match := _NAMED.search(line)):
            found[current] = read_score(match["score"])
    if any(score is not None for score in found.values()):
        return found
    texts = [line.strip().lstrip("-*•_`\"' ") for line in lines if line.strip()]
    bare = [read_score(text) for text in texts]
    if len(bare) == len(named) and None not in bare:
        return {str(position): score for position, score in enumerate(bare, start=1)}
    return {}


def _in_line(rest: str, content: str) -> float | None:
    if content and rest.startswith(content):
        rest = rest[len(content) :].lstrip(" :=-–—>→(")
    score = read_score(rest)
    if score is None and (match := _NAMED.search(rest)):
        score = read_score(match["score"])
    if score is None and (match := _LAST.search(rest)):
        score = read_score(match["score"] or match["last"])
    return score
