"""Expressions as text: evaluated exactly, checked exactly, and nothing in them is ever run."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.puzzles.expression import read_expression
from reasonry.puzzles.term import Puzzle

from ..servers.game24 import check

FOUR = Puzzle(tuple(map(Fraction, (4, 9, 10, 13))), Fraction(24))


def evaluate(text: str) -> Fraction | None:
    term = read_expression(text)
    return None if term is None else term.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(10 - 4) * (13 - 9)", "24"),
        ("8 / (3 - 8 / 3)", "24"),
        ("2 - 3 - 4", "-5"),
        ("24 / 4 / 2", "3"),
        ("8 / 8/3", "1/3"),
        ("1 + 2 * 3", "7"),
        ("-3 + (-4)", "-7"),
        ("5 - -3", "8"),
        ("0.1 + 0.2", "3/10"),
        ("[6 × 4] − 2 ÷ 3", "70/3"),
    ],
)
def test_expressions_are_evaluated_exactly(text: str, value: str) -> None:
    assert evaluate(text) == Fraction(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 / 0",
        "1 / (2 - 2)",
        "2 ** 100",
        "7 // 2",
        "2 3",
        "2 (3)",
        "(1",
        "1)",
        "()",
        "1 +",
        "* 2",
        "1_000",
        "1e9",
        "0x10",
        "x",
        "__import__('os')",
        "...",
        "٣ + ٤",
        "-(1 + 2)",
        "(" * 249 + "1" + ")" * 249,
        "1+" * 1000 + "1",
        "-" * 499 + "1",
    ],
)
def test_what_is_no_expression_has_no_value(text: str) -> None:
    assert evaluate(text) is None


@given(st.one_of(st.text(), st.text(alphabet="0123456789+-*/(). =", max_size=60)))
def test_evaluating_and_checking_never_raise(text: str) -> None:
    evaluate(text)
    check(text, FOUR)


def _joined(parts: tuple[str, str, str]) -> str:
    return f"({' '.join(parts)})"


WRITTEN = st.recursive(
    st.integers(0, 50).map(str),
    lambda part: st.tuples(part, st.sampled_from("+-*/"), part).map(_joined),
    max_leaves=8,
)


@given(WRITTEN)
def test_evaluation_agrees_with_the_language_s_own(text: str) -> None:
    exact = "".join(f"Fraction({part})" if part.isdigit() else part for part in _split(text))
    try:
        expected = eval(exact, {"Fraction": Fraction})
    except ZeroDivisionError:
        expected = None
    assert evaluate(text) == expected


def _split(text: str) -> list[str]:
    return text.replace("(", "( ").replace(")", " )").split(" ")


@pytest.mark.parametrize(
    "expression",
    [
        "(10 - 4) * (13 - 9)",
        "(10 - 4) * (13 - 9) = 24",
        "24 = (10-4)*(13-9)",
        "(10 − 4) × (13 − 9) = 6 * 4 = 24",
    ],
)
def test_a_solution_is_right_however_it_is_written(expression: str) -> None:
    assert check(expression, FOUR) == (True, "")


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("(10 - 4) * 4", "exactly"),
        ("(10 - 4) * (13 - 9) + 0", "exactly"),
        ("(10 - 4) * (13 - 9) * 1", "exactly"),
        ("24", "exactly"),
        ("4 + 9 + 10 + 13", "it is 36, not 24"),
        ("(10 - 4) * (13 - 9) = 25", "it is 24, not 25"),
        ("-4 + 9 + 10 + 13", "exactly"),
        ("410 - 13 - 9", "exactly"),
        ("__import__('os')", "not an expression"),
        ("4 ** 9 ** 10 ** 13", "not an expression"),
        ("10 / (4 - 4)", "not an expression"),
        ("(10 - 4) * (13 - 9) = x", "not an expression"),
        ("", "not an expression"),
    ],
)
def test_what_does_not_solve_a_puzzle_is_said_why(expression: str, why: str) -> None:
    right, reason = check(expression, FOUR)
    assert not right
    assert why in reason


def test_numbers_that_are_no_integers_count_as_one() -> None:
    halves = Puzzle((Fraction(1, 2), Fraction(3), Fraction(4)), Fraction(14))
    assert check("(3 + 1/2) * 4", halves) == (True, "")
    assert check("(3 + (1/2)) * 4 = 14", halves) == (True, "")
    assert check("(3 + 0.5) * 4", halves) == (True, "")
    assert check("(3 + 1 / 2) * 4", halves)[0] is False
    assert check("8 / 8/3 + 7", Puzzle((Fraction(8), Fraction(8, 3), Fraction(7)), Fraction(10)))[0] is False
    signed = Puzzle((Fraction(-3), Fraction(5)), Fraction(8))
    assert check("5 - (-3)", signed) == (True, "")
    assert check("5 + 3", signed)[0] is False
