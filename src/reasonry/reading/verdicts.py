"""Read the verdict in a reply: a score for each candidate, one chosen candidate, or a word from the tables in `words`.

Rule 1: a verdict is a member of JSON data, or it follows its label on a separate line. Verdicts in tables, headings and
        sentences do not count.
Rule 2: a quoted verdict does not count. It is quoted if it is in backticks, in quotation marks, within a sentence, in a
        line or a fence that repeats the question, or in a fence of a reply that has a verdict outside the fence.
Rule 3: if a reply has two different verdicts, the model is asked again.
Rule 4: a score is read on the requested scale, or on a scale that it states (`90%`, `7/10`). No score is cut to fit.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ..core.readings import Unreadable
from ..text import lazy_pattern, plain_name
from .coerce import unwrap
from .json_in_text import json_values
from .numbers import read_scaled

Names = Sequence[tuple[str, str]]
Scale = tuple[float, float]

SCORE: Final = frozenset({"score", "rating"})
SCORES: Final = frozenset({"scores", "ratings"})
DIFFER: Final = "it gives two verdicts that differ; give one"
_REASON: Final = frozenset({"reason", "feedback", "explanation"})
_CHOSEN: Final = ("verdict", "winner", "better", "best", "choice", "answer")
_OWNERS: Final = ("id", "candidate", "thought", "content")
"""The members of a list entry that identify its candidate, in order of preference."""
_OPPOSITE: Final = {"holds": "fails"}
"""The meaning of `holds: false`. `fails: false` has no meaning here, because the claim may still not hold."""

_LABEL: Final = r"(?:(?:rating|score)s?\s*(?:of\b|:)\s*)?(?:(?:thought|candidate)\s*)?(?P<name>\w{1,7})"
_KEY: Final = lazy_pattern(_LABEL, re.IGNORECASE)
_PAIR: Final = lazy_pattern(
    rf"[^\w\"'“]*{_LABEL}[*_]*(?:\s?[):=]|\s[-–])[*_\s]*(?P<score>[\d.][\d./% ]*)\W*", re.IGNORECASE
)
"""Matches a score after its label: `1: 0.7`, `Candidate B - 90%`, `Rating of A: 7/10`."""
_CHOICE: Final = lazy_pattern(
    rf"(?:^[^\w\n\"'“]*(?:(?:my|the|final|overall)\s)*(?:{'|'.join(_CHOSEN)})[*_]*(?:\sis)?\s?[:=]"
    r"|(?<![\"'“])(?:\[\[|<answer>))"
    r"[^\w\n]{0,8}(?:candidate\s)?(?P<word>\w{1,12})[^\w\n]{0,8}(?=\n|\Z|\]\]|</answer>)",
    re.IGNORECASE | re.MULTILINE,
)
"""Matches a chosen word: `Verdict: refuted`, `**Winner: B**`, `[[B]]`, `<answer>B</answer>`."""
_LONGEST: Final = 120
"""The longest label with its score, in characters. A longer text is more than a score."""
_FENCE: Final = lazy_pattern(r"```[^\n`]*\n(?P<inside>.*?)(?:```|\Z)", re.DOTALL)
_QUOTED: Final = lazy_pattern(
    r"`[^`\n]*`|[\"'“‘«](?=[{\[])[^\n]{0,500}?[}\]][\"'”’»]|^[ \t]*>[^\n]*"
    r"|(?:(?<=\w )|(?<=\w: ))\{\s?\"(?:[^{}\n]|\{[^{}\n]{0,500}\}){0,500}\}(?=[,;:.)]?[ \t]+\w)",
    re.MULTILINE,
)


class Verdict(Struct, frozen=True):
    """The scores or the chosen word that were read from a reply."""

    scores: dict[str, float] = {}
    word: str = ""
    data: Mapping[str, Any] = {}
    reason: str = ""
    mode: str = "none"
    missing: str = ""


def read_scores(
    texts: Sequence[str], names: Names, scale: Scale = (0, 1), *, shown: str = ""
) -> Verdict | Unreadable:
    """Read a score for each name from the replies to a question. In `texts`, the oldest reply is first.

    Args:
        names: The name of each candidate, with its text if replies may use the text as the name.
        scale: The lowest and the highest score.
        shown: The text that the judge saw.
    """

    def find(part: Any) -> Iterator[dict[str, Any]]:
        if not isinstance(part, str):
            yield scores_in(part, names, scale)
            return
        for line in part.splitlines():
            pieces = re.split("[,;]", line.strip().rstrip(",;"))
            pairs = [pair for piece in pieces if len(piece) <= _LONGEST and (pair := _PAIR.fullmatch(piece))]
            if len(pairs) == len(pieces):
                yield from (_by_name({pair["name"]: pair["score"]}, names, scale) for pair in pairs)

    *before, found = (_read(text, shown, find) for text in texts)
    if isinstance(found, Unreadable):
        return found
    # An earlier reply may have been cut off within a number; its repaired score could be half a number.
    earlier = [each.scores for each in before if isinstance(each, Verdict) and each.mode != "repaired"]
    scores = {name: score for part in (*earlier, found.scores) for name, score in part.items()}
    missing = [str(at) if text else name for at, (name, text) in enumerate(names, 1) if name not in scores]
    (low, high), listed = scale, ", ".join(missing)
    reason = f"it has no score from {low:g} to {high:g} for candidate {listed}" if missing else ""
    kept = {name: scores[name] for name, _ in names if name in scores}
    return replace(found, scores=kept, missing=reason) if kept or not missing else Unreadable(reason)


def read_choice(text: str, choices: Mapping[str, str], shown: str = "") -> Verdict | Unreadable:
    """Read the word that a reply chooses, and return a verdict with the meaning of this word.

    Args:
        choices: The meaning of each word. The words are in lower case.
    """

    def find(part: Any) -> Iterator[dict[str, Any]]:
        written = [part] if isinstance(part, str) else []
        written += [f"verdict: {part.strip()}"] if written and "\n" not in part.strip() else []
        for key, item in _as_data(unwrap(part, _CHOSEN)).items():
            name = plain_name(str(key)).removeprefix("final").removeprefix("is")
            if isinstance(item, bool) and name in choices:
                written.append(f"verdict: {name if item else _OPPOSITE.get(choices[name])}")
            elif name in _CHOSEN:
                written.append(f"verdict: {item}")
        matches = (match for each in written for match in _CHOICE.finditer(each))
        yield from ({"": word} for match in matches if (word := choices.get(match["word"].casefold())))

    found = _read(text, shown, find)
    if isinstance(found, Unreadable) or found.word:
        return found
    return Unreadable(f"it gives no verdict; give one word: {', '.join(dict.fromkeys(choices.values()))}")


def _read(text: str, shown: str, find: Callable[[Any], Iterable[dict[str, Any]]]) -> Verdict | Unreadable:
    for piece in _pieces(text, shown):
        parts = list(json_values(piece))
        if not (parts and parts[0][1] in ("json", "fenced") and isinstance(parts[0][0], dict | list)):
            # If the whole reply is data, its strings do not count as text with a verdict.
            parts.append((piece, "list"))
        found = [(each, part, mode) for part, mode in parts for each in find(part) if each]
        verdict = {name: value for each, _, _ in found for name, value in each.items()}
        if any(verdict[name] != value for each, _, _ in found for name, value in each.items()):
            return Unreadable(DIFFER)
        if found:
            # The reason may be in an object with the same verdict, such as in a fence before a last sentence.
            same = ((unwrap(each, _CHOSEN), how) for each, how in json_values(text) if verdict in find(each))
            part, mode = next(same, found[0][1:])
            reason = member(part, _REASON) if isinstance(part, dict) else text
            word = verdict.pop("", "")
            return Verdict(verdict, word, _as_data(part), reason if isinstance(reason, str) else "", mode)
    return Verdict(reason=text)


def _pieces(text: str, shown: str) -> Iterator[str]:
    """Yield the parts of a reply where a verdict counts: JSON, text outside quotes, and the last fence."""
    if next(json_values(text, whole=True), None) is not None:
        yield text
        return
    lines = frozenset(line.strip() for line in shown.splitlines())
    outside = _QUOTED.sub("", _FENCE.sub("\n", text))
    yield "\n".join(line for line in outside.splitlines() if line.strip() not in lines)
    fence = next(reversed(list(_FENCE.finditer(text))), None)
    if fence is not None and "".join(fence["inside"].split()) not in "".join(shown.split()):
        yield f"```\n{fence['inside']}\n```"


# -- scores


def read_score(value: Any, scale: Scale = (0, 1)) -> float | None:
    """Read a score, converted to the requested scale. Return None if the score is missing, unclear or off the scale."""
    if isinstance(value, Mapping):
        return read_score(member(value, SCORE), scale)
    (low, high), found = scale, read_scaled(str(value))
    if found is None or found.scale == 0 or found.rest.strip(" *_."):
        return None
    score = found.number if found.scale in (None, high) else found.number / found.scale * high
    return score if low <= score <= high else None


def scores_in(value: Any, names: Names, scale: Scale = (0, 1)) -> dict[str, float]:
    """Read the candidates' scores from a JSON value. A list without names has the scores in the candidates' order."""
    value = unwrap(value, SCORES)
    named = member(value, SCORES) if isinstance(value, dict) else None
    value = named if isinstance(named, dict | list) else value
    if isinstance(value, list):
        owners = [str(next(filter(None, map(_as_data(item).get, _OWNERS)), "")) for item in value]
        # Without names, the order identifies the candidates.
        owners = owners if any(owners) else [str(place) for place in range(1, len(value) + 1)]
        value = dict(zip(owners, value, strict=True)) if all(owners) and len({*owners}) == len(owners) else {}
    return _by_name(_as_data(value), names, scale)


def _by_name(written: Mapping[str, Any], names: Names, scale: Scale) -> dict[str, float]:
    owners = {normal(text): name for name, text in names if text}
    owners |= {str(place): name for place, (name, _) in enumerate(names, 1)}
    owners |= {normal(name): name for name, _ in names}
    owners |= dict.fromkeys(SCORE | SCORES, names[0][0]) if len(names) == 1 else {}
    scores: dict[str, float] = {}
    for key, value in written.items():
        label = _KEY.fullmatch(key.strip())
        name = owners.get(normal(key)) or (owners.get(label["name"].casefold()) if label else None)
        score = read_score(value, scale)
        if name and score is not None:
            scores.setdefault(name, score)
    return scores


def _as_data(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def member(value: Mapping[Any, Any], names: frozenset[str]) -> Any:
    """Return the first value with a key in `names`, or None. `plain_name` normalizes the keys first."""
    return next((item for key, item in value.items() if plain_name(str(key)) in names), None)


def normal(text: str) -> str:
    """Return a text in the form used for comparisons: with single spaces, and case-folded."""
    return " ".join(text.split()).casefold()
