"""`intersection`: the numbers that two lists share."""

from __future__ import annotations

from random import Random

from ..grading import Item, reads_the_same
from .sorting import numbers_listed


def make(random: Random, level: int) -> Item:
    """Make two lists of 8, 16 or 32 numbers that share a quarter to a half of them."""
    size = 4 * 2**level
    shared = random.randint(size // 4, size // 2)
    drawn = random.sample(range(10, 100), 2 * size - shared)
    first, other = drawn[:size], drawn[size - shared :]
    answer = sorted(set(first) & set(other))
    random.shuffle(first)
    random.shuffle(other)
    return Item(
        f"Which numbers are in both lists? List them separated by commas, in any order.\n"
        f"First list: {', '.join(map(str, first))}\nSecond list: {', '.join(map(str, other))}",
        ", ".join(map(str, answer)),
    )


is_right = reads_the_same(lambda text: sorted(numbers_listed(text)))
