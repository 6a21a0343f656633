"""Proposals: the lists of thoughts that are understood."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.reading.proposal import distinct, parse_thoughts


@pytest.mark.parametrize(
    ("text", "thoughts", "mode"),
    [
        ('{"thoughts": [" a ", "", {"content": "b"}, 3]}', ["a", "b", "3"], "json"),
        ('["a", "b"]', ["a", "b"], "json"),
        ('```json\n{"thoughts": ["a"]}\n```', ["a"], "fenced"),
        ('```\n["a", "b"]\n```', ["a", "b"], "fenced"),
        ('I propose {"thoughts": ["a"]}.', ["a"], "embedded"),
        ("{'thoughts': ['a']}", ["a"], "repaired"),
        ("1. a\n2. b", ["a", "b"], "list"),
        ("1) a\n2) b", ["a", "b"], "list"),
        ("1: a\n2: b", ["a", "b"], "list"),
        ("Step 1: a\nStep 2: b", ["a", "b"], "list"),
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
    st.sampled_from(["{n}. {t}", "{n}) {t}", "{n}: {t}", "Step {n}: {t}", "- {t}"]),
)
def test_every_way_of_listing_gives_the_same_thoughts(thoughts: list[str], form: str) -> None:
    text = "\n".join(form.format(n=n, t=t) for n, t in enumerate(thoughts, start=1))
    assert parse_thoughts(text) == (thoughts, "list")
    assert parse_thoughts(json.dumps({"thoughts": thoughts})) == (thoughts, "json")


def test_thoughts_that_differ_only_in_case_and_spacing_count_once() -> None:
    assert distinct(["4 + 9", "4  +  9", "A b", "a B", "c"]) == ["4 + 9", "A b", "c"]
