"""Judging: show candidates to a judge without their authors' names, and read the judge's ratings."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from ..core.effects import Ask
from ..core.events import Reply
from ..core.readings import Unreadable
from ..core.type_schema import inlined_schema
from ..reading import form
from ..reading.verdicts import DIFFER, Verdict, read_choice, read_scores
from ..text import shorten
from .drafts import SHOWN_CHARS, DraftOptions
from .tournament import Ratings

JUDGE: Final = "You judge answers to a problem."

RATE: Final = """First trace each candidate against the problem and on edge cases, and note its first error. {by} \
Then rate each from 1 (wrong) to 10 (right beyond doubt), equally only where they are equally good. Reply with one \
JSON object:
{{"reason": "…", "ratings": {{{ratings}}}}}"""
"""As in the appendix of arXiv:2603.04304, the judge traces candidates before rating, and rates all in one reply."""
RATE_ALONE: Final = """First trace the answer against the problem and on edge cases, and note its first error. {by} \
Then rate it from 1 (wrong) to 10 (right beyond doubt). Reply with one JSON object:
{{"reason": "…", "rating": 1 to 10}}"""
BY_THE_PROBLEM: Final = "Judge by all that the problem asks for, length and tone included."

CHOSEN: Final = (8.0, 3.0)
"""The ratings if a judge only names the best candidate: of this candidate (good, not excellent), and of the others."""


class JudgedOptions(DraftOptions, frozen=True, kw_only=True):
    """Options of every strategy in which a judge compares drafts. Subclasses add their own options."""

    seed: Annotated[int, Meta(description="Decides the order in which a judge sees candidates.")] = 0


class Judgement(Struct, frozen=True):
    """The ratings of the shown candidates, by label."""

    reason: Annotated[str, Meta(description="The decisive differences.")]
    ratings: Annotated[dict[str, Annotated[float, Meta(ge=1, le=10)]], Meta(description="1 to 10, by label.")]


class Groups(Struct, frozen=True):
    """The groups of texts that say the same, by number."""

    groups: Annotated[tuple[tuple[int, ...], ...], Meta(description="Numbers of those that say the same.")]


def read_groups(_: Any, ask: Ask, texts: Sequence[str]) -> tuple[Groups, str] | Unreadable:
    """Read groups of numbers. Each number from 1 to `ask.facts["count"]` must be in exactly one group."""
    reading = form.read_form(texts[-1], Groups)
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
    task: str = "",
    by: str = "judge",
    criteria: Mapping[str, str] = {},
    limit: int = SHOWN_CHARS,
    **put: Any,
) -> Ask:
    """Build a question that asks a judge to compare or rate candidates.

    Args:
        shown: The numbers of the candidates, in the judge's order. A single candidate has no label.
        texts: Maps the number of each candidate to its text.
        task: The judge's task, with the placeholders `{by}` and `{ratings}`. Defaults to `RATE` or `RATE_ALONE`.
        criteria: Maps the name of each criterion to a sentence. If empty, all that the problem asks for counts.
        limit: How many characters of each candidate the judge sees.
        put: Other members of `Ask`, such as `sample`.
    """
    labels, is_alone = labels_of(len(shown)), len(shown) == 1
    heads = ["Answer"] if is_alone else [f"Candidate {label}" for label in labels]
    pairs = zip(heads, shown, strict=True)
    written = [f"{head}:\n\n{shorten(texts[number], limit)}" for head, number in pairs]
    prompt = "\n\n".join([f"Problem: {problem}", *written])
    listed = "; ".join(f"{name}: {sentence.strip().rstrip('.;')}" for name, sentence in criteria.items())
    rate = (task or (RATE_ALONE if is_alone else RATE)).format(
        by=f"Judge by these criteria alone: {listed}." if criteria else BY_THE_PROBLEM,
        ratings=", ".join(f'"{label}": 1 to 10' for label in labels),
    )
    facts = {"kind": "judge", "problem": problem, "labels": labels, "candidates": list(shown)}
    form = inlined_schema(Judgement)
    ratings = form["properties"].pop("ratings")
    rating = ratings.pop("additionalProperties")
    wanted = (
        rating if is_alone else ratings | {"properties": dict.fromkeys(labels, rating), "required": labels}
    )
    name = "rating" if is_alone else "ratings"
    form["properties"][name], form["required"] = wanted, ["reason", name]
    return Ask(prompt, JUDGE, task=rate, facts=facts, by=by, form=form, **put)


def labels_of(count: int) -> list[str]:
    """Return labels for `count` candidates. The labels are letters, or numbers if there are more than 26."""
    return [chr(ord("A") + place) if count <= 26 else str(place + 1) for place in range(count)]


def with_names(reason: str, shown: Sequence[int], name: Callable[[int], str]) -> str:
    """Append the meaning of each label to a judge's reason: `A is draft 3`. A single candidate has no label."""
    pairs = zip(labels_of(len(shown)), shown, strict=True)
    named = ", ".join(f"{label} is {name(number)}" for label, number in pairs)
    return f"{reason} ({named})" if len(shown) > 1 else reason


def read_judgement(_: Any, ask: Ask, texts: Sequence[str]) -> tuple[Judgement, str] | Unreadable:
    """Read a judge's rating of each label, or the label that the judge chose."""
    labels: list[str] = ask.facts["labels"]
    names = [(label, "") for label in labels]
    found = read_scores(texts, names, (1, 10), shown=ask.prompt)
    by_label = {label.casefold(): label for label in labels}
    chosen = read_choice(texts[-1], by_label, ask.prompt) if len(labels) > 1 else found
    if isinstance(found, Verdict):
        judgement = Judgement(found.reason, found.scores), found.mode
        if not found.missing:
            best = max(found.scores.values())
            differs = isinstance(chosen, Verdict) and found.scores.get(chosen.word, best) < best
            return Unreadable(DIFFER) if differs or chosen == Unreadable(DIFFER) else judgement
        found = Unreadable(found.missing, in_part=judgement)
    if not isinstance(chosen, Verdict):
        return found
    best, others = CHOSEN
    ratings = {label: best if label == chosen.word else others for label in labels}
    return Judgement(chosen.reason, ratings), chosen.mode


def ratings_of(shown: Sequence[int], reply: Any) -> Ratings:
    """Return a judge's ratings. The ratings are empty if no reply is readable."""
    if not isinstance(reply, Reply):
        return Ratings(tuple(shown))
    judgement: Judgement = reply.value
    return Ratings(tuple(shown), tuple(map(judgement.ratings.get, labels_of(len(shown)))), judgement.reason)
