"""A data set: problems made by rule, so that everybody gets the same ones, each with an exact judge.

Rule 1: an item depends on the data set's name and version, the seed, the level and its index, and on nothing else: the
        first 20 of 50 are those of 20.
Rule 2: a judge is exact: it accepts every way to write the right answer that it knows, and nothing else. No model is
        asked.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..judging import Item, Judge

LEVELS = (1, 2, 3)
"""How hard the problems are; 1 is the easiest."""


class Dataset(Struct, frozen=True):
    """A generator of problems, and the judge of their answers.

    Attributes:
        summary: What the problems ask for.
        measures: The ability that the problems test.
        make: Makes a problem of a level, without an id, with a random generator that nothing else uses.
        version: Changes whenever `make` makes other problems.
        tools: Those that the problems tell of.
        needs: A key of `COMPARED`: which strategies are compared where the user names none.
    """

    name: str
    summary: str
    measures: str
    make: Callable[[Random, int], Item]
    judge: Judge
    version: int = 1
    tools: tuple[Callable[..., Any], ...] = ()
    needs: str = "answer"

    def items(self, size: int, seed: int = 1, level: int = 1) -> list[Item]:
        """Return the first problems of a seed and a level."""
        return [self.item(index, seed, level) for index in range(size)]

    def item(self, index: int, seed: int = 1, level: int = 1) -> Item:
        """Return one problem of a seed and a level."""
        name = f"{self.name}-{self.version}-{seed}-{level}-{index}"
        # A text as seed is hashed the same way by every version of Python.
        return replace(self.make(Random(name), level), id=name)
