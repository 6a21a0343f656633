"""Number puzzles, exactly: make a target from some numbers, each used once, with + - * / and parentheses.

term        numbers, terms, moves         solutions  whether and how the target can be made
expression  expressions as text, checked  steps      the moves of a line of thought, followed
reading     puzzles in sentences
"""

from __future__ import annotations

from .expression import check, checked, evaluate, read_expression
from .reading import read_numbers, read_puzzle
from .solutions import solve, solve_numbers
from .steps import Position, close, closed, expressions, follow, read_moves
from .term import MAX_NUMBERS, MIN_NUMBERS, Puzzle, PuzzleMove, Term, joined, legal_moves, moves_of, shown

__all__ = [
    "MAX_NUMBERS",
    "MIN_NUMBERS",
    "Position",
    "Puzzle",
    "PuzzleMove",
    "Term",
    "check",
    "checked",
    "close",
    "closed",
    "evaluate",
    "expressions",
    "follow",
    "joined",
    "legal_moves",
    "moves_of",
    "read_expression",
    "read_moves",
    "read_numbers",
    "read_puzzle",
    "shown",
    "solve",
    "solve_numbers",
]
