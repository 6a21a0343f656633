"""`stories`: word problems of several steps, with numbers that do not matter among those that do."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ..judging import Item
from .arithmetic import is_exactly
from .dataset import Dataset

DISTRACTORS = (
    "The oldest person who helps is {n} years old.",
    "The building has {n} windows.",
    "It was {n} degrees outside that morning.",
    "The way there takes {n} minutes.",
    "Last year there were {n} rainy days in that month.",
    "A poster on the wall shows the number {n}.",
)

Story = tuple[str, str, int]
"""The sentences of a story, one on each line; its question; and the answer."""


def _bakery(random: Random) -> Story:
    trays, rolls, price = random.randint(6, 20), random.randint(8, 24), random.randint(2, 5)
    left = random.randint(3, trays * rolls // 4)
    story = f"""A bakery bakes {trays} trays of {rolls} rolls each.
        In the evening {left} rolls are left.
        Each roll that was sold brought {price} dollars."""
    return story, "How many dollars did the bakery take in?", (trays * rolls - left) * price


def _bus(random: Random) -> Story:
    seats, first = random.randint(50, 70), random.randint(20, 40)
    off, on = random.randint(3, first - 5), random.randint(2, 20)
    story = f"""A bus with {seats} seats leaves the station with {first} passengers.
        At the next stop {off} passengers get off and {on} get on.
        Every passenger sits."""
    return story, "How many seats are free after that stop?", seats - (first - off + on)


def _tank(random: Random) -> Story:
    rate, drain, hours = random.randint(12, 40), random.randint(2, 11), random.randint(3, 9)
    start = random.randint(5, 60)
    story = f"""A tank holds {start} liters of water.
        A pump adds {rate} liters an hour, and a leak takes {drain} liters an hour.
        The pump runs for {hours} hours."""
    return story, "How many liters are in the tank then?", start + (rate - drain) * hours


def _library(random: Random) -> Story:
    shelves, books, share = random.randint(4, 12), random.randint(20, 45) * 4, random.choice((2, 4))
    bought, total = random.randint(10, 90), shelves * books
    story = f"""A library has {shelves} shelves of {books} books each.
        It gives away one in {share} of all its books.
        Then it buys {bought} new books."""
    return story, "How many books does the library have now?", total - total // share + bought


def _trip(random: Random) -> Story:
    people, fare, room, nights = (random.randint(*bounds) for bounds in ((3, 9), (8, 30), (40, 90), (2, 6)))
    fund = random.randint(50, 150)
    story = f"""A group of {people} friends takes a train for {fare} dollars each.
        Together they stay {nights} nights in a house for {room} dollars a night.
        Their club pays {fund} dollars of it."""
    return story, "How many dollars do the friends pay in all?", people * fare + nights * room - fund


STORY_MAKERS: tuple[Callable[[Random], Story], ...] = (_bakery, _bus, _tank, _library, _trip)


def make(random: Random, level: int) -> Item:
    """Tell a story, with 0, 2 or 4 sentences that do not matter."""
    story, question, answer = random.choice(STORY_MAKERS)(random)
    sentences = [line.strip() for line in story.splitlines()]
    for sentence in random.sample(DISTRACTORS, 2 * (level - 1)):
        sentences.insert(random.randint(1, len(sentences)), sentence.format(n=random.randint(3, 90)))
    return Item(f"{' '.join(sentences)} {question}", str(answer))


STORIES = Dataset(
    "stories",
    "Answer a word problem of several steps, with numbers in it that do not matter.",
    "reading, then calculation",
    make,
    is_exactly,
)
