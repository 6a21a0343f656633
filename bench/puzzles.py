"""All four-number puzzles of 1 to 13: tree of thoughts with the offline model, every answer checked exactly.

Run: `uv run python bench/puzzles.py [--limit N]`. There are 1,820 puzzles, 1,362 of them solvable (target 24).
The check is `fractions` over Python's own parser, not the code that found the answer.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import time
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement

import reasonry


def is_right(answer: str, numbers: tuple[int, ...]) -> bool:
    """Check an answer with Python's own parser and fractions."""
    expression, _, target = answer.partition("=")
    used = sorted(map(int, re.findall(r"\d+", expression)))
    exact = re.sub(r"(\d+)", r"Fraction(\1)", expression)
    assert not re.sub(r"Fraction|[\d+\-*/() ]", "", exact), answer
    value = eval(exact, {"__builtins__": {}, "Fraction": Fraction})
    return used == sorted(numbers) and value == 24 and target.strip() == "24"


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=None)
    puzzles = list(combinations_with_replacement(range(1, 14), 4))[: parser.parse_args().limit]
    told, calls, start = Counter[str](), 0, time.perf_counter()
    for number, numbers in enumerate(puzzles, 1):
        problem = f"Use {numbers[0]}, {numbers[1]}, {numbers[2]} and {numbers[3]} to make 24"
        result = await reasonry.solve(problem, model="offline", store="memory")
        calls += result.usage.calls
        if result.answer is None:
            told["no answer: " + result.termination.reason] += 1
        else:
            told["right" if is_right(result.answer, numbers) else "WRONG"] += 1
        if number % 20 == 0:
            print(f"\r{number}/{len(puzzles)} {dict(told)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    seconds = time.perf_counter() - start
    print(f"{len(puzzles)} puzzles in {seconds:.1f} s, {calls} calls: {dict(told)}")
    return 1 if told["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
