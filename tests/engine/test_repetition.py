"""Texts that repeat themselves without end are told from texts that say much alike."""

import pytest

from reasonry.text import repeats_itself

LOOP = "The bakery should not open on Sundays.\n\nThe next thought is:\n\n"


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        *((f"It begins well. {loop * 400}"[:-3], True) for loop in (LOOP, "1 pen / 1 pen = 1 pen. ", "\n")),
        (("a" * 70 + "b") * 400, True),
        *((LOOP * times, False) for times in (0, 1, 3)),
        ("".join(f"Step {number}: add {number}.\n" for number in range(500)), False),
        (f"{LOOP * 40}And that was all there was to be said of it.", False),
    ],
)
def test_a_text_repeats_itself_where_it_ends_in_a_loop(text: str, repeats: bool) -> None:
    assert repeats_itself(text) is repeats
