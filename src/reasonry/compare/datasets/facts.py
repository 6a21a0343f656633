"""`facts` and `facts_text`: questions that combine several facts about fictional people and places.

In `facts`, a tool looks up the facts. In `facts_text`, a long text before the question contains the facts. The facts
are generated, so that no model has read them before.
"""

from itertools import permutations
from random import Random

from ..grading import Item

SYLLABLES = ("ba", "del", "fo", "gri", "ka", "lun", "mer", "no", "pil", "ras", "sto", "tu", "vel", "zan")

# The world is the same for every seed, so that one tool serves all problems.
_world = Random("facts-1")
_names = _world.sample(sorted({"".join(parts).title() for parts in permutations(SYLLABLES, 3)}), 100)
_people, _towns, _rivers = _names[:60], _names[60:80], _names[80:]

PEOPLE = {name: (_world.choice(_towns), _people[at - 1]) for at, name in enumerate(_people)}
"""The town of birth and the mentor of each person."""
TOWNS = {name: (river, str(_world.randint(1100, 1800))) for name, river in zip(_towns, _rivers, strict=True)}
"""The river of each town, and the year in which the town was founded."""


def look_up(name: str) -> str:
    """Return the facts about a person or a town.

    Args:
        name: The name of the person or the town.
    """
    wanted = name.strip().title()
    if wanted in PEOPLE:
        town, mentor = PEOPLE[wanted]
        return f"{wanted} was born in {town}. The mentor of {wanted} was {mentor}."
    if wanted in TOWNS:
        river, year = TOWNS[wanted]
        return f"{wanted} was founded in {year} and lies on the river {river}."
    return f"Nothing is known about {name.strip()[:60]!r}."


def _ask(random: Random, level: int) -> tuple[str, str]:
    """Return a question about a person, and the answer. The question needs `level + 1` facts."""
    person = phrase = random.choice(_people)
    for _ in range(level - 1):
        person, phrase = PEOPLE[person][1], f"the mentor of {phrase}"
    river, year = TOWNS[PEOPLE[person][0]]
    wanted, answer = random.choice(
        (("In which year was the town founded", year), ("On which river lies the town", river))
    )
    return f"{wanted} in which {phrase} was born? Answer with the year or the name alone.", answer


def make(random: Random, level: int) -> Item:
    """Ask a question that needs the tool `look_up`."""
    question, answer = _ask(random, level)
    return Item(f"{question} The tool `look_up` knows each person and each town by name.", answer)


def make_text(random: Random, level: int) -> Item:
    """Write all facts in random order, and then ask a question that needs some of the facts."""
    question, answer = _ask(random, level)
    facts = random.sample([look_up(name) for name in (*PEOPLE, *TOWNS)], len(PEOPLE) + len(TOWNS))
    return Item(f"{' '.join(facts)}\n\n{question}", answer)
