"""`keywords`: count how often each fruit is named in a text."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

from ..judging import Item, reads_the_same
from .dataset import Dataset

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


def make(random: Random, level: int) -> Item:
    """Write 6, 15 or 30 sentences; each names up to three fruits."""
    counts = Counter[str]()
    sentences: list[str] = []
    while len(sentences) < (6, 15, 30)[level - 1] or not counts:
        sentence = random.choice(SENTENCES)
        fruits = [random.choice(FRUITS[: 4 + 2 * level]) for _ in range(sentence.count("{}"))]
        counts.update(fruits)
        sentences.append(sentence.format(*fruits))
    return Item(
        "Count how often each fruit is named in this text. Answer with one line, in the form “fig: 2, pear: 1”, and "
        f"leave out fruits that are not named.\n\n{' '.join(sentences)}",
        ", ".join(f"{fruit}: {counts[fruit]}" for fruit in sorted(counts)),
    )


def _read_counts(text: str) -> list[tuple[str, int]]:
    # A fruit that is given two numbers stands there twice.
    found = re.findall(r"\b([a-z]+)\b[*\"'`]*\s*[:=]\s*[*\"'`]*(\d+)\b", text.lower())
    return sorted((word, int(count)) for word, count in found if int(count))


KEYWORDS = Dataset(
    "keywords", "Count the fruits that a text names.", "long exact work", make, reads_the_same(_read_counts)
)
