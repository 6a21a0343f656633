"""Reading: how many replies, written as models write them, are read at first sight, and how many wrongly.

    uv run python bench/reading.py [--lines]

The corpus is `tests/reading/corpus.jsonl`: replies to every form of every strategy, weighted to where models stumble,
each with what a person reads in it, or why a careful person would ask again. A reply is read by its stage, to a
question that the strategy asks in earnest. `--lines` lists every reply that was read wrongly or refused, and why.
Target: at least 98 % of what a person can read is read at first sight, and no reply is read wrongly.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from tests.reading.corpus import Found, lines, measure

LEAST_READ = 0.98
COLUMNS = ("replies", "read", "wrong", "refused", "asked again", "missed")


def row(name: str, found: list[Found]) -> tuple[float, int]:
    """Show a row; return the share read at first sight, and the number of wrong readings."""
    readable = Counter(one.outcome for one in found if one.line.reads is not None)
    other = Counter(one.outcome for one in found if one.line.reads is None)
    share = readable["read"] / (readable.total() or 1)
    counts = (readable.total(), readable["read"], readable["wrong"], readable["refused"])
    again = (other["asked again"], other["wrong"])
    cells = " ".join(
        f"{count or '':>{len(title) + 1}}" for title, count in zip(COLUMNS, (*counts, *again), strict=True)
    )
    print(f"{name:<44} {cells}   {f'{share:4.0%}' if readable else ''}".rstrip())
    return share, readable["wrong"] + other["wrong"]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", action="store_true")
    wants_lines = parser.parse_args().lines
    measured = [measure(line) for line in lines()]
    asked = [one for one in measured if one.outcome != "not asked"]
    print(f"{'':<44} {' '.join(f'{title:>{len(title) + 1}}' for title in COLUMNS)}")
    for form in dict.fromkeys(one.line.stage for one in asked):
        row(form, [one for one in asked if one.line.stage == form])
    print()
    share, wrong = row("all", asked)
    print(
        "\nreplies to be read: read at first sight, read wrongly, refused; replies to be asked about again: "
        f"asked again, or missed (read all the same)\n{len(measured) - len(asked)} lines left out: "
        "their question is not asked any more"
    )
    for one in asked if wants_lines else ():
        if one.outcome in ("wrong", "refused"):
            print(f"{one.outcome:<8} {one.line.id:<10} {one.detail}")
    print(f"\n{share:.1%} read at first sight, {wrong} read wrongly")
    good = share >= LEAST_READ and wrong == 0
    print("target met" if good else "TARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
