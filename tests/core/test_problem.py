"""Problems, and earlier thoughts quoted below them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.core.problem import (
    HEADING,
    INSTRUCTIONS,
    MARK,
    MAX_QUOTED_CHARS,
    QuotedThought,
    check_problem,
    quoted_thoughts,
    with_quoted,
    without_quoted,
)
from reasonry.errors import TooLargeError

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=200) | st.sampled_from(
    [f"\n\n{HEADING}\n> x", HEADING, f"\n\n{INSTRUCTIONS}\n> x", "> x", "a\r\nb", "a\x85b\u2028c", "\n", ""]
)


@given(texts, texts, texts)
def test_what_stands_below_can_be_taken_off_whatever_it_says(
    problem: str, instructions: str, earlier: str
) -> None:
    if problem == without_quoted(problem):
        assert (
            without_quoted(with_quoted(with_quoted(problem, instructions, INSTRUCTIONS), earlier)) == problem
        )


@given(texts, texts)
def test_no_line_of_what_was_quoted_stands_without_its_mark(problem: str, earlier: str) -> None:
    quoted = with_quoted(problem, earlier)[len(problem) :]
    assert all(line.startswith(MARK) for line in quoted.splitlines()[3:])
    assert "\0" not in quoted


def test_the_quoted_text_is_bounded_by_itself() -> None:
    check_problem(with_quoted("x" * 100_000, "y" * 20_000))
    with pytest.raises(TooLargeError, match="quoted below"):
        check_problem(with_quoted("x", "y" * MAX_QUOTED_CHARS))
    with pytest.raises(TooLargeError, match="the problem has"):
        check_problem("x" * 100_001)


def test_thoughts_are_read_from_where_they_are_quoted() -> None:
    quoted = (
        "Thought 1: Go.\nThought 7 is meant.\n"
        "Thought 2 (branch b, revises thought 1, ran): It took 5 s.\n\n"
        "Thought 3 (takes branch ran back in): End.\nThought 4 (branch ran): Left."
    )
    assert quoted_thoughts(with_quoted("Refute these.", quoted)) == [
        QuotedThought(1, "Go.\nThought 7 is meant."),
        QuotedThought(2, "It took 5 s.", ran=True),
        QuotedThought(3, "End."),
        QuotedThought(4, "Left."),
    ]
    assert quoted_thoughts("A plan. Thought 1: none of these is quoted.") == []
