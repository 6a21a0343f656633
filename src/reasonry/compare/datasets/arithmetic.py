"""`arithmetic`: a chain of operations on whole numbers, one after the other."""

from __future__ import annotations

from random import Random

from ..judging import Item, number_in, reads_the_same
from .dataset import Dataset


def make(random: Random, level: int) -> Item:
    """Make a chain of 3, 6 or 9 operations with numbers of up to 2, 3 or 4 digits."""
    value = random.randint(10, 10 ** (level + 1) - 1)
    steps = [f"Start with {value}."]
    for _ in range(3 * level):
        number, factor = random.randint(2, 10 ** (level + 1) - 1), random.randint(2, 9)
        match random.randrange(3):
            case 0:
                value, step = value + number, f"Add {number}."
            case 1:
                value, step = value - number, f"Subtract {number}."
            case _:
                value, step = value * factor, f"Multiply by {factor}."
        steps.append(step)
    return Item(f"{' '.join(steps)} What number do you get?", str(value))


is_exactly = reads_the_same(number_in)
"""Whether the last number of a candidate is the right one, to the last digit."""

ARITHMETIC = Dataset(
    "arithmetic",
    "Carry out a chain of operations on whole numbers.",
    "slips in calculation",
    make,
    is_exactly,
)
