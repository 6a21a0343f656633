"""Answers that a text ends in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.core.answering import stated_answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("There are 5 balls. The answer is 5.", "5"),
        ("5 + 6 = 11, so the answer is 11.", "11"),
        ("Therefore, the final answer is: 3.14", "3.14"),
        ("Added up.\n**Final answer:** 42", "42"),
        ("Answer: $1,000.50.", "$1,000.50"),
        ("**The answer is (b).**", "(b)"),
        ("So the answer is no", "no"),
    ],
)
def test_a_text_that_ends_with_its_answer_states_it(text: str, answer: str) -> None:
    assert stated_answer(text) == answer


@pytest.mark.parametrize(
    "text",
    [
        "First I note that the answer is not yet known, and the answer is what step 2 must find.",
        "The answer is not yet known.",
        "So the answer is still open.",
        "The answer is to be found by adding.",
        "I wonder whether the answer is 5",
        "The answer is 5. But that forgets the cans.",
        "The answer is 5.\nLet me check that.",
        "The answer: we add.\n\nFive and six.",
        "",
    ],
)
def test_a_text_that_only_mentions_its_answer_states_none(text: str) -> None:
    assert stated_answer(text) is None


prose = st.sampled_from(
    [
        "The answer is not known yet.",
        "Is the answer 7?",
        "2 + 3 = 5.",
        "The answer is 12, I guess.",
        "So",
        "\n",
    ]
)


@given(st.lists(prose, max_size=5), st.integers(), st.sampled_from(["", "."]))
def test_only_the_last_sentence_counts(before: list[str], answer: int, stop: str) -> None:
    text = " ".join(before)
    assert stated_answer(f"{text}\nThe answer is {answer}{stop}") == str(answer)
    assert stated_answer(f"{text} The answer is {answer}. That leaves step 2.") is None


@given(st.text())
def test_any_text_states_an_answer_or_none(text: str) -> None:
    assert stated_answer(text) is None or stated_answer(text) in text
