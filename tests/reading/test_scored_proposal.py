"""Thoughts proposed with their scores, as they are written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.reading.scored_proposal import parse_scored_thoughts

TWO = [("10 - 4 = 6 (left: 6 9 13)", 0.7), ("13 - 9 = 4 (left: 4 4 10)", 0.2)]


def objects(name: str, score: str) -> list[dict[str, Any]]:
    return [{name: text, score: number} for text, number in TWO]


@pytest.mark.parametrize(
    "reply",
    [
        json.dumps({"thoughts": objects("thought", "score")}),
        json.dumps({"candidates": objects("content", "Score")}),
        json.dumps(objects("text", "value")),
        json.dumps([list(pair) for pair in TWO]),
        json.dumps({"thoughts": [text for text, _ in TWO], "scores": [0.7, 0.2]}),
        json.dumps({"thoughts": [text for text, _ in TWO], "scores": {"1": 0.7, "2": "20%"}}),
        "Here they are:\n```json\n" + json.dumps({"thoughts": objects("step", "score")}) + "\n```",
        "\n".join(f"{number}. {text} (score: {score})" for number, (text, score) in enumerate(TWO, 1)),
        "\n".join(f"- {text} - score {score}" for text, score in TWO),
        json.dumps({"thoughts": [f"{text}, score {score}" for text, score in TWO]}),
    ],
)  # fmt: skip
def test_thoughts_are_read_with_their_scores(reply: str) -> None:
    thoughts, mode = parse_scored_thoughts(reply)
    assert [(each.thought, each.score) for each in thoughts] == TWO
    assert mode != "none"


@pytest.mark.parametrize(
    ("reply", "thoughts"),
    [
        ('{"thoughts": ["13 - 9 = 4 (left: 4 0.5)"]}', [("13 - 9 = 4 (left: 4 0.5)", None)]),
        ("1. 6 * 4 = 24 (left: 24)", [("6 * 4 = 24 (left: 24)", None)]),
        ('{"thoughts": [{"thought": "walk", "score": 7}]}', [("walk", None)]),
        (
            '{"thoughts": [{"thought": "walk"}, {"thought": "run", "score": 1}]}',
            [("walk", None), ("run", 1.0)],
        ),
        ("nothing here", []),
        ("", []),
    ],
)
def test_no_number_that_is_not_called_a_score_becomes_one(
    reply: str, thoughts: list[tuple[str, float | None]]
) -> None:
    assert [(each.thought, each.score) for each in parse_scored_thoughts(reply)[0]] == thoughts


KEYS = st.sampled_from(["thoughts", "score", "scores", "thought", "x"])
SCALARS = st.none() | st.booleans() | st.floats() | st.text()


@given(st.recursive(SCALARS, lambda part: st.lists(part) | st.dictionaries(KEYS, part)))
def test_whatever_is_replied_nothing_is_raised(data: Any) -> None:
    for thoughts in (parse_scored_thoughts(json.dumps(data))[0], parse_scored_thoughts(str(data))[0]):
        assert all(each.score is None or 0 <= each.score <= 1 for each in thoughts)


@pytest.mark.parametrize(
    ("reply", "thoughts"),
    [
        ("1. 3 - 8/3 = 1/3 (left: 8 1/3) - 0.99", [("3 - 8/3 = 1/3 (left: 8 1/3)", 0.99)]),
        ("1. 8 / 2 = 4 (left: 4 6): 0.98", [("8 / 2 = 4 (left: 4 6)", 0.98)]),
        ("1. 4 * 6 = 24 (0.98)", [("4 * 6 = 24", 0.98)]),
        ("1. 8 - 2 = 6 (left: 4 6) – score 0.98", [("8 - 2 = 6 (left: 4 6)", 0.98)]),
        ('{"thoughts": [{"thought": "4 * 6 = 24 (left: 24) - 1"}]}', [("4 * 6 = 24 (left: 24)", 1.0)]),
        ('{"thought": "4 * 6 = 24", "score": 1}', [("4 * 6 = 24", 1.0)]),
        ("(10-4)*(13-9) = 24. Score 1", [("(10-4)*(13-9) = 24.", 1.0)]),
        # Each of these numbers may belong to the step.
        ("1. (10 - 4) - 1", [("(10 - 4) - 1", None)]),
        ("1. 10 - 9.5 = 0.5, left: 0.5", [("10 - 9.5 = 0.5, left: 0.5", None)]),
        ("1. 10 - 9.5 = 0.5, left (0.5)", [("10 - 9.5 = 0.5, left (0.5)", None)]),
        ("1. 13 - 9 - 0.99", [("13 - 9 - 0.99", None)]),
        ("walk, score 1; run, score 0.5", []),
        ("I cannot say.", []),
    ],
)
def test_a_score_is_read_where_it_can_be_nothing_else(
    reply: str, thoughts: list[tuple[str, float | None]]
) -> None:
    assert [(each.thought, each.score) for each in parse_scored_thoughts(reply)[0]] == thoughts
