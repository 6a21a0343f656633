"""`planted`: several drafts, of which exactly one is right."""

from random import Random

from ..grading import Item
from .arithmetic import draw_chain, write_chain
from .claims import derive


def make(random: Random, level: int) -> Item:
    """Ask which draft is right. There are three, five or eight drafts, depending on the level."""
    start, steps = draw_chain(random, 4, 3)
    right = derive(start, steps)
    drafts = {right}
    while len(drafts) < (3, 5, 8)[level - 1]:
        drafts.add(derive(start, steps, random))
    shown = random.sample(sorted(drafts), len(drafts))
    listed = "\n\n".join(f"Draft {number}:\n{draft}" for number, draft in enumerate(shown, 1))
    return Item(
        f"The task was: {write_chain(start, steps)}\n\n{listed}\n\n"
        "Exactly one draft is right. Which one? Answer with its number alone.",
        str(shown.index(right) + 1),
    )
