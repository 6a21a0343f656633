"""`stories`: word problems of several steps, with irrelevant numbers."""

import re
from collections.abc import Mapping, Sequence
from random import Random

from ...puzzles.expression import read_expression
from ..grading import Item

DISTRACTORS = (
    "The oldest person who helps is {} years old.",
    "The building has {} windows.",
    "It was {} degrees outside that morning.",
    "The way there takes {} minutes.",
    "Last year there were {} rainy days in that month.",
    "A poster on the wall shows the number {}.",
)


STORIES: tuple[tuple[str, Mapping[str, Sequence[int]], str], ...] = (
    (
        "A bakery bakes {trays} trays of {rolls} rolls each. In the evening {left} rolls are left. "
        "Each roll that was sold brought {price} dollars. How many dollars did the bakery take in?",
        {"trays": range(6, 21), "rolls": range(8, 25), "left": range(3, 13), "price": range(2, 6)},
        "({trays} * {rolls} - {left}) * {price}",
    ),
    (
        "A bus with {seats} seats leaves the station with {first} passengers. At the next stop {off} passengers "
        "get off and {on} get on. Every passenger sits. How many seats are free after that stop?",
        {"seats": range(50, 71), "first": range(20, 41), "off": range(3, 16), "on": range(2, 13)},
        "{seats} - ({first} - {off} + {on})",
    ),
    (
        "A tank holds {start} liters of water. A pump adds {rate} liters an hour, and a leak takes {drain} liters an "
        "hour. The pump runs for {hours} hours. How many liters are in the tank then?",
        {"start": range(5, 61), "rate": range(12, 41), "drain": range(2, 12), "hours": range(3, 10)},
        "{start} + ({rate} - {drain}) * {hours}",
    ),
    (
        "A library has {shelves} shelves of {books} books each. It gives away one in {share} of all its books. "
        "Then it buys {bought} new books. How many books does the library have now?",
        {"shelves": range(4, 13), "books": range(80, 181, 4), "share": (2, 4), "bought": range(10, 91)},
        "{shelves} * {books} / {share} * ({share} - 1) + {bought}",
    ),
    (
        "A group of {people} friends takes a train for {fare} dollars each. Together they stay {nights} nights in a "
        "house for {room} dollars a night. How many dollars do the friends pay in all?",
        {"people": range(3, 10), "fare": range(8, 31), "nights": range(2, 7), "room": range(40, 91)},
        "{people} * {fare} + {nights} * {room}",
    ),
)
"""The text of each story, the choices for each of its numbers, and the formula of its answer."""


def make(random: Random, level: int) -> Item:
    """Tell a story with 0, 2 or 4 irrelevant sentences, depending on the level."""
    text, choices, formula = random.choice(STORIES)
    numbers = {name: random.choice(bounds) for name, bounds in choices.items()}
    sentences = re.split(r"(?<=\.) ", text.format(**numbers))
    for sentence in random.sample(DISTRACTORS, 2 * (level - 1)):
        sentences.insert(random.randint(1, len(sentences) - 1), sentence.format(random.randint(3, 90)))
    answer = read_expression(formula.format(**numbers))
    return Item(" ".join(sentences), answer and str(answer.value))
