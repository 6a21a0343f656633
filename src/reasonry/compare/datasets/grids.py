"""`grids`: a rule is shown by three examples and is applied to a fourth grid, as in the ARC tasks."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from itertools import groupby, permutations, product, starmap
from random import Random

from ..grading import Item, reads_the_same

Row = tuple[int, ...]
Grid = tuple[Row, ...]
Rule = Callable[[Grid], Grid]
COLORS = 5


def _in_rows(change: Callable[[Row], Row]) -> Rule:
    return lambda grid: tuple(map(change, grid))


def _recolor(old: int, new: int) -> Rule:
    return _in_rows(lambda row: tuple(new if cell == old else cell for cell in row))


RULES: tuple[Rule, ...] = (
    _in_rows(lambda row: row[::-1]),
    _in_rows(lambda row: row[-1:] + row[:-1]),
    _in_rows(lambda row: row[2:] + row[:2]),
    _in_rows(lambda row: (0, *row[:-1])),
    _in_rows(lambda row: tuple(sorted(row))),
    *starmap(_recolor, permutations(range(1, COLORS), 2)),
    lambda grid: grid[::-1],
    lambda grid: tuple(zip(*grid, strict=True)),
    lambda grid: tuple(zip(*grid, strict=True))[::-1],
)


def make(random: Random, level: int) -> Item:
    """Apply one rule to grids of 3 rows, one to grids of 3 to 5 rows, or two to such grids."""
    chains = list(product(RULES, repeat=2 if level == 3 else 1))
    while True:
        chain = random.choice(chains)
        *before, asked = (_draw(random, 3 if level == 1 else 5) for _ in range(4))
        after, answer = [_apply(chain, grid) for grid in before], _apply(chain, asked)
        # Whatever fits the examples gives the same answer.
        fitting = (other for other in chains if [_apply(other, grid) for grid in before] == after)
        if answer != asked and all(_apply(other, asked) == answer for other in fitting):
            break
    shown = "\n\n".join(
        f"Example {number}, input:\n{_write(first)}\nExample {number}, output:\n{_write(then)}"
        for number, (first, then) in enumerate(zip(before, after, strict=True), 1)
    )
    return Item(
        f"One rule turns each input into its output.\n\n{shown}\n\nInput:\n{_write(asked)}\n"
        "Write the output alone, one row on each line.",
        _write(answer),
    )


def _apply(chain: tuple[Rule, ...], grid: Grid) -> Grid:
    return reduce(lambda before, rule: rule(before), chain, grid)


def _draw(random: Random, largest: int) -> Grid:
    rows, columns = random.randint(3, largest), random.randint(3, largest)
    return tuple(tuple(random.randrange(COLORS) for _ in range(columns)) for _ in range(rows))


def _write(grid: Grid) -> str:
    return "\n".join(" ".join(map(str, row)) for row in grid)


def _last_grid(text: str) -> list[str]:
    """Return the last lines of digits in a text that stand one after the other."""
    lines = re.split(r"\n|(?<=\])\s*,\s*(?=\[)", text)
    row = re.compile(r"[\s\d,;|\[\]]*\d[\s\d,;|\[\]]*")
    grids = [list(rows) for found, rows in groupby(lines, lambda line: bool(row.fullmatch(line))) if found]
    return [re.sub(r"\D", "", line) for line in grids[-1]] if grids else []


is_right = reads_the_same(_last_grid)
