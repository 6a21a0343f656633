"""Read candidate thoughts and their scores, from 0 to 1, in a model's reply.

Rule 1: a score is read only if its scale is clear, as in `0.7`, `90%` and `7/10`. `85` has no scale and is not read. A
        score above 1 is not reduced to 1. 0 is a valid score.
Rule 2: a score is a member of the JSON data, or the only text after its candidate's number. Other numbers do not count.
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
    """A candidate thought. The score is None if no score could be read."""

    thought: str
    score: float | None = None


def parse_thoughts(text: object) -> tuple[list[str], str]:
    """Read thoughts from `{"thoughts": ["…"]}`, a JSON list, or numbered or bulleted lines. This never raises an error.

    Returns:
        The thoughts that are not empty, and the name of the method that read them: `json`, `fenced`, `embedded`,
        `repaired`, `list`, or `none` if there are no thoughts.
    """
    if not isinstance(text, str):
        return [], "none"
    scored, mode = parse_scored_thoughts(text)
    return [each.thought for each in scored], mode


def parse_scored_thoughts(text: str) -> tuple[list[ScoredThought], str]:
    """Read thoughts like `parse_thoughts`, with the score of each thought if the reply has one."""
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
    """Read the scores that a reply gives to thoughts. This never raises an error.

    The reply may be `{"scores": {…}}` or only the inner object, whose keys are ids, positions (1, 2, …) or texts. Other
    replies are a list in the order of the thoughts, a list of objects with `id` and `score`, or lines such as `1: 0.7`.

    Args:
        thoughts: Objects with `id` and `content`, or texts. An item without an id gets the id `t1`, `t2`, … .

    Returns:
        The scores that could be read, by id, and the name of the method that read the reply: `json`, `fenced`,
        `embedded`, `repaired`, `list` or `none`.
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
