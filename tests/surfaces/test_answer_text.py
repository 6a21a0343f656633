"""An answer on a terminal: LaTeX of a closed list plainly, Markdown drawn, all else as it is written."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.surfaces.cli.draw import parts_of, plain_latex, print_answer
from tests.in_process import Screen


def shown(answer: str, stream: io.StringIO) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "dumb")
        print_answer(answer, stream=stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        (r"$\frac{8}{3 - \frac{8}{3}} = 24$", "8/(3 - 8/3) = 24"),
        (r"\frac{a + b}{2}", "(a + b)/2"),
        (r"3.5 \text{ hours}", "3.5 hours"),
        (r"3431.5\ \text{kg},\ 4817.60\ \text{€}", "3431.5 kg, 4817.60 €"),
        (r"16 \text{ whole pieces and } 30 \text{ cm left over}", "16 whole pieces and 30 cm left over"),
        ("\\(3 \\times 4\\) is\n\\[\n2 \\cdot 6\n\\]", "3 × 4 is\n2 · 6"),
        (r"\left(\frac{1}{2}\right) \times 4", "(1/2) × 4"),
        (r"\frac{1}{2", r"\frac{1}{2"),
        (r"\sqrt{2} \times \alpha", r"\sqrt{2} × \alpha"),
        ("It costs $5, not $6.", "It costs $5, not $6."),
        (r"C:\temp\new, \d+\, and \timestamp", r"C:\temp\new, \d+\, and \timestamp"),
    ],
)
def test_the_latex_of_the_list_is_written_plainly_and_nothing_else(written: str, plain: str) -> None:
    assert plain_latex(written) == plain


def test_markdown_is_drawn_on_a_terminal() -> None:
    answer = "# Tariffs\n\n**A** is *cheap*; `b` is not.\n\n| tariff | price |\n|---|---|\n| A | 15 |\n\n- one\n  - two"
    lines = [line.rstrip() for line in shown(answer, Screen()).splitlines()]
    assert lines[:3] == ["Tariffs", "", "A is *cheap*; b is not."]
    assert "|---|---|" not in "".join(lines)
    assert any("15" in line and "A" in line for line in lines)
    assert lines[-2:] == ["- one", "  - two"]


CODE = "def area(*sides, **more):\n    # the product\n    return 2 ** 3 ** 4  # \\times `x`\n\n# end\n__all__ = []"
HAIKU = "Winter mountain wind\n  2**3**4 and 8*3*1\n> 5 holds; <b> & &amp; 1986. _snake_case_"


@pytest.mark.parametrize("answer", [CODE, HAIKU, "42", "- 5", "[1] (policy.md, line 1)"])
def test_all_else_stays_as_it_is_written(answer: str) -> None:
    assert shown(answer, Screen()) == answer + "\n"


def test_code_in_a_fence_stays_as_it_is_written_without_the_fence() -> None:
    assert shown(f"Here:\n\n```python\n{CODE}\n```", Screen()) == f"Here:\n\n{CODE}\n"


@pytest.mark.parametrize(
    "answer", [r"**\frac{1}{2}**", f"```\n{CODE}\n```", "# Title\n\n| a |\n|---|\n| b |"]
)
def test_a_pipe_gets_the_text_unchanged(answer: str) -> None:
    assert shown(answer, io.StringIO()) == answer + "\n"


@given(st.text("ab1*_`#|$\\{}-\n "))
def test_no_letter_or_digit_is_lost_whatever_is_written(text: str) -> None:
    def kept(shown: str) -> str:
        return "".join(letter for letter in shown if letter.isalnum())

    parts = [part if isinstance(part, str) else getattr(part, "plain", None) for part in parts_of(text)]
    if None not in parts and "frac" not in text and "text" not in text:
        assert kept("".join(filter(None, parts))) == kept(text)
