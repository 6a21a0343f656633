"""`keywords`: count how often each fruit is named in a text."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

from ..judging import Candidate, Item
from .dataset import Dataset, Made

FRUITS = ("banana", "cherry", "fig", "grape", "lemon", "mango", "peach", "pear", "plum", "quince")
SENTENCES = (
    "On the way to the market somebody dropped a {}.",
    "The cook put a {} beside a {} and went for sugar.",
    "A {} rolled under the table, where the cat had hidden a {} and a {}.",
    "No one had asked for another {}, yet the basket held a {}.",
    "The painter drew one {} and gave up.",
    "After lunch, the children traded a {} for a {}.",
    "It rained, and the stall was empty for an hour.",
)


def make(random: Random, level: int) -> Made:
    """Write 6, 15 or 30 sentences; each names up to three fruits."""
    counts = Counter[str]()
    sentences: list[str] = []
    while len(sentences) < (6, 15, 30)[level - 1] or not counts:
        sentence = random.choice(SENTENCES)
        fruits = [random.choice(FRUITS[: 4 + 2 * level]) for _ in range(sentence.count("{}"))]
        counts.update(fruits)
        sentences.append(sentence.format(*fruits))
    return Made(
        "Count how often each fruit is named in this text. Answer with one line, in the form “fig: 2, pear: 1”, and "
        f"leave out fruits that are not named.\n\n{' '.join(sentences)}",
        ", ".join(f"{fruit}: {counts[fruit]}" for fruit in sorted(counts)),
    )


def counts_the_same(item: Item, candidate: Candidate) -> bool:
    """Whether a candidate gives each fruit the right number, and no fruit two numbers."""
    return _read_counts(candidate.answer) == _read_counts(item.expected or "")


def _read_counts(text: str) -> list[tuple[str, int]]:
    found = re.findall(r"\b([a-z]+)\b[*\"'`]*\s*[:=]\s*[*\"'`]*(\d+)\b", text.lower())
    return sorted((word, int(count)) for word, count in found if int(count))


KEYWORDS = Dataset(
    "keywords", "Count the fruits that a text names.", "long exact work", make, counts_the_same
)
