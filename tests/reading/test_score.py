"""Scores: read with their scale, or not at all."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.reading.score import parse_scores, read_score

THREE = ["4 + 9 = 13", "b c", "c"]


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (0, 0.0),
        (0.0, 0.0),
        (1, 1.0),
        (0.7, 0.7),
        ("0", 0.0),
        ("0.7", 0.7),
        (".5", 0.5),
        ("90%", 0.9),
        ("90 %", 0.9),
        ("0.7/1.0", 0.7),
        ("7/10", 0.7),
        ("85/100", 0.85),
        ("7 out of 10", 0.7),
        ("**0.7**", 0.7),
        ("0.7 - promising", 0.7),
        ("0.9 (very)", 0.9),
        ({"score": 0.4, "reason": "so so"}, 0.4),
    ],
)
def test_a_score_is_read_with_its_scale(value: Any, score: float) -> None:
    assert read_score(value) == pytest.approx(score)


@pytest.mark.parametrize(
    "value",
    [
        85,
        "85",
        1.5,
        -0.5,
        "-0.5",
        "110%",
        "3/2",
        "1/0",
        "0,7",
        "1 step is left",
        "2 of them",
        "high",
        "",
        None,
        True,
        False,
        "nan",
        "inf",
        float("nan"),
        float("inf"),
        10**400,
        [0.5],
        {},
    ],
)
def test_what_has_no_known_scale_is_refused_and_never_cut_down(value: Any) -> None:
    assert read_score(value) is None


@pytest.mark.parametrize(
    ("text", "scores", "mode"),
    [
        ('{"scores": {"1": 0.7, "2": 0, "3": "90%"}}', [0.7, 0.0, 0.9], "json"),
        ('{"scores": {"t1": 0.7, "Thought 2": 0.1, "C": 0.5}}', [0.7, 0.1, 0.5], "json"),
        ('{"scores": {"4 + 9 = 13": 0.7, "b c": 0.1, "c": 0.5}}', [0.7, 0.1, 0.5], "json"),
        ('{"1": 0.1, "2": 0.2, "3": 0.3}', [0.1, 0.2, 0.3], "json"),
        ('{"scores": [0.1, 0.2, 0.3]}', [0.1, 0.2, 0.3], "json"),
        (
            '{"scores": [{"id": "t2", "score": 0.2}, {"id": 1, "score": 0.1}, {"id": "t3", "score": 1}]}',
            [0.1, 0.2, 1.0],
            "json",
        ),
        ('```json\n{"scores": {"1": 0.1, "2": 0.2, "3": 0.3}}\n```', [0.1, 0.2, 0.3], "fenced"),
        ('I say {"scores": {"1": 0.1, "2": 0.2, "3": 0.3}}.', [0.1, 0.2, 0.3], "embedded"),
        ("1: 0.7\n2: 0.7/1.0\n3: 90%", [0.7, 0.7, 0.9], "list"),
        ("1. 4 + 9 = 13: 0.7\n2. b c (score: 0.3)\n3. c - score 0.1", [0.7, 0.3, 0.1], "list"),
        ("Thought 1: 0.8 - because\n**2**: 0.3\n3) 0", [0.8, 0.3, 0.0], "list"),
        ("0.1\n0.2\n0.3", [0.1, 0.2, 0.3], "list"),
    ],
)
def test_scores_are_understood_in_each_of_their_forms(text: str, scores: list[float], mode: str) -> None:
    found, read = parse_scores(text, THREE)
    assert [found[f"t{n}"] for n in (1, 2, 3)] == pytest.approx(scores)
    assert read == mode


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        ('{"scores": {"1": null, "2": true, "3": 85}}', {}),
        ('{"scores": {"1": 0, "2": 85, "3": "90%"}}', {"t1": 0.0, "t3": 0.9}),
        ("1: 85\n2: 0.4", {"t2": 0.4}),
        ("They are all fine.", {}),
        ("1.0\n2.0", {}),
        ("", {}),
    ],
)
def test_what_cannot_be_read_is_left_out_rather_than_guessed(text: str, readable: dict[str, float]) -> None:
    assert parse_scores(text, THREE)[0] == readable


def test_thoughts_may_bring_their_own_ids() -> None:
    thoughts = [{"id": "node_7", "content": "a"}, {"id": "node_8", "content": "b"}]
    assert parse_scores('{"scores": {"node_8": 0.1, "a": 0.9}}', thoughts) == (
        {"node_7": 0.9, "node_8": 0.1},
        "json",
    )


def test_an_id_counts_before_a_position_and_a_position_before_a_text() -> None:
    assert parse_scores('{"1": 0.1, "2": 0.2}', ["2", "1"])[0] == {"t1": 0.1, "t2": 0.2}
    assert parse_scores('{"t1": 0.9, "1": 0.1}', ["a"])[0] == {"t1": 0.9}


@given(st.text() | st.text(alphabet='0123456789.:%/-scoreut \n"{}[]\ud800', max_size=80))
def test_no_text_makes_it_raise_and_every_score_is_from_0_to_1(text: str) -> None:
    scores, mode = parse_scores(text, THREE)
    assert all(0 <= score <= 1 for score in scores.values())
    assert set(scores) <= {"t1", "t2", "t3"}
    assert (mode == "none") == (not scores)


@given(st.lists(st.floats(0, 1).map(lambda x: round(x, 3)), min_size=1, max_size=8))
def test_scores_by_position_come_back_as_given(scores: list[float]) -> None:
    thoughts = [f"thought number {n}" for n in range(len(scores))]
    text = json.dumps({"scores": {str(n): score for n, score in enumerate(scores, start=1)}})
    assert list(parse_scores(text, thoughts)[0].values()) == scores


@pytest.mark.parametrize(
    "text",
    [
        "0.7" + " " * 200_000 + "x",
        "1: score" + " " * 200_000 + "x",
        "- " * 200_000,
        "{} " * 100_000,
        "score " * 200_000,
    ],
)
def test_hostile_text_takes_bounded_time(text: str) -> None:
    begun = time.process_time()
    parse_scores(text, ["a", "b"])
    assert time.process_time() - begun < 10


@pytest.mark.parametrize(
    "text",
    [
        "1: 0.95, 2: 0.95, 3: 0.02",
        "So scores: 1: 0.95, 2: 95%, 3: 0.02.",
        "The first two solve it.\nScores: Candidate 1 = 0.95; candidate 2 = 0.95; and candidate 3 = 0.02",
    ],
)
def test_scores_side_by_side_are_read(text: str) -> None:
    scores, mode = parse_scores(text, ["a", "b", "c"])
    assert (list(scores.values()), mode) == ([0.95, 0.95, 0.02], "list")


@pytest.mark.parametrize("text", ["1: 0.9, 2: 0.5\n1: 0.1, 2: 0.5", "1: 0.9, 1: 0.5", "0: 0.9, 1: 0.5"])
def test_two_lines_of_scores_that_differ_are_none(text: str) -> None:
    assert len(parse_scores(text, ["a", "b"])[0]) < 2
