"""A brain that plays "make T from these numbers" from prompts in prose: it proposes, values and writes out.

It reads what the prompt shows: the puzzle on a line of its own, the moves of the path, and the numbered candidates.
The form of the reply says which of its three jobs is wanted. The computing is that of the offline model.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reasonry.models.offline import propose, value
from reasonry.puzzles.expression import judge_sides, read_expression
from reasonry.puzzles.reading import read_puzzle
from reasonry.puzzles.solutions import solve_numbers
from reasonry.puzzles.steps import expressions, final_expression, follow
from reasonry.puzzles.term import Puzzle, Term

from .brain import ChatRequest

_ITEM = re.compile(r"^\W*(\d+)[.):\]]+\s+(.*)$")
_TASK = re.compile(r"^Propose .*", re.DOTALL | re.MULTILINE)
"""What to do now, with examples of steps: no part of the path."""
_REFUTED = re.compile(r"^[^\n]*\btried here\b[^\n]*:$.*?(?=^$|\Z)", re.DOTALL | re.MULTILINE)
"""Steps that are shown because they lead nowhere: no part of the path."""


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
        puzzle = puzzle_in(request.prompt) or puzzle_in(request.system)
        if puzzle is None:
            return None
        wanted = set((request.form or {}).get("properties", {}))
        shown = _REFUTED.sub("", _TASK.sub("", request.prompt))
        chance = random.Random(f"{request.system}\0{request.prompt}\0{request.sample}")
        if "scores" in wanted:
            path, candidates = _split(shown)
            return {"scores": self._values(puzzle, path, candidates, chance)}
        path = [line for line in shown.splitlines() if read_moves(line)]
        if "answer" in wanted or "<answer>" in request.prompt:
            answer = final_expression(puzzle, follow(puzzle, path))
            return {"answer": answer} if wanted else f"<answer>{answer or 'null'}</answer>"
        return {"thoughts": self._thoughts(puzzle, path, chance)}

    def _thoughts(self, puzzle: Puzzle, path: list[str], chance: random.Random) -> list[str]:
        steps_left = len(follow(puzzle, path).left) - 1
        if chance.random() >= self.noise:
            return propose(puzzle, path, self.width, steps_left)
        seen = propose(puzzle, path, self.width + 20, steps_left)
        lost = [one for one in seen if not _leads_on(puzzle, [*path, one])]
        return (lost or seen)[: self.width]

    def _values(
        self, puzzle: Puzzle, path: list[str], candidates: dict[str, str], chance: random.Random
    ) -> dict[str, float]:
        true = value(puzzle, path, list(candidates.values())).values()
        misled = [chance.random() < self.noise for _ in candidates]
        return {
            number: round(0.9 - score, 4) if wrong and score < 0.9 else score
            for number, score, wrong in zip(candidates, true, misled, strict=True)
        }


def _leads_on(puzzle: Puzzle, path: list[str]) -> bool:
    return solve_numbers(follow(puzzle, path).numbers, puzzle.target) is not None


def puzzle_in(prompt: str) -> Puzzle | None:
    """Return the puzzle that stands on a line of its own, perhaps after a label."""
    return next((puzzle for line in _unlabelled(prompt) if (puzzle := read_puzzle(line))), None)


def _unlabelled(prompt: str) -> Iterator[str]:
    for line in prompt.splitlines():
        if not read_moves(line):
            yield line
            yield line.partition(":")[2]


def _split(prompt: str) -> tuple[list[str], dict[str, str]]:
    """Return the path, and the candidates by number: the last run of lines that are numbered from 1."""
    path: list[str] = []
    candidates: dict[str, str] = {}
    for line in prompt.splitlines():
        item = _ITEM.match(line)
        if item and item[1] == "1":
            path += candidates.values()
            candidates = {}
        if item and item[1] == str(len(candidates) + 1):
            candidates[item[1]] = item[2]
        elif read_moves(line):
            path.append(line)
    return path, candidates


play = Player()
"""The player as the command line of the server takes it."""


def read_moves(text: str) -> list[Term]:
    """Return the moves of two numbers written in a text, such as `10 - 4 = 6; 13 - 9 = 4 (left: 4 6)`."""
    moves: list[Term] = []
    for sides in expressions(text):
        match [read_expression(side, compact=True) for side in sides]:
            case [Term(op=op, left=Term() as left, right=Term() as right), Term(value=result)]:
                if not any(part.op and not part.tight for part in (left, right)):
                    moves.append(Term(result, op, Term(left.value), Term(right.value)))
    return moves


def check(expression: str, puzzle: Puzzle) -> tuple[bool, str]:
    """Say whether an expression, which may be set equal to the target, solves a puzzle, and if not, why."""
    term, fault = judge_sides(expression.split("="), puzzle)
    return term is not None and not fault, fault
