"""`zebra`: houses in a row, clues about them, and one arrangement that fits all clues."""

from __future__ import annotations

from functools import cache
from itertools import permutations, product
from random import Random

from ..grading import Item

KINDS = {
    "job": ("baker", "nurse", "pilot", "teacher"),
    "pet": ("cat", "dog", "horse", "zebra"),
    "drink": ("coffee", "juice", "milk", "tea"),
}
PHRASES = {"job": "the {}", "pet": "the owner of the {}", "drink": "the person who drinks {}"}
RELATIONS = {"is": (0,), "lives directly left of": (1,), "lives next to": (-1, 1)}
"""How many houses the second of two facts may be to the right of the first."""

Fact = tuple[str, str]
"""A kind and one of its values."""
Clue = tuple[str, Fact, Fact]
"""A relation, and the facts of which it holds."""
Places = dict[Fact, int]


def make(random: Random, level: int) -> Item:
    """Arrange 3 houses with 2 kinds of facts, 3 with 3, or 4 with 3, and give clues until one arrangement is left."""
    houses, kinds = (4 if level == 3 else 3), tuple(KINDS)[: 2 if level == 1 else 3]
    left = _arrangements(houses, kinds)
    true, clues = random.choice(left), list[Clue]()
    thing = (kinds[-1], random.choice(KINDS[kinds[-1]][:houses]))
    (job,) = (fact for fact in true if fact[0] == "job" and true[fact] == true[thing])
    while len(left) > 1:
        first, other = random.sample(list(true), 2)
        clue = (random.choice(list(RELATIONS)), first, other)
        fitting = [places for places in left if _holds(clue, places)]
        # A clue that names both would have the answer read off, not worked out.
        is_fair = first[0] != other[0] and {first, other} != {job, thing}
        if is_fair and _holds(clue, true) and len(fitting) < len(left):
            left, clues = fitting, [*clues, clue]
    values = " ".join(f"The {kind}s are: {', '.join(KINDS[kind][:houses])}." for kind in kinds)
    return Item(
        f"{houses} houses stand in a row, with one person in each. Each person has another job and another "
        f"{' and another '.join(kinds[1:])}. {values} {' '.join(map(_say, clues))} "
        f"What is the job of {_name(thing)}? Answer with one word.",
        job[1],
    )


@cache
def _arrangements(houses: int, kinds: tuple[str, ...]) -> list[Places]:
    rows = [[(kind, row) for row in permutations(KINDS[kind][:houses])] for kind in kinds]
    return [
        {(kind, value): place for kind, row in chosen for place, value in enumerate(row)}
        for chosen in product(*rows)
    ]


def _holds(clue: Clue, places: Places) -> bool:
    relation, first, other = clue
    return places[other] - places[first] in RELATIONS[relation]


def _say(clue: Clue) -> str:
    relation, first, other = clue
    return f"{_name(first)} {relation} {_name(other)}.".replace("the", "The", 1)


def _name(fact: Fact) -> str:
    return PHRASES[fact[0]].format(fact[1])
