"""Number puzzles, exactly: make a target from some numbers, each used once, with + - * / and parentheses.

term        numbers, terms, moves         solutions  whether and how the target can be made
expression  expressions as text, checked  steps      the moves of a line of thought, followed
reading     puzzles in sentences          equations  written equations, checked
"""

from __future__ import annotations

from .equations import false_equations as false_equations
from .expression import check as check, judge_sides as judge_sides, read_expression as read_expression
from .reading import read_numbers as read_numbers, read_puzzle as read_puzzle
from .solutions import solve as solve, solve_numbers as solve_numbers
from .steps import (
    Position as Position,
    expressions as expressions,
    final_expression as final_expression,
    follow as follow,
    read_moves as read_moves,
)
from .term import (
    MAX_NUMBERS as MAX_NUMBERS,
    MIN_NUMBERS as MIN_NUMBERS,
    Puzzle as Puzzle,
    PuzzleMove as PuzzleMove,
    Term as Term,
    format_number as format_number,
    legal_moves as legal_moves,
    moves_of as moves_of,
)
