"""Concluding: which node comes next, and when there is none, what the answer is and why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...core.effects import Ask, Effect, Verify
from ...core.events import Reply, Verified
from ...core.parse import Unreadable, read_form
from ...core.search import Open, push, take, trim
from ...core.strategy import Move, go, stay
from ...core.tree import Node, path_to, ranked
from . import prompts
from .state import State, noted

Answers = tuple[Any, ...]

_ANSWER_LINE = re.compile(
    r"[ \t>*_#]{0,8}(?:final )?answer[*_]{0,3}\s?[:=][*_]{0,3}[ \t]*(\S.*)", re.IGNORECASE
)


def select(state: State, _: Answers) -> Move:
    """Choose the nodes to expand next; with none left the search ends."""
    if not state.reason:
        state = _next_round(state)
    if state.reason:
        chosen = state.chosen
        text = "Nothing is left to follow." if chosen is None else f"Best: {_named(state, chosen)}"
        return go(state, "continuation_decision", text)
    following = "; ".join(_named(state, state.nodes[one]) for one in state.expanding)
    return go(state, "continuation_decision", f"Follow {following}")


def _next_round(state: State) -> State:
    options = state.options
    born = [state.nodes[child] for parent in state.expanding for child in state.nodes[parent].children]
    fresh = [
        Open(one.id, one.score or 0.0) for one in born if not one.refuted and one.depth < options.max_depth
    ]
    frontier = push(state.frontier, fresh, options.traversal_strategy)
    following, rest = take(trim(frontier, options.beam_width, list(state.nodes)), options.expand_width)
    if not following:
        deep = any(one.depth >= options.max_depth for one in state.nodes.values())
        return replace(state, frontier=(), reason="max_depth" if deep else "exhausted")
    jumps = any(state.nodes[one].parent not in state.expanding for one in following)
    return replace(state, expanding=following, frontier=rest, new_branch=jumps)


def decide(state: State, _: Answers) -> Move:
    """Go deeper, turn to another branch, or conclude."""
    if state.reason:
        return go(state, "solution_formulation", f"Conclude: {state.reason}.")
    if state.new_branch:
        return go(state, "branch_creation", "Turn to another branch.")
    return go(state, "branch_development", "Go deeper.")


def ask_for_answer(state: State) -> Sequence[Effect]:
    """Ask for the answer, where it is wanted; then put it to the verifier, where there is one."""
    chosen = state.chosen
    if state.settled or chosen is None:
        return ()
    path = state.texts(chosen.id)
    if state.answer is None and state.options.formulate_answer:
        return [prompts.formulation(state.options, state.problem, path)]
    if state.options.verify and (state.answer is not None or state.reason != "verified"):
        return [Verify(state.problem, (*path, state.answer or chosen.content), final=True)]
    return ()


class _Anything(Struct):
    answer: Any


def read_answer(state: State, ask: Ask, texts: Sequence[str]) -> tuple[str | None, str] | Unreadable:
    """Read the answer: as JSON, where a bare number or truth value is as good as text, or from a line `Answer: …`."""
    reading = read_form(texts[-1], _Anything)
    if isinstance(reading, Unreadable):
        lines = [match for line in texts[-1].splitlines() if (match := _ANSWER_LINE.match(line))]
        return (lines[-1][1].strip(" *_"), "list") if lines else reading
    answer, mode = reading[0].answer, reading[1]
    if isinstance(answer, bool | int | float):
        answer = msgspec.json.encode(answer).decode()
    if answer is not None and (not isinstance(answer, str) or not answer.strip()):
        return Unreadable("its `answer` is neither text nor null")
    return answer, mode


def take_answer(state: State, answers: Answers) -> Move:
    """Settle the answer: as formulated, as the best thought has it, or that there is none."""
    chosen, said = state.chosen, next(iter(answers), None)
    if isinstance(said, Reply):
        state = replace(noted(state, "formulation", answers), answer=said.value)
        if said.value is None:
            state = replace(state, settled="unsolved")
        elif state.options.verify:
            return stay(state)
    if isinstance(said, Verified) and said.verdict == "wrong":
        state = replace(state, answer=None, settled="refuted")
    if chosen is None:
        state = replace(state, settled="unsolved")
    if not state.settled:
        answer = chosen.content if state.answer is None and chosen is not None else state.answer
        state = replace(state, answer=answer, settled="found")
    text = "There is no answer." if state.answer is None else state.answer
    return go(state, "path_justification", text)


def justify(state: State, _: Answers) -> Move:
    """Say from the scores why this path was the best."""
    return go(state, "final_response", _justification(state))


def _justification(state: State) -> str:
    chosen = state.chosen
    if chosen is None:
        return "No path could be justified: every thought was refuted."
    path = path_to(state.nodes, chosen.id)[1:]
    lines = [f"Branch {state.branch(chosen.id)} was chosen ({state.reason}); its steps and their scores:"]
    lines += [f"{number}. {step.content} ({_score(step)})" for number, step in enumerate(path, start=1)]
    on_path = {step.id for step in path}
    rivals = [one for one in state.nodes.values() if one.parent and one.id not in on_path and not one.refuted]
    rivals = [one for one in ranked(rivals) if one.score is not None]
    if rivals:
        lines.append(f"The best thought beside it: {_named(state, rivals[0])}")
    return "\n".join(lines)


def _named(state: State, one: Node) -> str:
    return f"{state.branch(one.id)} ({_score(one)}): {one.content}"


def _score(one: Node) -> str:
    return "not valued" if one.score is None else f"{one.score:.2f}"
