"""Judging: candidates shown to a judge without their authors' names, and the judge's ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from ..core.effects import Ask
from ..core.events import Reply
from ..core.readings import Unreadable
from ..core.type_schema import inlined_schema
from ..reading import parse
from ..reading.verdicts import Verdict, read_choice, read_scores
from ..text import cut
from .drafts import SHOWN_CHARS, DraftOptions
from .tournament import Ratings

JUDGE: Final = "You judge answers to a problem."

RATE: Final = """First trace each candidate against the problem and on edge cases, and note its first error. Judge \
by all that the problem asks for, length and tone included. Then rate each from 1 (wrong) to 10 (right beyond \
doubt), equally only where they are equally good. Reply with one JSON object:
{{"reason": "the decisive differences", "ratings": {{{ratings}}}}}"""
"""Tracing before rating, and all ratings in one reply, are from arXiv:2603.04304, appendix."""

CHOSEN: Final = (8.0, 3.0)
"""The ratings for a choice without ratings, of the chosen candidate and the others: clear, but not praise."""


class JudgedOptions(DraftOptions, frozen=True, kw_only=True):
    """Options of every strategy whose drafts a judge compares. Subclasses add their own."""

    seed: Annotated[int, Meta(description="Decides the order in which a judge sees candidates.")] = 0


class Judgement(Struct, frozen=True):
    """The ratings of the shown candidates, by label."""

    reason: Annotated[str, Meta(description="The decisive differences.")]
    ratings: Annotated[dict[str, Annotated[float, Meta(ge=1, le=10)]], Meta(description="1 to 10, by label.")]


class Groups(Struct, frozen=True):
    """The groups of texts that say the same, by number."""

    groups: Annotated[tuple[tuple[int, ...], ...], Meta(description="Numbers of those that say the same.")]


def read_groups(_: Any, ask: Ask, texts: Sequence[str]) -> tuple[Groups, str] | Unreadable:
    """Read groups. Each of the listed texts, `count` of them, is in exactly one group."""
    reading = parse.read_form(texts[-1], Groups)
    if isinstance(reading, Unreadable):
        return reading
    numbers = sorted(number for group in reading[0].groups for number in group)
    if numbers != list(range(1, ask.facts["count"] + 1)) or not all(reading[0].groups):
        return Unreadable(f"put each number from 1 to {ask.facts['count']} into exactly one group")
    return reading


def judge_question(
    problem: str,
    shown: Sequence[int],
    texts: Mapping[int, str],
    task: str = RATE,
    by: str = "judge",
    **put: Any,
) -> Ask:
    """Build the question to a judge.

    Args:
        shown: The numbers of the candidates, in the order shown.
        texts: The candidates, by number.
        task: The judge's task, with `{ratings}` for the form of the ratings.
        put: Further members of `Ask`, such as `sample`.
    """
    labels = _labels(len(shown))
    pairs = zip(labels, shown, strict=True)
    written = [f"Candidate {label}:\n\n{cut(texts[number], SHOWN_CHARS)}" for label, number in pairs]
    prompt = "\n\n".join([f"Problem: {problem}", *written])
    rate = task.format(ratings=", ".join(f'"{label}": 1 to 10' for label in labels))
    facts = {"kind": "judge", "problem": problem, "labels": labels, "candidates": list(shown)}
    form = inlined_schema(Judgement)
    ratings = form["properties"]["ratings"]
    ratings |= {"properties": dict.fromkeys(labels, ratings.pop("additionalProperties")), "required": labels}
    return Ask(prompt, JUDGE, task=rate, facts=facts, by=by, form=form, **put)


def _labels(count: int) -> list[str]:
    return [chr(ord("A") + place) if count <= 26 else str(place + 1) for place in range(count)]


def read_judgement(_: Any, ask: Ask, texts: Sequence[str]) -> tuple[Judgement, str] | Unreadable:
    """Read ratings by label, or the chosen candidate. Part of the ratings is better than none."""
    labels: list[str] = ask.facts["labels"]
    names = [(label, "") for label in labels]
    found = read_scores(texts, names, (1, 10), shown=ask.prompt)
    if isinstance(found, Verdict):
        judgement = Judgement(found.reason, found.scores), found.mode
        if not found.missing:
            return judgement
        found = Unreadable(found.missing, in_part=judgement)
    by_label = {label.casefold(): label for label in labels}
    chosen = read_choice(texts[-1], by_label, ask.prompt) if len(labels) > 1 else found
    if not isinstance(chosen, Verdict):
        return found
    best, others = CHOSEN
    ratings = {label: best if label == chosen.word else others for label in labels}
    return Judgement(chosen.reason, ratings), chosen.mode


def ratings_of(shown: Sequence[int], reply: Any) -> Ratings:
    """Return a judge's ratings, empty without a readable reply."""
    if not isinstance(reply, Reply):
        return Ratings(tuple(shown))
    judgement: Judgement = reply.value
    return Ratings(tuple(shown), tuple(map(judgement.ratings.get, _labels(len(shown)))), judgement.reason)
