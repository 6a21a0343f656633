"""Moves as models write them: in words, with fractions, with rounded decimals."""

from __future__ import annotations

import ast
import random
from fractions import Fraction

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from reasonry.core.effects import Verify
from reasonry.puzzles import Puzzle, PuzzleMove, follow, legal_moves
from reasonry.puzzles.term import Term
from reasonry.puzzles.wording import with_signs
from reasonry.tools.verifiers import judge

PUZZLE = Puzzle(tuple(map(Fraction, (3, 3, 8, 8))), Fraction(24))
WORDS = {
    "+": ("Add {a} and {b} to get {c}", "{a} plus {b} is {c}", "The sum of {a} and {b} equals {c}."),
    "-": ("Subtract {b} from {a} to get {c}", "{a} minus {b} gives {c}", "Subtracting {b} from {a}: {c}"),
    "*": (
        "Multiply {a} by {b} to obtain {c}",
        "{a} times {b} makes {c}",
        "We multiply {a} and {b}, giving {c}.",
    ),
    "/": (
        "Divide {a} by {b} to get {c}",
        "{a} divided by {b} equals {c}",
        "Divide {a} by {b}, which gives {c}.",
    ),
}
SIGNS = (
    "{a} {op} {b} = {c}",
    "{a} {op} {b} ≈ {c}",
    "{a} {op} {b} = {c} (left: {left})",
    "{a} {op} {b} is {c}",
)
DIGITS = 4


def written(value: Fraction, chance: random.Random, *, operand: bool = False) -> str:
    """Write a number as a fraction or rounded; a negative operand in parentheses."""
    exact = str(value.numerator) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"
    text = exact if value.denominator == 1 or chance.random() < 0.5 else f"{float(value):.{DIGITS}f}"
    return f"({text})" if operand and (value < 0 or "/" in text) else text


def step(move: PuzzleMove, left: list[Fraction], chance: random.Random) -> str:
    text = chance.choice((*WORDS[move.op], *SIGNS))
    operands = {"a": written(move.a, chance, operand=True), "b": written(move.b, chance, operand=True)}
    shown = " ".join(written(value, chance) for value in left)
    return text.format(**operands, c=written(move.result, chance), op=move.op, left=shown)


def is_told_apart(values: list[Fraction]) -> bool:
    """Whether rounding leaves different values different, and none of them 0 but 0."""
    rounded = {round(value, DIGITS) for value in values}
    return len(rounded) == len(set(values)) and all(
        abs(value) > Fraction(1, 100) for value in values if value
    )


def evaluate(expression: str) -> tuple[Fraction, list[Fraction]]:
    used: list[Fraction] = []

    def value(node: ast.expr) -> Fraction:
        if isinstance(node, ast.Constant):
            assert isinstance(node.value, int)
            used.append(Fraction(node.value))
            return used[-1]
        assert isinstance(node, ast.BinOp)
        left, right = value(node.left), value(node.right)
        match node.op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case _:
                return left / right

    return value(ast.parse(expression, mode="eval").body), sorted(used)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.integers(1, 13), min_size=3, max_size=4), st.integers(0, 10**6))
@example([3, 3, 8, 8], 1)
def test_however_moves_are_written_they_are_followed_and_only_what_is_exact_is_proved(
    numbers: list[int], seed: int
) -> None:
    chance, left, steps = random.Random(seed), [Fraction(number) for number in numbers], list[str]()
    seen = list(left)
    while len(left) > 1:
        move = chance.choice(list(legal_moves(left)))
        left.remove(move.a)
        left.remove(move.b)
        left.append(move.result)
        seen.append(move.result)
        assume(is_told_apart(seen))
        steps.append(step(move, left, chance))
    puzzle = Puzzle(tuple(map(Fraction, numbers)), left[0])
    position = follow(puzzle, steps)
    assert (position.fault, position.numbers) == ("", (left[0],)), steps
    ruling = judge(puzzle, Verify("", tuple(steps)))
    assert ruling.verdict == "right"
    assert ruling.answer is not None
    assert evaluate(ruling.answer.rpartition(" = ")[0]) == (left[0], sorted(puzzle.numbers))
    beside = Puzzle(puzzle.numbers, left[0] + Fraction(1, 10 ** (DIGITS + 1)))
    assert judge(beside, Verify("", tuple(steps))).verdict != "right", "as near as rounding is no proof"


