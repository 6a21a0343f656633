"""Generated data sets with exact judges. Every computer generates the same problems.

Each file has the generator of a data set (`make`). Some files also have a judge (`is_right`). See `DATASETS` for all.

Rule 1: an item depends only on the data set's name and version, the seed, the level and the item's index. A set of 20
        items thus equals the first 20 items of a set of 50.
Rule 2: a judge is exact: it accepts only known spellings of the right answer, and asks no model.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..grading import Item, Judge, makes, says_the_same
from . import arithmetic, claims, countdown, facts, game24, planted, stories

LEVELS = (1, 2, 3)
"""The levels of difficulty; 1 is the easiest."""


class Dataset(Struct, frozen=True):
    """A data set: a generator of problems, and a judge of the answers to these problems.

    Attributes:
        measures: The ability that the problems test.
        make: Makes a problem without an id. The arguments are a random generator and a level.
        needs: The kind of the problems. `COMPARED` has the default strategies for each kind.
        tools: The tools that the problems mention.
        version: The version of the problems. It increases whenever `make` begins to make different problems.
    """

    name: str
    measures: str
    summary: str
    make: Callable[[Random, int], Item]
    judge: Judge
    needs: str = "answer"
    tools: tuple[Callable[..., Any], ...] = ()
    version: int = 1

    def items(self, size: int, seed: int = 1, level: int = 1) -> list[Item]:
        """Return the first `size` problems for a seed and a level."""
        return [self.item(index, seed, level) for index in range(size)]

    def item(self, index: int, seed: int = 1, level: int = 1) -> Item:
        """Return the problem with this index for a seed and a level."""
        name = f"{self.name}-{self.version}-{seed}-{level}-{index}"
        # Every version of Python hashes a text seed in the same way.
        return replace(self.make(Random(name), level), id=name)


_ALL = (
    Dataset("game24", "search", "Make 24 from four numbers.", game24.make, makes, "search"),
    Dataset("countdown", "search", "Make a number from others.", countdown.make, makes, "search"),
    Dataset("arithmetic", "slips", "Carry out a chain of operations.", arithmetic.make, arithmetic.is_right),
    Dataset("stories", "reading", "Solve a word problem in steps.", stories.make, arithmetic.is_right),
    Dataset("facts", "tools", "Chain a tool's facts.", facts.make, says_the_same, "tools", (facts.look_up,)),
    Dataset("facts_text", "long input", "Chain facts from a long text.", facts.make_text, says_the_same),
    Dataset("claims", "refuting", "Say whether a derivation is right.", claims.make, claims.is_right),
    Dataset("planted", "selection", "Pick the one right draft.", planted.make, arithmetic.is_right),
)
DATASETS: Mapping[str, Dataset] = {dataset.name: dataset for dataset in _ALL}
"""The data sets by name."""
