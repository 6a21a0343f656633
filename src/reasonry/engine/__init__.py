"""Runs: accepted, driven, coached, resumed, forked and replayed, over their journals.

Here belongs what a run needs while it runs: performing effects, budgets, rates, the journal and what is folded from it.
Sessions of an outside agent's own thoughts are in `guided`; neither room knows the other.
"""
