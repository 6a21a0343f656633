"""`sorting`: put numbers in order, with none lost and none added."""

from __future__ import annotations

import re
from random import Random

from ..judging import Candidate, Item
from .dataset import Dataset, Made


def make(random: Random, level: int) -> Made:
    """Shuffle 12, 32 or 64 digits, as in the sorting task of arXiv:2308.09687."""
    numbers = [random.randint(0, 9) for _ in range((12, 32, 64)[level - 1])]
    return Made(
        f"Sort these numbers in ascending order and write all of them in one line, separated by commas: "
        f"{', '.join(map(str, numbers))}",
        ", ".join(map(str, sorted(numbers))),
    )


def lists_the_same(item: Item, candidate: Candidate) -> bool:
    """Whether the longest list of numbers in a candidate is the right one, in its order."""
    return numbers_listed(candidate.answer) == numbers_listed(item.expected or "")


def numbers_listed(text: str) -> list[int]:
    """Return the numbers of the longest list in a text."""
    lists = re.findall(r"-?\d+(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+|\s+)-?\d+)*", text)
    return [int(number) for number in re.findall(r"-?\d+", max(lists, key=len, default=""))]


SORTING = Dataset("sorting", "Sort a list of digits.", "long exact work", make, lists_the_same)
