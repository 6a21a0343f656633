"""Thoughts asked for with their scores: each needs one, and what is wrong is said with the form wanted."""

from typing import Any

import pytest

from reasonry.core.events import Answered
from reasonry.core.readings import Unreadable
from reasonry.strategies.tree_of_thoughts.asks import read_thoughts

from ..searching import World, search
from ..walking import Walked

UNSCORED = "1. 3 - 8/3 = 1/3 (left: 8)\n2. 8 - 3 = 5 (left: 5)"
SCORED = (
    '{"thoughts": [{"thought": "3 - 8/3 = 1/3 (left: 8)", "score": 0.4}, '
    '{"thought": "8 - 3 = 5 (left: 5)", "score": 0.3}]}'
)
OPTIONS = {"max_depth": 1, "score_with_proposals": True, "branching_factor": 2}


def propose(*texts: str) -> Walked:
    """Search with these replies to the first question, the last of them again and again."""
    said = [*texts]

    def say(kind: str, facts: dict[str, Any]) -> Any:
        return Answered(said.pop(0) if len(said) > 1 else said[0]) if kind == "propose" else None

    return search(World(say=say), **OPTIONS)


def refusal(text: str, *, scored: bool = True) -> str:
    """Return why a reply is refused."""
    searched = search(**OPTIONS | {"score_with_proposals": scored})
    read = read_thoughts(searched.snapshot.state, searched.asks[0], [text])
    assert isinstance(read, Unreadable)
    return read.reason


def test_thoughts_without_scores_are_asked_for_again() -> None:
    walked = propose(UNSCORED, SCORED)
    asks = [ask for ask in walked.asks if ask.facts["kind"] != "answer"]
    assert [ask.facts["kind"] for ask in asks] == ["propose", "propose"]
    assert "Give each candidate a score from 0 to 1" in asks[1].text
    found = walked.conclusion.document["candidates"]
    assert [(one["content"], one["score"]) for one in found] == [
        ("3 - 8/3 = 1/3 (left: 8)", 0.4),
        ("8 - 3 = 5 (left: 5)", 0.3),
    ]


def test_thoughts_that_stay_without_scores_are_worth_one_half_and_said_to_be() -> None:
    walked = propose(UNSCORED)
    assert "value" not in [ask.facts["kind"] for ask in walked.asks]
    assert [one["score"] for one in walked.conclusion.document["candidates"]] == [0.5, 0.5]
    shown = walked.conclusion.document["diagnostics"]
    assert shown["unscored"] == ["node_2", "node_3"]
    assert "scores_parse_failed" in shown["parser_errors"]


@pytest.mark.parametrize("scored", [True, False])
def test_what_is_no_list_of_thoughts_is_told_the_form_in_one_line(scored: bool) -> None:
    reason = refusal("I cannot say.", scored=scored)
    assert 'send {"thoughts": [' in reason
    assert ('"score"' in reason) is scored
    assert "\n" not in reason
