"""Judging: candidates shown to a judge without the names of those who wrote them, and the ratings it replies with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..core.effects import Ask
from ..core.events import Reply
from ..core.strategy import inlined_schema
from ..reading import parse
from ..reading.fit import Unreadable
from ..text import cut
from .drafts import SHOWN_CHARS, DraftOptions
from .tournament import Ratings

JUDGE: Final = """You judge candidate answers to a problem. Look for the right one, not the best written one: trace \
each against the problem and on edge cases, and note the first error in each. Length, style and order do not count. \
Rate each from 1 (wrong) to 10 (right beyond doubt); give equal ratings only where they are equally good."""
"""Tracing before rating, and all ratings in one reply, are from arXiv:2603.04304, appendix."""

RATE: Final = """Now judge. Reply with JSON:
{{"reason": "the decisive differences", "ratings": {{{ratings}}}}}"""


class JudgedOptions(DraftOptions, frozen=True, kw_only=True):
    """Options of every strategy whose drafts a judge compares; subclasses add their own."""

    seed: Annotated[int, Meta(description="Decides the order in which a judge sees candidates.")] = 0


class Judgement(Struct, frozen=True):
    """The ratings of the candidates that were shown, by label."""

    reason: Annotated[str, Meta(description="The decisive differences.")]
    ratings: Annotated[dict[str, Annotated[float, Meta(ge=1, le=10)]], Meta(description="1 to 10, by label.")]


def judge_question(
    problem: str,
    shown: Sequence[int],
    texts: Mapping[int, str],
    *,
    task: str = RATE,
    sample: int = 0,
    about: str = "",
    by: str = "judge",
) -> Ask:
    """Return the question to a judge.

    Args:
        shown: The numbers of the candidates, in the order shown.
        texts: The candidates, by number.
        task: What the judge is to do, with `{ratings}` for the form of the ratings.
        sample: Of a question that is put more than once.
        about: See `Ask`.
        by: Who judges.
    """
    labels = [chr(ord("A") + place) if len(shown) <= 26 else str(place + 1) for place in range(len(shown))]
    written = [
        f"Candidate {label}:\n\n{cut(texts[number], SHOWN_CHARS)}"
        for label, number in zip(labels, shown, strict=True)
    ]
    rate = task.format(ratings=", ".join(f'"{label}": 1 to 10' for label in labels))
    facts = {"kind": "judge", "problem": problem, "labels": labels, "candidates": list(shown)}
    prompt = "\n\n".join([f"Problem: {problem}", *written, rate])
    form = inlined_schema(Judgement)
    ratings = form["properties"]["ratings"]
    ratings |= {"properties": dict.fromkeys(labels, ratings.pop("additionalProperties")), "required": labels}
    return Ask(prompt, JUDGE, facts, by=by, sample=sample, form=form, about=about)


def read_judgement(_: Any, ask: Ask, texts: Sequence[str]) -> tuple[Judgement, str] | Unreadable:
    """Read ratings; each candidate that was shown needs one."""
    reading = parse.read_form(texts[-1], Judgement)
    if isinstance(reading, Unreadable):
        return reading
    labels: list[str] = ask.facts["labels"]
    found = {
        name.strip().upper().removeprefix("CANDIDATE "): value for name, value in reading[0].ratings.items()
    }
    if not all(label in found for label in labels):
        return Unreadable(f"rate each of {', '.join(labels)} from 1 to 10")
    return replace(reading[0], ratings={label: float(found[label]) for label in labels}), reading[1]


def ratings_of(shown: Sequence[int], reply: Any) -> Ratings:
    """Return what a judge said; a verdict without ratings where there is no reply that could be read."""
    if not isinstance(reply, Reply):
        return Ratings(tuple(shown))
    return Ratings(tuple(shown), tuple(reply.value.ratings.values()), reply.value.reason)
