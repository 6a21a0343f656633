"""Accept, drive, coach, resume, fork and replay runs over their journals.

This package performs effects, guards budgets and rates, writes the journal and folds it. Sessions of an outside agent's
own thoughts are in `guided`; neither package imports the other.
"""
