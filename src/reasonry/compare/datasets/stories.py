"""`stories`: word problems of several steps, with numbers that do not matter among those that do."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from .arithmetic import is_exactly
from .dataset import Dataset, Made

DISTRACTORS = (
    "The oldest person who helps is {n} years old.",
    "The building has {n} windows.",
    "It was {n} degrees outside that morning.",
    "The way there takes {n} minutes.",
    "Last year there were {n} rainy days in that month.",
    "A poster on the wall shows the number {n}.",
)


def _bakery(random: Random) -> tuple[list[str], str, int]:
    trays, rolls, price = random.randint(6, 20), random.randint(8, 24), random.randint(2, 5)
    left = random.randint(3, trays * rolls // 4)
    sentences = [
        f"A bakery bakes {trays} trays of {rolls} rolls each.",
        f"In the evening {left} rolls are left.",
        f"Each roll that was sold brought {price} dollars.",
    ]
    return sentences, "How many dollars did the bakery take in?", (trays * rolls - left) * price


def _bus(random: Random) -> tuple[list[str], str, int]:
    seats, first = random.randint(50, 70), random.randint(20, 40)
    off, on = random.randint(3, first - 5), random.randint(2, 20)
    sentences = [
        f"A bus with {seats} seats leaves the station with {first} passengers.",
        f"At the next stop {off} passengers get off and {on} get on.",
        "Every passenger sits.",
    ]
    return sentences, "How many seats are free after that stop?", seats - (first - off + on)


def _tank(random: Random) -> tuple[list[str], str, int]:
    rate, drain, hours = random.randint(12, 40), random.randint(2, 11), random.randint(3, 9)
    start = random.randint(5, 60)
    sentences = [
        f"A tank holds {start} liters of water.",
        f"A pump adds {rate} liters an hour, and a leak takes {drain} liters an hour.",
        f"The pump runs for {hours} hours.",
    ]
    return sentences, "How many liters are in the tank then?", start + (rate - drain) * hours


def _library(random: Random) -> tuple[list[str], str, int]:
    shelves, books, share = random.randint(4, 12), random.randint(20, 45) * 4, random.choice((2, 4))
    bought = random.randint(10, 90)
    sentences = [
        f"A library has {shelves} shelves of {books} books each.",
        f"It gives away one in {share} of all its books.",
        f"Then it buys {bought} new books.",
    ]
    total = shelves * books
    return sentences, "How many books does the library have now?", total - total // share + bought


def _trip(random: Random) -> tuple[list[str], str, int]:
    people, fare, room, nights = (random.randint(*bounds) for bounds in ((3, 9), (8, 30), (40, 90), (2, 6)))
    fund = random.randint(50, 150)
    sentences = [
        f"A group of {people} friends takes a train for {fare} dollars each.",
        f"Together they stay {nights} nights in a house for {room} dollars a night.",
        f"Their club pays {fund} dollars of it.",
    ]
    return sentences, "How many dollars do the friends pay in all?", people * fare + nights * room - fund


KINDS: tuple[Callable[[Random], tuple[list[str], str, int]], ...] = (
    _bakery,
    _bus,
    _tank,
    _library,
    _trip,
)


def make(random: Random, level: int) -> Made:
    """Tell a story, with 0, 2 or 4 sentences that do not matter."""
    sentences, question, answer = random.choice(KINDS)(random)
    for sentence in random.sample(DISTRACTORS, 2 * (level - 1)):
        sentences.insert(random.randint(1, len(sentences)), sentence.format(n=random.randint(3, 90)))
    return Made(f"{' '.join(sentences)} {question}", str(answer))


STORIES = Dataset(
    "stories",
    "Answer a word problem of several steps, with numbers in it that do not matter.",
    "reading, then calculation",
    make,
    is_exactly,
)
