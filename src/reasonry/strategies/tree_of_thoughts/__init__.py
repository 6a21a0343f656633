"""Tree of thoughts: several candidates at every step, each valued, the promising ones followed.

Yao et al. 2023, "Tree of Thoughts: Deliberate Problem Solving with Large Language Models", arXiv:2305.10601; the stages
are those of seed 000, the options, statuses and reasons to end those of seed 004.

    The paper's algorithm                           the stage that does it
    S0 = {x}                                        problem_reception
    S't = {[s, z] | s in St-1, z in G(p, s, k)}     approach_exploration (first step), branch_development (later ones)
    Vt = V(p, S't)                                  branch_evaluation
    St = arg max over S in S't of sum of Vt(s)      branch_selection
    t = t + 1, or return                            continuation_decision
    G(p, arg max of VT(s), 1)                       solution_formulation

In its symbols k is `branching_factor`, b is `beam_width` (with `expand_width` the same), T is `max_depth`; the set-up
for the game of 24 is `bfs` with b = 5.

Differs from the paper. One question values all children of a node together, relative to one another, rather than each
alone. Nodes may be expanded best first, over all levels, as seed 004 does. A search also ends on a score, on
convergence, on a count of nodes or on time; after each round these are looked at in the order max_nodes, max_duration,
threshold, converged, max_depth. A verifier, where there is one, sees every thought before it is valued: what it refutes
is pruned, what it proves ends the search at any depth. The answer is formulated from the best path, and may be that
there is none.
"""

from __future__ import annotations

from ...core.proposal import parse_thoughts
from ...core.score import parse_scores
from ...core.tree import Node, best_leaf, children, leaves, node, path_to
from .options import Options
from .prompts import EVALUATION_PROMPT, FORMULATION_PROMPT, GENERATION_PROMPT
from .state import State
from .table import TREE_OF_THOUGHTS
from .views import outcome, progress, status_of

__all__ = [
    "EVALUATION_PROMPT",
    "FORMULATION_PROMPT",
    "GENERATION_PROMPT",
    "TREE_OF_THOUGHTS",
    "Node",
    "Options",
    "State",
    "best_leaf",
    "children",
    "leaves",
    "node",
    "outcome",
    "parse_scores",
    "parse_thoughts",
    "path_to",
    "progress",
    "status_of",
]
