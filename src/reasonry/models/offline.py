"""The model `offline`, a program that solves number puzzles exactly and refuses every other problem.

The program gets the same questions as a language model and answers each question from its `facts`. A search with this
model is a real search: the model proposes moves, including dead ends, and scores whether each can reach the target.
"""

import asyncio
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ..core.effects import Ask
from ..core.events import Answered, Usage
from ..core.problem import without_quoted
from ..engine.ports import Model, OnText, Question
from ..errors import ModelError
from ..puzzles.reading import read_puzzle
from ..puzzles.solutions import solve, solve_numbers
from ..puzzles.steps import Position, final_expression, follow
from ..puzzles.term import Puzzle, Term, legal_moves, moves_of

SLOW_NUMBERS = 5
"""With this many numbers or more, the computation runs in a thread, so that other work can continue."""


class OfflineModel(Model):
    """A model that answers by exact rational arithmetic."""

    name = "offline"
    is_free = True

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """Answer a question about a number puzzle, or raise ModelError (`model_refused`)."""
        puzzle = read_puzzle(without_quoted(str(question.ask.facts.get("problem", ""))))
        if puzzle is None:
            raise _refusal()
        is_slow = len(puzzle.numbers) >= SLOW_NUMBERS
        asked = puzzle, question.ask
        reply = await asyncio.to_thread(_reply, *asked) if is_slow else _reply(*asked)
        text = msgspec.json.encode(reply).decode()
        if on_text is not None:
            on_text(text)
        return Answered(text, usage=Usage(usd=0.0), model=self.name, native=True)


NO_PUZZLE = (
    "the offline model only solves number puzzles of 2 to 6 numbers, such as “Use 4, 9, 10 and 13 to make 24”; name "
    "another model"
)


def _refusal(why: str = NO_PUZZLE) -> ModelError:
    return ModelError(why, code="model_refused")


class _Facts(Struct, frozen=True):
    kind: str = ""
    path: tuple[str, ...] = ()
    count: Annotated[int, Meta(ge=1)] = 1
    steps_left: int = 1
    thoughts: tuple[str, ...] = ()
    refuted: tuple[str, ...] = ()


def _reply(puzzle: Puzzle, ask: Ask) -> dict[str, Any]:
    try:
        facts = msgspec.convert(ask.facts, _Facts)
    except msgspec.ValidationError as error:
        raise _refusal(f"the offline model cannot read this question: {error}") from None
    match facts.kind:
        case "answer_form":
            raise _refusal(
                "the offline model does not put an answer in a form; leave the form out, or name another model"
            )
        case "propose":
            return {"thoughts": propose(puzzle, facts.path, facts.count, facts.steps_left, facts.refuted)}
        case "value":
            return {"scores": value(puzzle, facts.path, facts.thoughts)}
        case "reason":
            term = _solve(puzzle)
            moves = "\n\n".join(move.equation for move in moves_of(term))
            return {"reasoning": moves, "answer": term.equation}
        case "answer":
            return {"answer": final_expression(puzzle, follow(puzzle, facts.path))}
        case _ if facts.kind == "sample" or (
            (ask.form or {}).get("required") == ["answer"] and ask.facts.keys() <= {"kind", "problem"}
        ):
            return {"answer": _solve(puzzle).equation}
        case _:
            raise _refusal("the offline model cannot follow this strategy; use `auto`, or name another model")


def _solve(puzzle: Puzzle) -> Term:
    term = solve(puzzle)
    if term is None:
        numbers = ", ".join(map(str, puzzle.numbers))
        raise _refusal(f"{puzzle.target} cannot be made from {numbers}")
    return term


def propose(
    puzzle: Puzzle, path: Sequence[str], count: int, steps_left: int, refuted: Sequence[str] = ()
) -> list[str]:
    """Return up to `count` next thoughts. If possible, the first thought leads to the target.

    Each thought contains as many moves (which join two numbers) as are needed to finish within `steps_left` thoughts.
    Refuted thoughts are not proposed again.
    """
    position = follow(puzzle, path)
    moves = len(position.left) - 1
    size = -(-moves // max(steps_left, 1))
    thoughts: list[str] = []
    for line in _lines(puzzle, position.numbers, size):
        left = " ".join(map(str, _after(position.numbers, line)))
        text = f"{'; '.join(move.equation for move in line)} (left: {left})"
        if text not in thoughts and text not in refuted:
            thoughts.append(text)
        if len(thoughts) == count:
            break
    return thoughts


def _lines(puzzle: Puzzle, numbers: tuple[Fraction, ...], size: int) -> Iterator[list[Term]]:
    solution = solve_numbers(numbers, puzzle.target)
    if solution is not None:
        yield moves_of(solution)[:size]
    # The other moves look plausible: positive whole results come first, then results near the target.
    ranked = sorted(legal_moves(numbers), key=lambda move: _appeal(move, puzzle.target))
    for move in ranked:
        line = [move]
        while len(line) < size and len(left := _after(numbers, line)) > 1:
            line.append(min(legal_moves(left), key=lambda move: _appeal(move, puzzle.target)))
        yield line


def _appeal(move: Term, target: Fraction) -> tuple[bool, Fraction]:
    return move.value.denominator != 1 or move.value <= 0, abs(move.value - target)


def _after(numbers: Sequence[Fraction], moves: Sequence[Term]) -> list[Fraction]:
    left = list(numbers)
    for move in moves:
        for number in move.numbers:
            left.remove(number)
        left.append(move.value)
    return sorted(left)


def value(puzzle: Puzzle, path: Sequence[str], thoughts: Sequence[str]) -> dict[str, float]:
    """Return the score of each thought. The keys are the numbers of the thoughts: "1", "2", and so on.

    A thought that reaches the target scores 1, and a dead end scores 0. Any other thought scores higher the fewer moves
    it leaves, so the best score of a search rises with every step.
    """
    before = follow(puzzle, path).moves
    return {
        str(number): _score(puzzle, follow(puzzle, [*path, thought]), before)
        for number, thought in enumerate(thoughts, 1)
    }


def _score(puzzle: Puzzle, position: Position, before: int) -> float:
    if position.fault or position.moves == before or solve_numbers(position.numbers, puzzle.target) is None:
        return 0.0
    return round(0.5 + 0.5 * position.moves / (len(puzzle.numbers) - 1), 4)
