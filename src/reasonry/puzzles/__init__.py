"""Exact number puzzles: make a target from numbers, each used once, with + - * / and parentheses.

term        numbers, terms, moves           solutions  solve a puzzle
expression  parse and check expressions     steps      follow the written steps of a solution
reading     read puzzles in sentences       equations  check written equations
"""
