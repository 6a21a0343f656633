"""Number puzzles, exactly: make a target from some numbers, each used once, with + - * / and parentheses.

term        numbers, terms, moves         solutions  whether and how the target can be made
expression  expressions as text, checked  steps      the moves of a line of thought, followed
reading     puzzles in sentences          equations  written equations, checked
"""
