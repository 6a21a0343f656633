"""All four-number puzzles of 1 to 13: make 24, by tree of thoughts over the offline model; each answer checked.

    uv run python bench/puzzles.py [--machine] [--every N]

With `--machine` the pure machine alone, without engine, store and verifier.
Target: all 1,362 that can be solved are solved; the other 458 end with a reason and without an answer. The checking
shares no code with what it checks.
"""

import argparse
import ast
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from fractions import Fraction
from itertools import combinations_with_replacement

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.blocks.reply import read_reply
from reasonry.core.budget import Budget
from reasonry.core.effects import Ask
from reasonry.core.machine import advance, begin, open_effects
from reasonry.engine.ports import Question
from reasonry.models.offline import OfflineModel
from reasonry.strategies import STRATEGIES

TARGET = 24
SOLVABLE = 1_362
Hand = tuple[int, ...]
Ended = tuple[str | None, str]
"""The answer, and why the run ended."""

TREE_OF_THOUGHTS = STRATEGIES["tree_of_thoughts"]


def problem_of(hand: Hand) -> str:
    return f"Use {', '.join(map(str, hand[:-1]))} and {hand[-1]} to make {TARGET}"


async def by_machine(hand: Hand) -> Ended:
    model = OfflineModel()
    step = begin(TREE_OF_THOUGHTS, problem_of(hand), strategies=STRATEGIES)
    while pending := open_effects(step.snapshot):
        one = pending[0]
        assert isinstance(one.effect, Ask)
        answer = await model.answer(Question(one.id, one.stage, one.effect))
        step = advance(
            TREE_OF_THOUGHTS, step.snapshot, one.id, answer, strategies=STRATEGIES, read=read_reply
        )
    assert step.snapshot.conclusion is not None
    return step.snapshot.conclusion.answer, step.snapshot.conclusion.reason


async def by_engine(hand: Hand) -> Ended:
    async with App("memory") as app:
        order, performers = app.order(
            RunRequest(
                problem=problem_of(hand),
                strategy="tree_of_thoughts",
                options={},
                budget=Budget(),
                participants=Participants(model="offline"),
            )
        )
        result = await app.solve(order, performers)
    return result.answer, result.termination.reason


def solves(answer: str, hand: Hand) -> bool:
    """Whether an answer such as `(10 - 4) * (13 - 9) = 24` is true and uses exactly these numbers."""
    expression, _, claimed = answer.partition(" = ")
    used: list[int] = []
    value = _value(ast.parse(expression, mode="eval").body, used)
    return value == TARGET and claimed == str(TARGET) and sorted(used) == sorted(hand)


def _value(node: ast.expr, used: list[int]) -> Fraction:
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int)
        used.append(node.value)
        return Fraction(node.value)
    assert isinstance(node, ast.BinOp), ast.dump(node)
    left, right = _value(node.left, used), _value(node.right, used)
    match node.op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case _:
            assert isinstance(node.op, ast.Div)
            return left / right


async def play(hands: list[Hand], solve: Callable[[Hand], Awaitable[Ended]]) -> dict[Hand, Ended]:
    ended: dict[Hand, Ended] = {}
    for number, hand in enumerate(hands, 1):
        ended[hand] = await solve(hand)
        if number % 20 == 0 or number == len(hands):
            print(f"\r{number}/{len(hands)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return ended


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--machine", action="store_true", help="the pure machine alone")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth puzzle")
    given = parser.parse_args()
    hands = list(combinations_with_replacement(range(1, 14), 4))[:: given.every]
    start = time.perf_counter()
    ended = asyncio.run(play(hands, by_machine if given.machine else by_engine))
    seconds = time.perf_counter() - start
    right = [hand for hand, (answer, _) in ended.items() if answer is not None and solves(answer, hand)]
    wrong = [hand for hand, (answer, _) in ended.items() if answer is not None and hand not in set(right)]
    reasons = Counter(reason for answer, reason in ended.values() if answer is None)
    print(f"{len(hands)} puzzles in {seconds:.1f} s, {seconds / len(hands) * 1e3:.2f} ms each")
    print(f"{len(right)} solved, each answer checked; {len(wrong)} answered wrongly {wrong[:5] or ''}")
    print(f"{len(hands) - len(right) - len(wrong)} without an answer: {dict(reasons)}")
    good = not wrong and (given.every > 1 or len(right) == SOLVABLE)
    print("target met" if good else "TARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
