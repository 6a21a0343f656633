"""`zebra`: houses in a row, clues about them, and one arrangement that fits all clues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import permutations, product
from random import Random

from ..judging import Item, says_the_same
from .dataset import Dataset

KINDS = {
    "job": ("baker", "nurse", "pilot", "teacher"),
    "pet": ("cat", "dog", "horse", "zebra"),
    "drink": ("coffee", "juice", "milk", "tea"),
}
RELATIONS: Mapping[str, Callable[[int], bool]] = {
    "is": lambda distance: distance == 0,
    "lives directly left of": lambda distance: distance == 1,
    "lives next to": lambda distance: abs(distance) == 1,
}
PHRASES = {"job": "the {}", "pet": "the owner of the {}", "drink": "the person who drinks {}"}

Fact = tuple[str, str]
"""A kind and one of its values."""
Clue = tuple[str, Fact, Fact]
"""A relation, and whom it is about."""
Places = dict[Fact, int]


def _holds(clue: Clue, places: Places) -> bool:
    relation, first, other = clue
    return RELATIONS[relation](places[other] - places[first])


@cache
def _arrangements(houses: int, kinds: tuple[str, ...]) -> list[Places]:
    rows = [[(kind, row) for row in permutations(KINDS[kind][:houses])] for kind in kinds]
    return [
        {(kind, value): place for kind, row in chosen for place, value in enumerate(row)}
        for chosen in product(*rows)
    ]


def _say(clue: Clue) -> str:
    relation, (kind, value), (other_kind, other_value) = clue
    first, other = PHRASES[kind].format(value), PHRASES[other_kind].format(other_value)
    return f"{first[0].upper()}{first[1:]} {relation} {other}."


def make(random: Random, level: int) -> Item:
    """Arrange 3 houses with 2 kinds of facts, 3 with 3, or 4 with 3, and give clues until one arrangement is left."""
    houses, kinds = (4 if level == 3 else 3), tuple(KINDS)[: 2 if level == 1 else 3]
    left = _arrangements(houses, kinds)
    true = random.choice(left)
    facts, clues = list(true), list[Clue]()
    while len(left) > 1:
        first, other = random.sample(facts, 2)
        relation = random.choice(list(RELATIONS))
        clue = (relation, first, other)
        fitting = [places for places in left if _holds(clue, places)] if _holds(clue, true) else left
        if first[0] != other[0] and len(fitting) < len(left):
            left, clues = fitting, [*clues, clue]
    # A pair that a clue names together would be read off, not worked out.
    named = {frozenset(pair) for relation, *pair in clues if relation == "is"}
    job, thing = random.choice(
        [
            (first[1], other[1])
            for first, other in product(facts, repeat=2)
            if (first[0], other[0]) == ("job", kinds[-1])
            and true[first] == true[other]
            and frozenset((first, other)) not in named
        ]
    )
    values = " ".join(f"The {kind}s are: {', '.join(KINDS[kind][:houses])}." for kind in kinds)
    asked = PHRASES[kinds[-1]].format(thing)
    return Item(
        f"{houses} houses stand in a row, with one person in each. Each person has another job and another "
        f"{' and another '.join(kinds[1:])}. {values} {' '.join(map(_say, clues))} "
        f"What is the job of {asked}? Answer with one word.",
        job,
    )


ZEBRA = Dataset(
    "zebra",
    "Find the one arrangement of people and houses that fits all clues.",
    "deduction under constraints",
    make,
    says_the_same,
)
