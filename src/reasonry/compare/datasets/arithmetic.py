"""`arithmetic`: a chain of operations on whole numbers."""

from random import Random

from ..grading import Item, number_in, reads_the_same

WORDS = {"+": "Add", "-": "Subtract", "*": "Multiply by"}
Step = tuple[str, int]
"""The sign and the operand of an operation."""


def make(random: Random, level: int) -> Item:
    """Make a task with a chain of operations. A higher level has more operations and longer numbers."""
    value, steps = draw_chain(random, 3 * level, level + 1)
    task = write_chain(value, steps)
    for step in steps:
        value = carry_out(value, *step)
    return Item(f"{task} What number do you get?", str(value))


def draw_chain(random: Random, length: int, digits: int) -> tuple[int, list[Step]]:
    """Choose a random start and `length` random operations. Numbers have at most `digits` digits."""
    start, *numbers = (random.randint(11, 10**digits - 1) for _ in range(length + 1))
    signs = random.choices(list(WORDS), k=length)
    return start, [
        (sign, number % 7 + 3 if sign == "*" else number) for sign, number in zip(signs, numbers, strict=True)
    ]


def write_chain(start: int, steps: list[Step]) -> str:
    """Write a chain of operations as a task in words."""
    return " ".join([f"Start with {start}.", *(f"{WORDS[sign]} {number}." for sign, number in steps)])


def carry_out(value: int, sign: str, number: int) -> int:
    """Apply an operation to a value."""
    return {"+": value + number, "-": value - number, "*": value * number}[sign]


is_right = reads_the_same(number_in)
"""The judge: whether the last number in an answer is exactly the right number."""
