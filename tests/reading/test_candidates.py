"""Thoughts: the lists that are understood, and scores, which are read with their scale or not at all."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.reading.candidates import (
    ScoredThought,
    distinct,
    parse_scored_thoughts,
    parse_scores,
    parse_thoughts,
)
from reasonry.reading.verdicts import read_score


@pytest.mark.parametrize(
    ("text", "thoughts", "mode"),
    [
        ('{"thoughts": [" a ", "", {"content": "b"}, 3]}', ["a", "b", "3"], "json"),
        ('["a", "b"]', ["a", "b"], "json"),
        ('```json\n{"thoughts": ["a"]}\n```', ["a"], "fenced"),
        ('```\n["a", "b"]\n```', ["a", "b"], "fenced"),
        ('I propose {"thoughts": ["a"]}.', ["a"], "embedded"),
        ("{'thoughts': ['a']}", ["a"], "repaired"),
        ("Here you go:\n1. a\n   goes on\n2. b\n\nI hope this helps!", ["a\ngoes on", "b"], "list"),
        ("1. a\n\nand why\n\n2. b", ["a\nand why", "b"], "list"),
        ("1. a\n- with a part\n2. b", ["a\n- with a part", "b"], "list"),
        ("- a\n* b\n• c", ["a", "b", "c"], "list"),
        ("**1. a** first\n### 2. b", ["a first", "b"], "list"),
        ("```\n1. a\n2. b\n```", ["a", "b"], "list"),
        ("1. use {4: 9}\n2. b", ["use {4: 9}", "b"], "list"),
    ],
)
def test_a_list_is_understood_in_each_of_its_forms(text: str, thoughts: list[str], mode: str) -> None:
    assert parse_thoughts(text) == (thoughts, mode)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "Let me think about that.",
        "4 + 9 = 13",
        "1.5 apples",
        '{"thoughts": []}',
        "[" * 9999,
    ],
)
def test_what_is_no_list_gives_no_thoughts(text: str) -> None:
    assert parse_thoughts(text) == ([], "none")


@given(st.text() | st.text(alphabet='12.):-*#` \n"{}[]abc\ud800', max_size=80))
def test_no_text_makes_it_raise_or_gives_empty_thoughts(text: str) -> None:
    thoughts, mode = parse_thoughts(text)
    assert all(thought.strip() for thought in thoughts)
    assert (mode == "none") == (not thoughts)
    json.dumps(thoughts, ensure_ascii=False).encode()


words = st.text(alphabet="abcdefgh ", min_size=1, max_size=12).map(str.strip).filter(bool)


@given(
    st.lists(words, min_size=1, max_size=9),
    st.sampled_from(["{n}. {t}", "{n}) {t}", "{n}: {t}", "- {t}"]),
)
def test_every_way_of_listing_gives_the_same_thoughts(thoughts: list[str], form: str) -> None:
    text = "\n".join(form.format(n=n, t=t) for n, t in enumerate(thoughts, start=1))
    assert parse_thoughts(text) == (thoughts, "list")
    assert parse_thoughts(json.dumps({"thoughts": thoughts})) == (thoughts, "json")


def test_thoughts_that_differ_only_in_case_and_spacing_count_once() -> None:
    proposed = map(ScoredThought, ["4 + 9", "4  +  9", "A b", "a B", "c"])
    assert [each.thought for each in distinct(proposed)] == ["4 + 9", "A b", "c"]


TWO = [("10 - 4 = 6 (left: 6 9 13)", 0.7), ("13 - 9 = 4 (left: 4 4 10)", 0.2)]


def objects(name: str, score: str) -> list[dict[str, Any]]:
    return [{name: text, score: number} for text, number in TWO]


@pytest.mark.parametrize(
    "reply",
    [
        json.dumps({"thoughts": objects("thought", "score")}),
        json.dumps({"thoughts": objects("content", "Rating")}),
        json.dumps(objects("text", "score")),
        json.dumps({"thoughts": [text for text, _ in TWO], "scores": [0.7, 0.2]}),
        json.dumps({"thoughts": [text for text, _ in TWO], "scores": {"1": 0.7, "2": "20%"}}),
        "Here they are:\n```json\n" + json.dumps({"thoughts": objects("step", "score")}) + "\n```",
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
        ("1. walk (score: 0.7)", [("walk (score: 0.7)", None)]),
        ("1. walk: 0.7", [("walk: 0.7", None)]),
        ('{"thoughts": ["walk, score 0.7"]}', [("walk, score 0.7", None)]),
        ('{"thoughts": [{"thought": "walk", "score": 7}]}', [("walk", None)]),
        (
            '{"thoughts": [{"thought": "walk"}, {"thought": "run", "score": 1}]}',
            [("walk", None), ("run", 1.0)],
        ),
        ('{"thought": "4 * 6 = 24", "score": 1}', [("4 * 6 = 24", 1.0)]),
        ('{"thoughts": [{"thought": "6 * 6 = 36", "score": 0}]}', [("6 * 6 = 36", 0.0)]),
        # Each of these numbers may belong to the step.
        ("1. (10 - 4) - 1", [("(10 - 4) - 1", None)]),
        ("1. 10 - 9.5 = 0.5, left (0.5)", [("10 - 9.5 = 0.5, left (0.5)", None)]),
        ("1. 13 - 9 - 0.99", [("13 - 9 - 0.99", None)]),
        ("walk, score 1; run, score 0.5", []),
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
def test_whatever_is_replied_with_scores_nothing_is_raised(data: Any) -> None:
    for thoughts in (parse_scored_thoughts(json.dumps(data))[0], parse_scored_thoughts(str(data))[0]):
        assert all(each.score is None or 0 <= each.score <= 1 for each in thoughts)


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
        "0.7 - promising",
        "0.9 (very)",
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
        ("Thought 1: 0.8\n**2**: 0.3\n3) 0", [0.8, 0.3, 0.0], "list"),
        ("1: 0.7, 2: 0.2, 3: 0.1", [0.7, 0.2, 0.1], "list"),
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
        ("0.1\n0.2\n0.3", {}),
        ("1. 4 + 9 = 13: 0.7\n2. b c (score: 0.3)\n3. c - score 0.1", {}),
        ("1: 0.8, because it holds\n2: 0.3", {"t2": 0.3}),
        ("| candidate | score |\n|---|---|\n| 1 | 0.8 |\n| 2 | 0.3 |", {}),
        ("## 1: first\nScore: 0.8\n## 2: second\nScore: 0.3", {}),
        ("1: 0.8\n2: 0.3\nOn second thought:\n1: 0.2", {}),
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
