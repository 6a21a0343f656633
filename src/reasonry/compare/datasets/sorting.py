"""`sorting`: put numbers in order, with none lost and none added."""

from __future__ import annotations

import re
from random import Random

from ..grading import Item, reads_the_same


def make(random: Random, level: int) -> Item:
    """Shuffle 12, 32 or 64 digits, as in the sorting task of arXiv:2308.09687."""
    numbers = [random.randint(0, 9) for _ in range((12, 32, 64)[level - 1])]
    return Item(
        f"Sort these numbers in ascending order and write all of them in one line, separated by commas: "
        f"{', '.join(map(str, numbers))}",
        ", ".join(map(str, sorted(numbers))),
    )


def numbers_listed(text: str) -> list[int]:
    """Return the numbers of the longest list in a text."""
    lists = re.findall(r"-?\d+(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+|\s+)-?\d+)*", text)
    return [int(number) for number in re.findall(r"-?\d+", max(lists, key=len, default=""))]


is_right = reads_the_same(numbers_listed)
