"""Tree of thoughts: several candidates at every step, each valued, the promising ones followed.

Yao et al. 2023, "Tree of Thoughts: Deliberate Problem Solving with Large Language Models", arXiv:2305.10601.
"""

from __future__ import annotations

from .table import TREE_OF_THOUGHTS

__all__ = ["TREE_OF_THOUGHTS"]
