"""Data sets of our own: problems made by rule, the same for everybody, each with an exact judge.

dataset   a data set, and how its items are named
the rest  one generator a file
"""

from __future__ import annotations

from collections.abc import Mapping

from .arithmetic import ARITHMETIC
from .claims import CLAIMS, PLANTED
from .countdown import COUNTDOWN
from .dataset import LEVELS, Dataset
from .facts import FACTS, FACTS_TEXT
from .game24 import GAME24
from .grids import GRIDS
from .intersection import INTERSECTION
from .keywords import KEYWORDS
from .knights import KNIGHTS
from .sorting import SORTING
from .stories import STORIES
from .zebra import ZEBRA

__all__ = ["DATASETS", "LEVELS", "Dataset"]

_ALL = (
    *(GAME24, COUNTDOWN, ARITHMETIC, STORIES, KNIGHTS, ZEBRA, SORTING, INTERSECTION, KEYWORDS),
    *(FACTS, FACTS_TEXT, GRIDS, CLAIMS, PLANTED),
)
DATASETS: Mapping[str, Dataset] = {dataset.name: dataset for dataset in _ALL}
"""Every data set, by its name."""
