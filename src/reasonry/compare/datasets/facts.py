"""`facts` and `facts_text`: questions over several facts about people and places that nobody knows.

The facts are looked up with a tool, or stand in one long text before the question. They are made by rule, so that no
model has read them before.
"""

from __future__ import annotations

from random import Random

from msgspec import Struct

from ..judging import says_the_same
from .dataset import Dataset, Made

SYLLABLES = ("ba", "del", "fo", "gri", "ka", "lun", "mer", "no", "pil", "ras", "sto", "tu", "vel", "zan")
PEOPLE_MADE, TOWNS_MADE = 60, 20


class Person(Struct, frozen=True):
    """A person of the made world, with the town of birth and the person who taught this one a trade."""

    name: str
    town: str
    mentor: str
    trade: str


class Town(Struct, frozen=True):
    """A town of the made world."""

    name: str
    river: str
    founded: int


class World(Struct, frozen=True):
    """People and towns by their names."""

    people: dict[str, Person]
    towns: dict[str, Town]

    def look_up(self, name: str) -> str:
        """Say what is known about a person or a town.

        Args:
            name: The name of the person or the town.
        """
        if found := self.people.get(name.strip().title()):
            return (
                f"{found.name} was born in {found.town} and works as a {found.trade}. The mentor of {found.name} was "
                f"{found.mentor}."
            )
        if town := self.towns.get(name.strip().title()):
            return f"{town.name} was founded in {town.founded} and lies on the river {town.river}."
        return f"Nothing is known about {name.strip()[:60]!r}."


def make_world() -> World:
    """Return the world: the same for every seed, so that one tool serves all problems."""
    random = Random("facts-1")
    names = sorted({"".join(random.sample(SYLLABLES, 3)).title() for _ in range(400)})
    random.shuffle(names)
    people, towns, rivers = names[:PEOPLE_MADE], names[PEOPLE_MADE:][:TOWNS_MADE], names[-TOWNS_MADE:]
    trades = ("baker", "carpenter", "doctor", "farmer", "painter", "teacher")
    return World(
        {
            name: Person(
                name,
                random.choice(towns),
                random.choice([other for other in people if other != name]),
                random.choice(trades),
            )
            for name in people
        },
        {
            name: Town(name, river, random.randint(1100, 1800))
            for name, river in zip(towns, rivers, strict=True)
        },
    )


WORLD = make_world()


def _question(random: Random, level: int) -> Made:
    """Ask for a fact that is 2, 3 or 4 facts away from the person named."""
    person = WORLD.people[random.choice(sorted(WORLD.people))]
    phrase = person.name
    for _ in range(level - 1):
        person, phrase = WORLD.people[person.mentor], f"the mentor of {phrase}"
    asked: tuple[tuple[str, str], ...] = (
        (
            f"In which year was the town founded in which {phrase} was born?",
            str(WORLD.towns[person.town].founded),
        ),
        (f"On which river lies the town in which {phrase} was born?", WORLD.towns[person.town].river),
    )
    question, answer = random.choice(asked)
    return Made(f"{question} Answer with the {'year' if answer.isdigit() else 'name'} alone.", answer)


def make(random: Random, level: int) -> Made:
    """Ask a question whose facts the tool `look_up` has."""
    made = _question(random, level)
    return Made(f"{made.problem} The tool `look_up` knows each person and each town by name.", made.answer)


def make_text(random: Random, level: int) -> Made:
    """Ask a question behind a text that holds all facts, in random order."""
    made = _question(random, level)
    facts = [WORLD.look_up(name) for name in (*WORLD.people, *WORLD.towns)]
    random.shuffle(facts)
    return Made(f"{' '.join(facts)}\n\n{made.problem}", made.answer)


FACTS = Dataset(
    "facts",
    "Answer a question over two to four facts that a tool looks up.",
    "steps with a tool",
    make,
    says_the_same,
    tools=(WORLD.look_up,),
    needs="tools",
)
FACTS_TEXT = Dataset(
    "facts_text",
    "Answer a question over two to four facts in one long text.",
    "long input",
    make_text,
    says_the_same,
)
