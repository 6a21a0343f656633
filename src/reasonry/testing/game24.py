"""A brain that plays "make T from these numbers" from prompts in prose: it proposes, values and writes out.

It reads what the prompt shows: the puzzle (`4, 9, 10 and 13 to make 24`), and moves of its own
making, which end in what is left, `13 - 9 = 4 (left: 4 4 10)`. The form of the reply
says which of its three jobs is wanted.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from .brain import ChatRequest

Numbers = tuple[Fraction, ...]

_NUMBER = r"-?\d+(?:/\d+)?"
_PUZZLE = re.compile(rf"(?<![\w/]){_NUMBER}(?:(?:\s*,\s*|\s+)(?:and\s+)?{_NUMBER}){{1,5}}(?![\w/])")
_TARGET = re.compile(rf"(?:make|makes|reach|to get|equals?|gives?|target(?: is)?)\s*:?\s*({_NUMBER})", re.I)
_MOVE = re.compile(rf"({_NUMBER}) ([-+*/]) ({_NUMBER}) = ({_NUMBER}) \(left: ((?:{_NUMBER} ?)+)\)")
_ITEM = re.compile(r"^\W*(\d+)[.):\]]+\s*(.*)$", re.M)


@dataclass(frozen=True)
class Move:
    """One step: two numbers become one."""

    left: Fraction
    sign: str
    right: Fraction
    made: Fraction
    rest: Numbers

    def __str__(self) -> str:
        rest = " ".join(map(str, self.rest))
        return f"{self.left} {self.sign} {self.right} = {self.made} (left: {rest})"


@dataclass(frozen=True)
class Player:
    """Makes replies; give it to a `ModelServer` as `reply`.

    Args:
        width: Moves proposed at once.
        noise: Probability that a reply is misled: the good moves are not seen, or a value is off. The same
            prompt is always misled in the same way.
    """

    width: int = 8
    noise: float = 0.0

    def __call__(self, request: ChatRequest) -> Any:
        """Play; None where the prompt holds no puzzle."""
        puzzle = read_puzzle(request.prompt) or read_puzzle(request.system)
        if puzzle is None:
            return None
        numbers, target = puzzle
        wanted = set((request.form or {}).get("properties", {}))
        chance = random.Random(f"{request.system}\0{request.prompt}\0{request.sample}")
        if "scores" in wanted:
            return {"scores": self.value(request.prompt, target, chance)}
        if "answer" in wanted:
            return {"answer": write_out(numbers, moves_in(request.prompt))}
        made = list(moves_in(request.prompt))
        return {"thoughts": self.propose(made[-1].rest if made else numbers, target, chance)}

    def propose(self, numbers: Numbers, target: Fraction, chance: random.Random) -> list[str]:
        """Return moves, those that lead to the target among them unless misled."""
        moves = list(moves_from(numbers))
        chance.shuffle(moves)
        good = [move for move in moves if reachable(move.rest, target)]
        poor = [move for move in moves if not reachable(move.rest, target)]
        misled = chance.random() < self.noise
        chosen = (poor or good) if misled else good[:2] + poor
        return [str(move) for move in sorted(chosen[: self.width], key=str)]

    def value(self, prompt: str, target: Fraction, chance: random.Random) -> dict[str, float]:
        """Return a score for each numbered move in the prompt."""
        scores: dict[str, float] = {}
        for number, text in _ITEM.findall(prompt):
            moves = list(moves_in(text))
            if moves:
                score = score_of(moves[-1].rest, target)
                scores[number] = abs(0.9 - score) if chance.random() < self.noise else score
        return scores


def score_of(numbers: Numbers, target: Fraction) -> float:
    """Return 1 for the target itself, 0.8 where it can be reached, else nearly nothing."""
    if len(numbers) == 1:
        return 1.0 if numbers[0] == target else 0.0
    return 0.8 if reachable(numbers, target) else 0.05


def read_puzzle(text: str) -> tuple[Numbers, Fraction] | None:
    """Return the numbers and the target of the first puzzle in a text."""
    target = _TARGET.search(text)
    puzzle = next((found for found in _PUZZLE.finditer(text) if not _in_move(text, found)), None)
    if target is None or puzzle is None:
        return None
    return _numbers(puzzle[0]), Fraction(target[1])


def _in_move(text: str, found: re.Match[str]) -> bool:
    return text[: found.start()].rstrip().endswith("left:")


def _numbers(text: str) -> Numbers:
    return tuple(sorted(Fraction(one) for one in re.findall(_NUMBER, text)))


def moves_in(text: str) -> Iterator[Move]:
    """Yield the moves a text shows, in order."""
    for left, sign, right, made, rest in _MOVE.findall(text):
        yield Move(Fraction(left), sign, Fraction(right), Fraction(made), _numbers(rest))


def moves_from(numbers: Numbers) -> Iterator[Move]:
    """Yield every distinct move."""
    seen: set[tuple[str, Numbers]] = set()
    for i, left in enumerate(numbers):
        for j, right in enumerate(numbers):
            if i == j:
                continue
            others = [number for k, number in enumerate(numbers) if k not in (i, j)]
            for sign, made in _results(left, right, swapped=i > j):
                move = Move(left, sign, right, made, tuple(sorted([*others, made])))
                if (key := (f"{left}{sign}{right}", move.rest)) not in seen:
                    seen.add(key)
                    yield move


def _results(left: Fraction, right: Fraction, swapped: bool) -> Iterator[tuple[str, Fraction]]:
    if not swapped:
        yield "+", left + right
        yield "*", left * right
    yield "-", left - right
    if right:
        yield "/", left / right


@lru_cache(maxsize=100_000)
def reachable(numbers: Numbers, target: Fraction) -> bool:
    """Whether the numbers, each used once, make the target."""
    if len(numbers) == 1:
        return numbers[0] == target
    return any(reachable(move.rest, target) for move in moves_from(numbers))


def write_out(numbers: Sequence[Fraction], moves: Iterator[Move]) -> str:
    """Fold moves into one expression over the numbers they began with."""
    pool = [(number, str(number)) for number in numbers]
    for move in moves:
        pair = [_taken(pool, move.left), _taken(pool, move.right)]
        if None in pair:
            break
        pool.append((move.made, f"({pair[0]} {move.sign} {pair[1]})"))
    expression = pool[-1][1] if pool else ""
    return expression[1:-1] if expression.startswith("(") and expression.endswith(")") else expression


def _taken(pool: list[tuple[Fraction, str]], number: Fraction) -> str | None:
    for at, (value, text) in enumerate(pool):
        if value == number:
            del pool[at]
            return text
    return None


play = Player()
"""The player as the command line of the server takes it."""