@pytest.mark.parametrize(
    "steps",
    [
        ["8 / 3 = 2.67 (left: 2.67 3 8)", "3 - 2.67 = 0.33 (left: 0.33 8)", "8 / 0.33 = 24"],
        ["8 / 3 ≈ 2.67", "3 - 2.67 = 0.33", "8 / 0.33 = 24.24 (left: 24.24)"],
        ["8 / 3 = 2.666 (left: 3 8 2.666)", "3 − 2.666 = 0.334", "8 ÷ 0.334 ≈ 23.95"],
        ["Divide 8 by 3 to get 8/3", "Subtract 8/3 from 3 to get 1/3", "Divide 8 by 1/3 to get 24"],
        ["Divide 8 by 3 to get 2 2/3.", "3 minus 8/3 is 1/3.", "8 divided by 1/3 is 24."],
        ["8 / 3 = 2.67", "3 - 2.67 = 0.33", "8 / (3 - 2.67) = 8 / 0.33 = 24"],
    ],
)
def test_a_way_with_thirds_is_proved_right_and_written_exactly(steps: list[str]) -> None:
    assert all(judge(PUZZLE, Verify("", tuple(steps[:n]))).verdict == "unknown" for n in (1, 2))
    assert judge(PUZZLE, Verify("", tuple(steps))).answer == "8 / (3 - 8 / 3) = 24"


@pytest.mark.parametrize(
    ("steps", "fault"),
    [
        (["8 / 3 = 2.76"], "8 / 3 is 8/3"),
        (["8 / 3 = 3"], "8 / 3 is 8/3"),
        (["Divide 8 by 3 to get 3"], "8 / 3 is 8/3"),
        (["Subtract 3 from 8 to get 6"], "8 - 3 is 5"),
        (["8 / 3 = 2.67 (left: 2.5 3 8)"], "the numbers left are"),
        (["8 / 3 = 2.67", "9 * 2.67 = 24.03"], "9 is not there"),
    ],
)
def test_what_is_not_true_to_the_digits_written_is_a_fault(steps: list[str], fault: str) -> None:
    assert fault in follow(PUZZLE, steps).fault


def test_rounding_proves_nothing() -> None:
    """7 * 3.43 is 24.01: near 24 and not 24, however it is rounded."""
    sevenths = Puzzle(tuple(map(Fraction, (7, 24, 7, 1))), Fraction(24))
    steps = ("24 / 7 = 3.43", "3.43 * 7 = 24.01", "24.01 * 1 = 24.01")
    assert judge(sevenths, Verify("", steps)).answer == "24 / 7 * 7 * 1 = 24"
    near = Puzzle(tuple(map(Fraction, (10, 3, 7, 1))), Fraction(24))
    claims = ("10 / 3 = 3.33", "3.33 * 7 = 23.3", "23.3 + 1 = 24.3", "24.3 = 24")
    assert judge(near, Verify("", claims[:3])).verdict == "wrong"
    assert judge(near, Verify("", claims, final=True)).verdict == "wrong"


@pytest.mark.parametrize(
    "text",
    [
        "We need 3 * 8 to make 24",
        "If we could divide 8 by 3 to get 2, that would do",
        "Multiply 4 by 6",
        "Divide 7 by 2 to get 3 remainder 1",
        "Divide 8 by 3 to get 24 / 9",
        "(10 - 4) * (13 - 9) = 24",
        "Divide the cake by the number of guests to get 8 pieces each",
    ],
)
def test_a_plan_or_an_open_end_is_no_move(text: str) -> None:
    assert with_signs(text) == text


@pytest.mark.parametrize(
    ("number", "decimals", "value", "holds"),
    [
        ("2.67", 2, "8/3", True),
        ("2.66", 2, "8/3", True),
        ("2.68", 2, "8/3", False),
        ("3", 0, "8/3", False),
        ("5.3", 1, "5.2", False),
        ("-0.33", 2, "-1/3", True),
        ("-0.34", 2, "-1/3", False),
    ],
)
def test_a_number_stands_for_what_it_is_rounded_or_cut_off_from(
    number: str, decimals: int, value: str, holds: bool
) -> None:
    assert Term(Fraction(number), decimals=decimals).stands_for(Fraction(value)) is holds
