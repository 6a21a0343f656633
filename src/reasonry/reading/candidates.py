"""Candidate thoughts from a model's list, and the model's score for each: from 0 to 1.

Rule 1: a score is read with its scale (`0.7`, `90%`, `7/10`) or not at all. `85` has no scale; no score is reduced to
        1, and 0 is a valid score.
Rule 2: a score is a member of the data, or follows its candidate's number alone; a number in a thought is not a score.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from ..core.readings import Unreadable
from ..text import plain_name, without_surrogates
from .coerce import list_items, read_texts, unwrap
from .json_in_text import json_values
from .verdicts import SCORE, SCORES, member, normal, read_score, read_scores, scores_in

_THOUGHTS: Final = frozenset({"thoughts"})


class Proposals(Struct, frozen=True):
    """A reply to the question for thoughts."""

    thoughts: list[str]


class ScoredThought(Struct, frozen=True, omit_defaults=True):
    """A candidate; the score is None if none could be read."""

    thought: str
    score: float | None = None


def parse_thoughts(text: object) -> tuple[list[str], str]:
    """Read the thoughts of a reply: `{"thoughts": ["…"]}`, a JSON list, or numbered or bulleted lines. Never raises.

    Returns:
        The thoughts without empty ones, and the mode: `json`, `fenced`, `embedded`, `repaired`, `list`, or `none` if
        there are no thoughts.
    """
    if not isinstance(text, str):
        return [], "none"
    scored, mode = parse_scored_thoughts(text)
    return [each.thought for each in scored], mode


def parse_scored_thoughts(text: str) -> tuple[list[ScoredThought], str]:
    """Read the thoughts of a reply as `parse_thoughts` does, with the scores in the entries or beside them."""
    for value, mode in json_values(text):
        if found := _scored_in(value):
            return found, mode
    items = [ScoredThought(item.strip()) for item in list_items(without_surrogates(text))]
    return items, "list" if items else "none"


def distinct(proposals: Iterable[ScoredThought]) -> list[ScoredThought]:
    """Drop proposals whose thoughts differ from an earlier thought only in case and white space."""
    seen: dict[str, ScoredThought] = {}
    for each in proposals:
        seen.setdefault(normal(each.thought), each)
    return list(seen.values())


def _scored_in(value: Any) -> list[ScoredThought]:
    value = unwrap(value, _THOUGHTS)
    entries: Any = value
    if isinstance(value, dict):
        entries = [value] if "thought" in value else member(value, _THOUGHTS)
    if not isinstance(entries, list | str):
        return []
    found: list[ScoredThought] = []
    for entry in entries if isinstance(entries, list) else list_items(entries) or [entries]:
        score, bare = None, entry
        if isinstance(entry, dict):
            score = read_score(entry)
            bare = {key: item for key, item in entry.items() if plain_name(str(key)) not in SCORE}
        found += [ScoredThought(text, score) for text in map(str.strip, read_texts([bare])) if text]
    beside = member(value, SCORES) if isinstance(value, dict) else None
    scores = scores_in(beside, [(each.thought, each.thought) for each in found])
    is_whole = len(scores) == len(found)
    return [ScoredThought(each.thought, scores[each.thought]) for each in found] if is_whole else found


def parse_scores(text: object, thoughts: Sequence[object]) -> tuple[dict[str, float], str]:
    """Read a reply's scores of thoughts. Never raises.

    Accepts `{"scores": {…}}` keyed by id, position (1, 2, …) or text; a list in the order of the thoughts, or of
    objects with `id` and `score`; the bare mapping; lines such as `1: 0.7`.

    Args:
        thoughts: `{"id", "content"}`, or plain texts, which get the ids `t1`, `t2`, …; other items get no score.

    Returns:
        The scores by id, without thoughts whose score could not be read, and the mode: `json`, `fenced`, `embedded`,
        `repaired`, `list` or `none`.
    """
    if not isinstance(text, str):
        return {}, "none"
    named: list[tuple[str, str]] = []
    for number, thought in enumerate(thoughts, start=1):
        content = thought if isinstance(thought, str) else ""
        parts = thought if isinstance(thought, Mapping) else {"content": content}
        named.append((str(parts.get("id", f"t{number}")), str(parts.get("content", ""))))
    found = read_scores([text], named)
    return ({}, "none") if isinstance(found, Unreadable) else (found.scores, found.mode)
