"""Written equations: a false one is found and said, a true one never, and what is no plain equation is passed over."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.puzzles.equations import false_equations
from reasonry.puzzles.expression import read_expression

from ..reading import lines_of

SIGNS = {"+": "+", "-": "-", "*": "×", "/": "/"}
FRAMES = [
    "{}",
    "{}.",
    "So, {}.",
    "Step 1: {}",
    "1. {}",
    "- {}\n- and so on",
    "* **{}**",
    "({})",
    r"\({}\)",
    "${}$",
    "We get, all in all, {}, which is more than before.",
    "| {} | yes |",
    '"{}"',
    "`{}`",
    "First this.\n{}\nThen that.",
    "<<{}>>",
]
WRITINGS = {
    "*": ["*", "×", "x", "·", r"\times", r"\cdot"],
    "/": ["/", "÷", r"\div"],
    "+": ["+"],
    "-": ["-", "−"],
}

whole = st.integers(1, 9_999)


@st.composite
def products(draw: st.DrawFn) -> tuple[str, int]:
    """Draw an expression of two or three numbers as somebody writes it, and its value."""
    signs = draw(st.lists(st.sampled_from("+-*"), min_size=1, max_size=2))
    numbers = [draw(whole) for _ in range(len(signs) + 1)]
    plain, written = str(numbers[0]), f"{numbers[0]:{draw(st.sampled_from(['', ',']))}}"
    for sign, number in zip(signs, numbers[1:], strict=True):
        plain += f" {sign} {number}"
        written += f" {draw(st.sampled_from(WRITINGS[sign]))} {number}"
    term = read_expression(plain)
    assert term is not None
    return written, int(term.value)


@given(products(), st.sampled_from(FRAMES))
def test_a_true_equation_is_never_found_false(product: tuple[str, int], frame: str) -> None:
    written, value = product
    assert false_equations(frame.format(f"{written} = {value}")) == []
    assert false_equations(frame.format(f"{written} = {value:,}")) == []
    assert false_equations(frame.format(f"{value} = {written}")) == []


@given(products(), st.integers(2, 999), st.sampled_from(FRAMES))
def test_a_false_equation_is_found_whatever_stands_around_it(
    product: tuple[str, int], off: int, frame: str
) -> None:
    written, value = product
    stated = value + off
    (fault,) = false_equations(frame.format(f"{written} = {stated}"))
    assert fault.endswith(f" is {value}, not {stated}")


@given(whole, st.integers(2, 99), st.integers(0, 6))
def test_a_quotient_counts_as_right_to_the_digits_written(above: int, below: int, digits: int) -> None:
    rounded = f"{above / below:.{digits}f}"
    assert false_equations(f"{above} / {below} = {rounded}") == []
    off = Fraction(rounded) + Fraction(3, 10**digits)
    stated = f"{float(off):.{digits}f}"
    is_share = above < below and Fraction(stated) >= 1
    assert len(false_equations(f"{above} / {below} = {stated}")) == (not is_share)


@given(st.text(alphabet="0123456789.,+-*/=()^%$ xab²\\\n:!?·", max_size=60))
def test_no_text_makes_it_raise(text: str) -> None:
    assert all(isinstance(fault, str) for fault in false_equations(text))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("4736 * 8 = 37788", "4736 × 8 is 37888, not 37788"),
        ("4,736 × 8 = 37,788", "4,736 × 8 is 37888, not 37,788"),
        ("The cost: $4.50 × 10 = $46.00.", "$4.50 × 10 is 45, not $46.00"),
        (r"\frac{3}{4} + \frac{1}{4} = 2", "(3 / 4) + (1 / 4) is 1, not 2"),
        ("2^10 = 1025, as is known", "2^10 is 1024, not 1025"),
        ("5 + 3² = 15", "5 + 3² is 14, not 15"),
        ("10 - 4 = 7 (left: 6 9 13)", "10 - 4 is 6, not 7"),
        ("24 = 3 × 9", "3 × 9 is 27, not 24"),
        ("3 + 4 = 2 + 6", "3 + 4 is 7, but 2 + 6 is 8"),
        ("8 / 3 = 2.5", "8 / 3 is 8/3 (about 2.66667), not 2.5"),
        ("<<48/2=25>>25 clips", "48 / 2 is 24, not 25"),
        ("3 × 9 = 28; 28 + 1 = 29", "3 × 9 is 27, not 28"),
        ("60 * 4 = 250, 250 + 3 = 253.", "60 × 4 is 240, not 250"),
        ("So: 3 * 8 = 24 = 5 * 5.", "5 × 5 is 25, not 24"),
    ],
)
def test_what_is_said_of_a_false_equation(text: str, fault: str) -> None:
    assert false_equations(text) == [fault]


@pytest.mark.parametrize(
    "text",
    [
        "x = 5",
        "2x + 3 = 10",
        "3 × 8 = 24x",
        "3 × 8 = 25 × n",
        "max(3, 4 + 5) = 9",
        r"\sqrt{16} + 2 = 6",
        "√16 + 2 = 6",
        "5! / 3! = 20",
        "2 * 12 = 4!",
        "|3 - 8| + 1 = 6",
        "10 choose 2 = 45",
        "2/3 of 48 + 2 = 34",
        "10 + 4 = 2 (mod 12)",
        "In binary, 1 + 1 = 10.",
        "17 // 5 = 3",
        "19 / 5 = 3 remainder 4",
        "2 ⊕ 3 + 1 = 9",
        "1 + 2 + ... + 10 = 55",
        "1 + 2 + … + 10 = 55",
        "3 +\n4 + 5 = 12",
        "3 × 4 = 12\n+ 1",
        "We sold 48/2 = 25 clips",
        "all but 3 × 8 = 25",
        "3 : 4 = 6 : 8",
        "14:30 + 45 = 15:15",
        "2025-01-15 = 3",
        "37'888 + 1 = 37'889",
        "x == 3 + 5 = 9",
        "```python\ny = 3 + 5 = 9\n```",
        "(1,2) + (3,9) = (4,11)",
        "20% of 50 = 10",
        "5/20 = 25%",
        "5 / 20 × 100 = 25%",
        "30 + 30 = 1 hour",
        "2.67 × 3 = 8",
        "0.33 × 300 = 100",
        "3.14 × 25 = 78.54",
        "1/3 = 0.333...",
        "2,5 × 4 = 10",
        "1.500 + 1 = 1.501",
        "- 3 + 4 = 1",
        "3 + 4 = 7 × 2 = 14",
        "2/3 = 40, so 1/3 = 20",
        "If 2 + 2 = 5, then I am the pope.",
        "Is 3 × 8 = 25? No.",
        "3 × 8 = 25. Wait, that is 24.",
        "3 × 8 ≠ 25",
        "8 / (4 - 4) = 2",
        "5/20 + 8/20 = 13/20\n\n**2. The rest**\n1 - 13/20 = 7/20",
        "So 2 + 3 = **5** 2 times.",
    ],
)
def test_what_is_not_surely_a_plain_equation_is_passed_over(text: str) -> None:
    assert false_equations(text) == []


@pytest.mark.parametrize(
    "problem",
    [
        "If 2 + 3 = 10 and 7 + 2 = 63, what is 8 + 4?",
        "Let a * b mean 2a + b by definition. What is 3 * 4?",
        "Move one matchstick to make it true: 6 + 4 = 4.",
        "What is 5 + 7 in base 8?",
    ],
)
def test_a_problem_may_have_an_arithmetic_of_its_own(problem: str) -> None:
    assert false_equations("3 * 4 = 10") != []
    assert false_equations("3 * 4 = 10", about=problem) == []


def replies_of(row: dict) -> list[str]:
    return [row["reply"]] if "reply" in row else [reply["text"] for reply in row["replies"]]


@pytest.mark.parametrize("corpus", ["minds", "never_wrong"])
def test_no_reply_is_called_false_but_the_one_that_is(corpus: str) -> None:
    read = [(row["problem"], text) for row in lines_of(corpus) for text in replies_of(row)]
    assert len(read) >= 60
    found = {text: false_equations(text, about=problem) for problem, text in read}
    # One mind of the runs added wrongly.
    false = ["236800 + 37888 is 274688, not 274588"] if corpus == "minds" else []
    assert [fault for faults in found.values() for fault in faults] == false
