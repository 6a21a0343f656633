"""Asking again: the question stays the beginning of the prompt, and what was wrong is shown, bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reasonry.blocks.answers import OPEN_TASK
from reasonry.core.effects import Ask
from reasonry.core.events import Answered
from reasonry.core.reply_reading import MAX_EXCERPT, ask_again, question_text
from reasonry.reading.parse import no_reply


def test_what_was_replied_before_is_no_part_of_the_question() -> None:
    two = '```json\n{"answer": "5"}\n```\n```json\n{"answer": "6"}\n```'
    ask = Ask('How many? Reply with {"answer": "the number"}.')
    reason = no_reply(two, question_text(ask))
    assert reason is not None
    again = ask_again(ask, Answered(two), reason)
    assert question_text(again) == question_text(ask)
    assert no_reply('{"answer": "6"}', question_text(again)) is None
    assert no_reply('{"answer": "the number"}', question_text(again)) is not None


ASK = Ask("Which?", system="You choose.", form={"type": "object"})


def test_asking_again_keeps_the_question_as_a_prefix_and_shows_what_was_wrong() -> None:
    again = ask_again(ASK, Answered("blue"), "no JSON object was found in it")
    assert again.prompt.startswith(ASK.prompt)
    assert again.system == ASK.system
    assert "blue" in again.prompt
    assert "no JSON object was found in it" in again.prompt
    third = ask_again(again, Answered("green"), "it is empty")
    assert third.prompt.startswith(again.prompt)


def test_after_a_reply_that_was_cut_off_a_shorter_one_is_wished_for() -> None:
    assert "briefly" in ask_again(ASK, Answered('{"thoughts": [', truncated=True), "cut off").prompt


@given(st.text(max_size=20) | st.just("x" * 1_000_000))
def test_asking_again_shows_a_bounded_part_of_any_reply(text: str) -> None:
    again = ask_again(ASK, Answered(text), "it is no good")
    assert len(again.prompt) < len(ASK.prompt) + MAX_EXCERPT + 500
    again.prompt.encode()


def test_where_a_text_may_be_asked_for_it_may_come_without_the_form() -> None:
    ask = Ask(f"Write a poem.\n{OPEN_TASK}", form={"type": "object"})
    assert ask_again(ask, Answered("…"), "it is empty").prompt.endswith("with that alone.")
    closed = replace(ask, prompt="What is 2 + 2?")
    assert ask_again(closed, Answered("…"), "it is empty").prompt.endswith("and nothing else.")
