"""Accept, drive, coach, resume, fork and replay runs. The state of a run is a fold over its journal.

This package performs effects, guards budgets and rates, and writes and folds the journal. The package `guided` keeps
the sessions of an outside agent's own thoughts; neither package imports the other.
"""
