"""Every path of every strategy, to a depth."""

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from reasonry.compare.explore import explore
from reasonry.core.effects import Ask, CallTool
from reasonry.core.pending import Pending
from reasonry.core.strategy import Strategy

from .filling import fill
from .test_every_strategy import DRIVEN, MORE_TO_DO, RETURNS

SEARCH = {"name": "search", "description": "Finds things.", "parameters": {"type": "object"}}
PYTHON = {"name": "py_executor"}
ANALYSED = {"tools": [SEARCH], "complexity_analysis": False, "focused_answer_type": "yes/no"}

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "chain_of_thought": [{"decompose": True, "check": True, "verify": True}],
    "react": [{"tools": [SEARCH], "max_steps": 3, "verify": True}],
    "rewoo": [{"tools": [SEARCH], "verify": True}],
    "self_ask": [{"tools": [SEARCH], "verify": True}, {"max_questions": 2}],
    "self_consistency": [{"samples": 3, "verify": True}],
    "step_back": [{"check": True, "verify": True}],
    "tree_of_thoughts": [{"branching_factor": 2, "max_depth": 2, "max_nodes": 9, "verify": True}],
    "analysis": [
        {"candidate_plans": 1, "max_iterations": 2},
        {"candidate_plans": 2, "max_iterations": 1},
        ANALYSED | {"candidate_plans": 2, "max_iterations": 1},
        ANALYSED | {"candidate_plans": 1, "max_iterations": 2, "execution_retry_limit": 0},
        {"candidate_plans": 1, "max_iterations": 1, "complexity_analysis": False, "verify": True},
    ],
    "best_of_n": [
        {"over": "direct", "n": 2, "tools": [PYTHON], "verify": True},
        {"over": "direct", "n": 2},
    ],
    "council": [
        {"over": "direct", "seats": 2, "verify": True},
        {"over": "direct", "seats": 2, "synthesis": False},
    ],
    "cascade": [{"models": ["a", "b"], "verify": True}],
    "program_of_thought": [{"tools": [PYTHON], "verify": True}],
    "prove_and_refute": [{"solvers": 1, "revisions": 1, "verify": True}, {}],
}
"""Options that lead everywhere, and keep the paths few."""

REPLIES: dict[str, dict[str, list[Any]]] = {
    **{name: {stage: [reply] for stage, reply in more.items()} for name, more in MORE_TO_DO.items()},
    "linear": {
        "thought_evaluation": [
            {"reason": "It is wrong.", "sound": False},
            {"sound": True, "next": "branch_creation", "branchFromThought": 1},
        ],
    },
    "tree_of_thoughts": {},
    "analysis": {
        "plan_generation": [
            {"tasks": [{"resource_name": name, "task_query": "What is it?"} for name in names]}
            for names in (("knowledge", "search"), ("search", "knowledge"))
        ],
        "plan_evaluation": [{"evaluations": [{"plan": name, "overall_score": ord(name)} for name in "AB"]}],
        "query_conversion": [{"tool_input": {"query": "it"}}],
        "iteration_decision": [{"continue_iterations": True, "decision_rationale": "A side is missing."}],
        "focused_answer": [{"reason": "It is so.", "value": "Yes"}],
    },
}
"""Replies that lead to further edges; for any other strategy, replies are made up from the form."""
DEPTH = 1


def outcomes_of(strategy: Strategy[Any, Any], asked: Pending) -> Sequence[Any]:
    """Return replies to a question, or results of a tool."""
    if isinstance(asked.effect, CallTool):
        return RETURNS.get(strategy.name, {}).get(asked.effect.tool, ())
    if not isinstance(asked.effect, Ask):
        return ()
    known = REPLIES.get(strategy.name, {}).get(asked.stage, [])
    at = asked.effect.sample % max(1, len(known))
    stage = strategy.by_name.get(asked.stage)
    is_made_up = asked.effect.form and strategy.name not in ("linear", "tree_of_thoughts", "analysis")
    made_up = [fill(asked.effect.form or {}, random.Random(seed)) for seed in range(2)] if is_made_up else []
    if strategy.name == "analysis":
        return [*known[at:], *known[:at]]
    return [stage and stage.example, *known, *made_up]


@pytest.mark.parametrize("strategy", DRIVEN, ids=[one.name for one in DRIVEN])
def test_every_path_keeps_the_laws_and_every_edge_is_taken(strategy: Strategy[Any, Any]) -> None:
    untaken, outcomes = {*strategy.edges}, partial(outcomes_of, strategy)
    for options in OPTIONS.get(strategy.name, [{"verify": True}]):
        found = explore(strategy, DEPTH, options, outcomes)
        assert not found.faults, found.faults[0]
        untaken &= {*found.untaken}
    assert not untaken
