"""`claims`: a derivation that is right, or has one error that is easy to miss."""

import re
from random import Random

from ..grading import Item, reads_the_same
from .arithmetic import Step, carry_out, draw_chain, write_chain


def make(random: Random, level: int) -> Item:
    """Ask whether a derivation is right. It has 3, 6 or 10 steps, depending on the level."""
    start, steps = draw_chain(random, (3, 6, 10)[level - 1], 3)
    is_sound = random.random() < 0.5
    shown = derive(start, steps, None if is_sound else random)
    return Item(
        f"The task was: {write_chain(start, steps)}\n\nSomeone wrote:\n{shown}\n\n"
        "Is every step of it right, and does it do what the task says? Answer with one word: yes or no.",
        "yes" if is_sound else "no",
    )


def derive(start: int, steps: list[Step], random: Random | None = None) -> str:
    """Write a derivation, one step per line.

    Args:
        random: Chooses a step after the first step, and the error in this step: a wrong result (`slip`), a wrong first
            number (`copy`), or a wrong operation. All other steps are right. If None, the derivation has no error.
    """
    wrong_at = random.randrange(1, len(steps)) if random else None
    fault = random.choice(("slip", "copy", "operation")) if random else ""
    value, lines = start, list[str]()
    for at, (sign, number) in enumerate(steps):
        kind = fault if at == wrong_at else ""
        if kind == "copy":
            # Swap two digits.
            value += 9 * (value % 10 - value // 10 % 10) or 10
        if kind == "operation":
            sign = "-" if sign == "+" else "+"
        result = carry_out(value, sign, number) + (10 if kind == "slip" else 0)
        lines.append(f"{value} {sign} {number} = {result}")
        value = result
    return "\n".join([*lines, f"So the result is {value}."])


is_right = reads_the_same(lambda text: set(re.findall(r"\b(?:yes|no)\b", text.lower())))
"""The judge: whether an answer contains the right word (`yes` or `no`) and does not contain the wrong word."""
