"""Proposing: the root, and the children of each node that is expanded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ...core.effects import Ask, Effect
from ...core.events import Failed
from ...core.parse import Unreadable
from ...core.proposal import distinct, parse_thoughts
from ...core.strategy import Move, Thought, fail, go
from ...core.tree import Node
from . import prompts
from .options import Options
from .state import ROOT, State, noted

Answers = tuple[Any, ...]


def begin(problem: str, options: Options) -> State:
    """Plant the root."""
    return State(options=options, nodes={ROOT: Node(ROOT, problem)})


def receive(state: State, _: Answers) -> Move:
    """Take the problem in as it is."""
    return go(state, "approach_exploration")


def ask_for_thoughts(state: State) -> Sequence[Effect]:
    """Ask for the children of every node of this round, unless they are there already."""
    if state.fresh:
        return ()
    options, nodes = state.options, state.nodes
    return [
        prompts.generation(options, state.problem, state.texts(one), nodes[one].depth)
        for one in state.expanding
    ]


def read_thoughts(state: State, _: Ask, texts: Sequence[str]) -> tuple[list[str], str] | Unreadable:
    """Read what was proposed; more than was asked for is left out, what is said twice counts once."""
    thoughts, mode = parse_thoughts(texts[-1])
    if not thoughts:
        return Unreadable("no thoughts could be read from it")
    return distinct(thoughts)[: state.options.branching_factor], mode


def take_approaches(state: State, answers: Answers) -> Move:
    """Take in the first thoughts."""
    return _take_thoughts(state, answers, "branch_creation")


def open_branch(state: State, _: Answers) -> Move:
    """Set out on the branches of this round."""
    return go(state, "branch_development")


def take_steps(state: State, answers: Answers) -> Move:
    """Take in the next thoughts, if any were asked for."""
    return _take_thoughts(state, answers, "branch_evaluation") if answers else go(state, "branch_evaluation")


def _take_thoughts(state: State, answers: Answers, to: str) -> Move:
    state = noted(state, "generation", answers)
    failed = next((answer for answer in answers if isinstance(answer, Failed)), None)
    if failed is not None:
        if failed.code == "output_invalid":
            state = replace(state, errors=(*state.errors, "thoughts_parse_failed"))
        return fail(state, "error", failed.message, failed.code)
    fresh: list[Node] = []
    thoughts: list[Thought] = []
    for parent, answer in zip(state.expanding, answers, strict=True):
        leaves = state.branch(parent)
        for place, text in enumerate(answer.value, start=1):
            number = len(state.nodes) + len(fresh) + 1
            fresh.append(Node(f"node_{number}", text, parent, state.nodes[parent].depth + 1))
            branch = f"{leaves}.{place}" if leaves else f"{place}"
            thoughts.append(Thought(text, branch=branch, leaves=leaves, data={"node_id": fresh[-1].id}))
    return go(replace(state, fresh=tuple(fresh), checked=False), to, *thoughts)
