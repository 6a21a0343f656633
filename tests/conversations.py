"""Conversations with the thinking tool whose replies are counted, and what they may cost.

Tokens are counted as characters / 4 of the text content of all replies; a thought has 350 characters.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

Arguments = dict[str, Any]

THOUGHT = ("A thought of three hundred and fifty characters, as an agent writes them. " * 5)[:350]

_A, _B = {"branchId": "A"}, {"branchId": "B"}
_TREE: list[tuple[str, Arguments]] = [
    ("problem_reception", {"strategy": "tree_of_thoughts"}),
    ("approach_exploration", {"data": {"approaches": ["A", "B", "C"]}}),
    ("branch_creation", {**_A, "branchFromThought": 2}),
    ("branch_development", _A),
    ("branch_evaluation", {**_A, "data": {"score": 0.7}}),
    ("branch_selection", {**_A, "data": {"selected": "A"}}),
    ("continuation_decision", _A),
    ("branch_creation", {**_B, "branchFromThought": 2}),
    ("branch_development", _B),
    ("branch_evaluation", {**_B, "data": {"score": 0.4}}),
    ("branch_selection", {**_B, "data": {"selected": "A"}}),
    ("continuation_decision", _B),
    ("branch_development", _A),
    ("branch_evaluation", {**_A, "data": {"score": 0.9}}),
    ("branch_selection", {**_A, "data": {"selected": "A"}}),
    ("continuation_decision", _A),
    ("solution_formulation", _A),
    ("path_justification", _A),
    ("final_response", _A),
]
"""Seed 000's second example, the branch id on every thought of a branch."""


class Conversation(NamedTuple):
    """The calls of one session, and how many tokens its replies may have."""

    name: str
    calls: list[Arguments]
    target: int


def _numbered(extras: Iterable[Arguments], total: int) -> list[Arguments]:
    return [
        {
            "thought": f"{number}. {THOUGHT}"[:350],
            "thoughtNumber": number,
            "totalThoughts": total,
            "nextThoughtNeeded": number < total,
            **extra,
        }
        for number, extra in enumerate(extras, 1)
    ]


CONVERSATIONS = [
    Conversation("20 thoughts without a stage", _numbered([{}] * 20, 20), 900),
    Conversation(
        "tree of thoughts, 19 calls",
        _numbered(({"stage": stage, **more} for stage, more in _TREE), 19),
        1_800,
    ),
]


def tokens(replies: Iterable[str]) -> float:
    """Return what the texts of replies cost."""
    return sum(map(len, replies)) / 4


def reference_replies(calls: Iterable[Arguments]) -> Iterator[str]:
    """Yield the texts that the reference server replies with."""
    branches: list[str] = []
    for length, call in enumerate(calls, 1):
        if "branchFromThought" in call and "branchId" in call and call["branchId"] not in branches:
            branches.append(call["branchId"])
        reply = {name: call[name] for name in ("thoughtNumber", "totalThoughts", "nextThoughtNeeded")}
        yield json.dumps({**reply, "branches": branches, "thoughtHistoryLength": length}, indent=2)
