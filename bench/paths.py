"""Every path of every strategy, one step deeper than in the tests: states, events and limits, and the laws broken.

    uv run python bench/paths.py [STRATEGY …]

Target: no law is broken.
"""

import sys
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from reasonry.compare.explore import explore
from tests.test_every_path import DEPTH, DRIVEN, OPTIONS, outcomes_of


def main() -> int:
    faults = 0
    print("| strategy | states | events | limits |\n|---|---|---|---|")
    for strategy in DRIVEN:
        if len(sys.argv) > 1 and strategy.name not in sys.argv:
            continue
        for options in OPTIONS.get(strategy.name, [{"verify": True}]):
            found = explore(strategy, DEPTH + 1, options, partial(outcomes_of, strategy))
            print(
                f"| {strategy.name} | {found.states} | {found.events} | {found.limits} |",
                flush=True,
            )
            print(*found.faults[:3], sep="\n", end="\n" * bool(found.faults))
            faults += len(found.faults)
    print("target met" if not faults else f"TARGET MISSED: {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
