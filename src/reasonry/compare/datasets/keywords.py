"""`keywords`: count how often each fruit is named in a text."""

from __future__ import annotations

from collections import Counter
from random import Random

from ..grading import Item, finds_the_same

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


is_right = finds_the_same(r"\b([a-z]+)\b[*\"'`]*\s*[:=]\s*[*\"'`]*([1-9]\d*)\b")
"""Whether a candidate gives each fruit its number; a fruit that is given two stands there twice."""
