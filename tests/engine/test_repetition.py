"""Texts that repeat themselves without end are told from texts that say much alike."""

from __future__ import annotations

import pytest

from reasonry.text import repeats_itself

LOOP = "The bakery should not open on Sundays.\n\nThe next thought is:\n\n"


@pytest.mark.parametrize("loop", [LOOP, "1 pen / 1 pen = 1 pen. ", "\n", "a" * 70 + "b"])
def test_a_text_that_ends_in_a_loop_repeats_itself(loop: str) -> None:
    assert repeats_itself(f"It begins well. {loop * 400}"[:-3])


@pytest.mark.parametrize(
    "text",
    [
        "",
        LOOP,
        LOOP * 3,
        "".join(f"Step {number}: add {number}.\n" for number in range(500)),
        f"{LOOP * 40}And that was all there was to be said of it.",
    ],
)
def test_a_text_that_says_something_new_does_not(text: str) -> None:
    assert not repeats_itself(text)
