"""Sessions of an outside agent's thoughts: the rules for thoughts, lines and branches, history, export and import.

This package keeps the number, stage, branch and revision of an agent's thoughts consistent. The package `engine` runs
strategies; neither package imports the other.
"""
