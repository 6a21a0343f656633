"""`intersection`: the numbers that two lists share."""

from __future__ import annotations

from random import Random

from ..judging import Candidate, Item
from .dataset import Dataset, Made
from .sorting import numbers_listed


def make(random: Random, level: int) -> Made:
    """Make two lists of 8, 16 or 32 numbers that share a quarter to a half of them."""
    size = 4 * 2**level
    shared = random.randint(size // 4, size // 2)
    drawn = random.sample(range(10, 100), 2 * size - shared)
    first, other = drawn[:size], drawn[size - shared :]
    answer = sorted(set(first) & set(other))
    random.shuffle(first)
    random.shuffle(other)
    return Made(
        f"Which numbers are in both lists? List them separated by commas, in any order.\n"
        f"First list: {', '.join(map(str, first))}\nSecond list: {', '.join(map(str, other))}",
        ", ".join(map(str, answer)),
    )


def has_the_same_members(item: Item, candidate: Candidate) -> bool:
    """Whether a candidate lists the right numbers, each once, in any order."""
    return sorted(numbers_listed(candidate.answer)) == sorted(numbers_listed(item.expected or ""))


INTERSECTION = Dataset(
    "intersection", "Find the numbers that two lists share.", "long exact work", make, has_the_same_members
)
