"""Exact number puzzles: make a target from numbers, each used once, with + - * / and parentheses.

term        numbers, terms, moves           solutions  solve a puzzle
expression  parse and check expressions     steps      follow the moves of a line of thought
reading     read puzzles in sentences       equations  check written equations
"""
