"""Linear thinking: one thought after the other, each looked at, with room to revise, branch and test a guess.

Seed 000, "Base Sequential"; the guided form is that of the sequential-thinking tool.

Algorithm, for a problem x, with thoughts t_1, t_2, … numbered as the session numbers them:

    the approach, and how many thoughts it may take        asked               initial_thought_planning
    t_n ~ p(t | x, t_1, …, t_{n-1})                        asked               thought_generation
    does t_n hold? if not, which t_k is to be replaced     asked               thought_evaluation
    t_n replaces t_k                                       asked               thought_revision
    think on, branch, or conclude                          unless it came      continuation_decision
                                                           with the evaluation
    how many thoughts are expected now                     written down        thought_adjustment
    the thoughts that follow leave t_k                     written down        branch_creation
    h ~ p(h | x, t_1, …, t_n)                              asked               hypothesis_generation
    does h agree with all t_i and with x?                  asked               hypothesis_verification
    y ~ p(y | x, t_1, …, t_n, h)                           asked               solution_finalization

*Differs from the seed*: it names the stages and leaves the thinking to a caller; here a model is asked at each. With
the thoughts used up the run goes on to a hypothesis, and with the hypotheses used up to a solution.
"""

from __future__ import annotations

from .table import LINEAR

__all__ = ["LINEAR"]
