"""`claims` and `planted`: derivations that are right, or wrong in one place that is easy to miss."""

from __future__ import annotations

import re
from random import Random

from ..judging import Item, reads_the_same
from .arithmetic import is_exactly
from .dataset import Dataset

SIGNS = {"Add": "+", "Subtract": "-", "Multiply by": "*"}
Step = tuple[str, int]
"""An operation, and its number."""


def _task(random: Random, steps: int) -> tuple[int, list[Step]]:
    start = random.randint(100, 999)
    return start, [
        (word, random.randint(3, 9) if word == "Multiply by" else random.randint(11, 999))
        for word in random.choices(list(SIGNS), k=steps)
    ]


def _write_task(start: int, steps: list[Step]) -> str:
    return f"Start with {start}. " + " ".join(f"{word} {number}." for word, number in steps)


def _derive(start: int, steps: list[Step], wrong_at: int | None = None, kind: str = "") -> str:
    """Return a derivation, a step a line; it goes on rightly from what is wrong at one step.

    Args:
        kind: What is wrong: the result of the step (`slip`), the number it begins with (`copy`), or its operation
            (`operation`).
    """
    value, lines = start, list[str]()
    for at, (word, number) in enumerate(steps):
        sign, is_wrong = SIGNS[word], at == wrong_at
        if is_wrong and kind == "copy":
            # Two digits change places.
            value += 9 * (value % 10 - value // 10 % 10) or 10
        if is_wrong and kind == "operation":
            sign = "-" if sign == "+" else "+"
        result = {"+": value + number, "-": value - number, "*": value * number}[sign]
        if is_wrong and kind == "slip":
            result += 10
        lines.append(f"{value} {sign} {number} = {result}")
        value = result
    return "\n".join([*lines, f"So the result is {value}."])


def _derive_wrongly(random: Random, start: int, steps: list[Step]) -> str:
    # The first step cannot begin with a number that was copied wrongly from an earlier one.
    return _derive(
        start, steps, random.randrange(1, len(steps)), random.choice(("slip", "copy", "operation"))
    )


def make_claim(random: Random, level: int) -> Item:
    """Show a derivation of 3, 6 or 10 steps, which is right as often as not."""
    start, steps = _task(random, (3, 6, 10)[level - 1])
    is_right = random.random() < 0.5
    shown = _derive(start, steps) if is_right else _derive_wrongly(random, start, steps)
    return Item(
        f"The task was: {_write_task(start, steps)}\n\nSomeone wrote:\n{shown}\n\n"
        "Is every step of it right, and does it do what the task says? Answer with one word: yes or no.",
        "yes" if is_right else "no",
    )


def make_planted(random: Random, level: int) -> Item:
    """Show 3, 5 or 8 drafts, of which one is right."""
    start, steps = _task(random, 4)
    right = _derive(start, steps)
    drafts = {right}
    while len(drafts) < (3, 5, 8)[level - 1]:
        drafts.add(_derive_wrongly(random, start, steps))
    shown = sorted(drafts)
    random.shuffle(shown)
    listed = "\n\n".join(f"Draft {number}:\n{draft}" for number, draft in enumerate(shown, 1))
    return Item(
        f"The task was: {_write_task(start, steps)}\n\n{listed}\n\n"
        "Exactly one draft is right. Which one? Answer with its number alone.",
        str(shown.index(right) + 1),
    )


CLAIMS = Dataset(
    "claims",
    "Say whether a derivation is right.",
    "refuting: false alarms and misses",
    make_claim,
    # A candidate that says both says nothing.
    reads_the_same(lambda text: set(re.findall(r"\b(?:yes|no)\b", text.lower()))),
)
PLANTED = Dataset(
    "planted",
    "Pick the one right draft among wrong ones.",
    "selection, with the drafts given",
    make_planted,
    is_exactly,
)
