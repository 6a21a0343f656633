"""The problems of a comparison, from a user's file or from a data set with its own judge and tools."""

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ..errors import UsageError
from ..strategies import COMPARED
from ..text import did_you_mean
from .datasets import DATASETS
from .grading import Item, Judge, is_the_number, makes, number_in, says_the_same
from .gym import WHITELIST, open_gym

DEFAULT_SIZE, MAX_SIZE = 30, 10_000
"""The default and the largest number of problems from a data set."""


class ProblemSet(Struct, frozen=True):
    """The problems of a comparison, and the judge and the tools that belong to them.

    Attributes:
        judge: The judge of the data set, or None. The user can choose another judge. If neither exists, `exact` judges.
        tools: The tools that the problems mention. Every run gets these tools.
        strategies: The strategies to compare if the user does not give `--strategies`.
        seed: The seed of a generated data set. `level` is the difficulty of its problems.
    """

    name: str
    items: list[Item]
    judge: Judge | None = None
    tools: tuple[Callable[..., Any], ...] = ()
    strategies: str = ""
    seed: int | None = None
    level: int | None = None


def find_judge(name: str) -> Judge | None:
    """Find a judge by its own name or a data set's name. None for `model` and for `gym/NAME`.

    Raises:
        UsageError: The judge is unknown. `choices` of the error has the valid forms.
    """
    kind, _, rest = name.partition(":")
    judges: dict[str, Judge | None] = {"exact": says_the_same, "numeric": is_the_number, "model": None}
    judges |= {dataset.name: dataset.judge for dataset in DATASETS.values()}
    if kind == "arithmetic" and (target := number_in(rest)) is not None:
        return lambda item, answer: makes(item, answer, target)
    if name in judges or kind.startswith("gym/"):
        return judges.get(name)
    choices = ["exact", "numeric", "arithmetic:TARGET", "model"]
    message = f"there is no judge {name[:60]!r}. The forms: {', '.join(choices)}."
    raise UsageError(message, option="judge", choices=choices)


def open_dataset(written: str, seed: int = 1, level: int = 1) -> ProblemSet:
    """Open a data set that the user writes as NAME, NAME:SIZE or gym/NAME:SIZE.

    Raises:
        UsageError: The data set is unknown (`choices` has the names), or its size or level is illegal.
        MissingExtraError: `gym/…` needs reasoning-gym, which is not installed.
    """
    name, colon, number = written.strip().partition(":")
    choices = [*DATASETS, *(f"gym/{known}" for known in WHITELIST)]
    if name not in choices:
        hint = f"{did_you_mean(name, choices)} `reasonry datasets` shows them all."
        raise UsageError(f"there is no data set {name[:60]!r}.{hint}", option="dataset", choices=choices)
    size = int(number) if re.fullmatch(r"[0-9]{1,5}", number) else 0 if colon else DEFAULT_SIZE
    if not 1 <= size <= MAX_SIZE:
        message = f"a data set is NAME:SIZE, with a size from 1 to {MAX_SIZE:,}, not {written[:60]!r}"
        raise UsageError(message, option="dataset")
    made = DATASETS.get(name)
    if made is None and level != 1:
        raise UsageError("the data sets of reasoning-gym have no levels", option="level")
    if made is None:
        items, judge = open_gym(name.removeprefix("gym/"), seed, size)
        return ProblemSet(name, items, judge, strategies=COMPARED["answer"], seed=seed)
    items = made.items(size, seed, level)
    return ProblemSet(name, items, made.judge, made.tools, COMPARED[made.needs], seed, level)
