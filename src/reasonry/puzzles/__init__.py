"""Number puzzles, exactly: make a target from some numbers, each used once, with + - * / and parentheses.

term        numbers, terms, moves         solutions  whether and how the target can be made
expression  expressions as text, checked  steps      the moves of a line of thought, followed
reading     puzzles in sentences          equations  written equations, checked
"""

from __future__ import annotations

from .equations import false_equations
from .expression import judge_sides, read_expression
from .reading import read_numbers, read_puzzle
from .solutions import solve, solve_numbers
from .steps import Position, expressions, final_expression, follow
from .term import MAX_NUMBERS, MIN_NUMBERS, Puzzle, PuzzleMove, Term, format_number, legal_moves, moves_of

__all__ = [
    "MAX_NUMBERS",
    "MIN_NUMBERS",
    "Position",
    "Puzzle",
    "PuzzleMove",
    "Term",
    "expressions",
    "false_equations",
    "final_expression",
    "follow",
    "format_number",
    "judge_sides",
    "legal_moves",
    "moves_of",
    "read_expression",
    "read_numbers",
    "read_puzzle",
    "solve",
    "solve_numbers",
]
