"""`knights`: who always tells the truth, and who always lies? One assignment fits all statements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from random import Random

from ..judging import Candidate, Item
from .dataset import Dataset, Made

NAMES = "ABCDE"
Statement = tuple[str, int, int]
"""Kind (`knight`, `knave`, `same`, `differ`), and whom it is about: one person, or two."""


def _holds(statement: Statement, knights: Sequence[bool]) -> bool:
    kind, first, other = statement
    match kind:
        case "knight":
            return knights[first]
        case "knave":
            return not knights[first]
        case "same":
            return knights[first] == knights[other]
        case _:
            return knights[first] != knights[other]


def _say(statement: Statement) -> str:
    kind, first, other = statement
    if kind in ("knight", "knave"):
        return f"{NAMES[first]} is a {kind}"
    beings = "of the same kind" if kind == "same" else "of different kinds"
    return f"{NAMES[first]} and {NAMES[other]} are {beings}"


def make(random: Random, level: int) -> Made:
    """Let 2, 3 or 5 people make one statement each, until exactly one assignment fits."""
    count = {1: 2, 2: 3, 3: 5}[level]
    while True:
        statements: list[Statement] = []
        for speaker in range(count):
            kind = random.choice(("knight", "knave", "same", "differ"))
            first, other = random.sample(range(count), 2)
            is_about_self = kind in ("knight", "knave") and first == speaker
            statements.append((kind, other, first) if is_about_self else (kind, first, other))
        fitting = [
            knights
            for knights in product((True, False), repeat=count)
            if all(
                _holds(statement, knights) == knights[speaker] for speaker, statement in enumerate(statements)
            )
        ]
        if len(fitting) == 1:
            break
    speech = " ".join(
        f"{NAMES[speaker]} says: “{_say(statement)}.”" for speaker, statement in enumerate(statements)
    )
    names = f"{', '.join(NAMES[: count - 1])} and {NAMES[count - 1]}"
    answer = ", ".join(
        f"{name}: {'knight' if is_knight else 'knave'}"
        for name, is_knight in zip(NAMES, fitting[0], strict=False)
    )
    return Made(
        f"Knights always tell the truth and knaves always lie. {names} are each a knight or a knave. {speech} What is "
        f"each of them? Answer in the form “A: knight, B: knave”.",
        answer,
    )


def assigns_the_same(item: Item, candidate: Candidate) -> bool:
    """Whether a candidate calls each person, and each only once, what the right answer does."""
    return bool(candidate.answer) and _read_kinds(candidate.answer) == _read_kinds(item.expected or "")


def _read_kinds(text: str) -> list[tuple[str, str]]:
    found = re.findall(r"\b([A-E])\b\W*(?:is|=|:)?\W*(?:an?\s+)?\W*(knight|knave)\b", text, re.IGNORECASE)
    return sorted((name.upper(), kind.lower()) for name, kind in found)


KNIGHTS = Dataset(
    "knights", "Find out who tells the truth and who lies.", "deduction", make, assigns_the_same
)
