"""Accept, drive, coach, resume, fork and replay runs. The state of a run is computed by folding its journal.

This package performs effects, enforces budgets and rate limits, and writes and folds journals. The package `guided`
keeps the sessions in which an outside agent records its own thoughts. Neither package imports the other.
"""
