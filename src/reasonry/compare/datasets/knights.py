"""`knights`: who always tells the truth, and who always lies? One assignment fits all statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from random import Random

from ..grading import Item, finds_the_same

NAMES = "ABCDE"
STATEMENTS: Mapping[str, Callable[[bool, bool], bool]] = {
    "{} is a knight": lambda first, other: first,
    "{} is a knave": lambda first, other: not first,
    "{} and {} are of the same kind": lambda first, other: first == other,
    "{} and {} are of different kinds": lambda first, other: first != other,
}
"""Statements about two people or the first of them, and when each holds, by which of them are knights."""


def make(random: Random, level: int) -> Item:
    """Let 2, 3 or 5 people make one statement each, until exactly one assignment fits."""
    count, fitting = {1: 2, 2: 3, 3: 5}[level], list[tuple[bool, ...]]()
    statements: list[tuple[str, int, int]] = []
    while len(fitting) != 1:
        statements.clear()
        for speaker in range(count):
            first, other = random.sample(range(count), 2)
            # Nobody speaks of themselves first, so nobody says alone of themselves what they are.
            pair = (other, first) if first == speaker else (first, other)
            statements.append((random.choice(list(STATEMENTS)), *pair))
        fitting = [
            knights
            for knights in product((True, False), repeat=count)
            if all(
                STATEMENTS[words](knights[first], knights[other]) == knights[speaker]
                for speaker, (words, first, other) in enumerate(statements)
            )
        ]
    speech = " ".join(
        f"{NAMES[speaker]} says: “{words.format(NAMES[first], NAMES[other])}.”"
        for speaker, (words, first, other) in enumerate(statements)
    )
    kinds = ["knight" if is_knight else "knave" for is_knight in fitting[0]]
    return Item(
        f"Knights always tell the truth and knaves always lie. {', '.join(NAMES[: count - 1])} and {NAMES[count - 1]} "
        f"are each a knight or a knave. {speech} What is each of them? Answer in the form “A: knight, B: knave”.",
        ", ".join(map("{}: {}".format, NAMES, kinds)),
    )


is_right = finds_the_same(r"\b([a-e])\b\W*(?:is|=|:)?\W*(?:an?\s+)?\W*(knight|knave)\b")
"""Whether a candidate gives each person one kind, the right one."""
