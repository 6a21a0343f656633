"""`grids`: a rule is shown by three examples and is applied to a fourth row or grid, as in the ARC tasks."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from itertools import groupby, product
from random import Random

from ..judging import Item, reads_the_same

Grid = tuple[tuple[int, ...], ...]
Rule = Callable[[Grid], Grid]
COLORS = 5


def _turn(grid: Grid) -> Grid:
    return tuple(zip(*grid, strict=True))


def _in_rows(change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Rule:
    return lambda grid: tuple(map(change, grid))


def _recolor(old: int, new: int) -> Rule:
    return _in_rows(lambda row: tuple(new if cell == old else cell for cell in row))


ROW_RULES: tuple[Rule, ...] = (
    _in_rows(lambda row: row[::-1]),
    _in_rows(lambda row: row[-1:] + row[:-1]),
    _in_rows(lambda row: row[2:] + row[:2]),
    _in_rows(lambda row: (0, *row[:-1])),
    _in_rows(lambda row: tuple(sorted(row))),
    *(_recolor(old, new) for old, new in product(range(1, COLORS), repeat=2) if old != new),
)
GRID_RULES: tuple[Rule, ...] = (
    *ROW_RULES,
    _turn,
    lambda grid: grid[::-1],
    lambda grid: _turn(grid)[::-1],
)


def make(random: Random, level: int) -> Item:
    """Apply one rule to rows, one to grids of 3 to 5 rows, or two to grids."""
    chains = list(product(ROW_RULES if level == 1 else GRID_RULES, repeat=2 if level == 3 else 1))
    while True:
        chain = random.choice(chains)
        *before, asked = (_draw(random, level) for _ in range(4))
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


def _draw(random: Random, level: int) -> Grid:
    rows, columns = (1, random.randint(6, 9)) if level == 1 else (random.randint(3, 5), random.randint(3, 5))
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
