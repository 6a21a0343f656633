"""`reasonry datasets`: the data sets that `compare` can take, and their problems."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from ...compare.datasets import DATASETS, LEVELS, Dataset
from ...compare.gym import WHITELIST
from ...compare.problem_set import open_dataset
from ...strategies import COMPARED
from .arguments import Count, WholeNumber
from .output import print_note
from .settings import OutputOptions
from .tables import Column, print_table

_COLUMNS = (
    Column("NAME", "name"),
    Column("TESTS", "measures", rank=1),
    Column("PROBLEMS", "summary", narrowest=30, wraps=True),
)
_GYM = f"gym/NAME takes problems of reasoning-gym (the extra `gym`): {len(WHITELIST)} names, in --json."


def datasets(
    name: str | None = None,
    /,
    *,
    show: Count = 3,
    seed: WholeNumber = 1,
    level: Annotated[WholeNumber, Parameter(validator=Number(gte=1, lte=3))] = 1,
    output: OutputOptions = OutputOptions(),
) -> int:
    """Show the data sets that compare can take, or problems of one with their answers.

    Parameters
    ----------
    name
        A data set, or gym/NAME.
    show
        Number of problems to show.
    seed
        Of the problems, as after `compare --seed`.
    level
        Of the problems: 1, the easiest, to 3.
    """
    if name is None:
        rows = [_describe(dataset) for dataset in DATASETS.values()]
        document = {"datasets": rows, "gym": [f"gym/{known}" for known in WHITELIST]}
        return output.show(document, lambda: (print_table(_COLUMNS, rows), print_note(_GYM)))
    with open_dataset(f"{name}:{show}", seed, level) as problems:
        shown = [{"id": item.id, "problem": item.problem, "answer": item.expected} for item in problems.items]
    head = _describe(DATASETS[name]) if name in DATASETS else {"name": name}
    text = "\n\n".join(f"{row['id']}\n{row['problem']}\n→ {row['answer']}" for row in shown)
    return output.show({**head, "problems": shown}, text)


def _describe(dataset: Dataset) -> dict[str, Any]:
    members = {key: getattr(dataset, key) for key in ("name", "summary", "measures", "version")}
    return {**members, "levels": LEVELS, "strategies": COMPARED[dataset.needs].split(",")}
