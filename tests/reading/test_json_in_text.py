"""JSON that was not written to its end: within a text it is refused, missing brackets alone are put right."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from reasonry.core.readings import Unreadable
from reasonry.reading.form import no_reply, read_form
from reasonry.reading.json_in_text import CUT_OFF, breaks_off

WORDS = st.text("abc xyz.,'(){}[]:", min_size=1, max_size=20)


class Reply(Struct):
    question: str
    reason: str = ""


@given(st.lists(WORDS, min_size=1, max_size=4), st.data())
def test_what_ends_within_a_text_says_so(texts: list[str], data: st.DataObject) -> None:
    whole = json.dumps({"items": [{"text": text} for text in texts]})
    assert not breaks_off(whole)
    *_, last = texts
    kept = data.draw(st.integers(0, len(last) - 1))
    cut = whole[: whole.rindex(json.dumps(last)) + 1 + kept]
    assert breaks_off(cut)
    assert breaks_off(f"Here it is:\n```json\n{cut}\n```")


@given(st.lists(st.text("abc xyz.", min_size=1, max_size=20), min_size=1, max_size=4), st.integers(1, 3))
def test_missing_brackets_are_no_missing_text(texts: list[str], missing: int) -> None:
    whole = json.dumps({"items": [{"text": text} for text in texts]})
    assert not breaks_off(whole[:-missing])


@pytest.mark.parametrize(
    "text",
    [
        '{"question": "Who',
        '{"question": "Who}',
        "{'question': 'Who",
        'So:\n```json\n{"question": "Who\n```',
        '{"question": "Who?", "reason": ',
        '{"question": "Who?", "n": 4',
    ],
)
def test_half_a_text_is_never_read(text: str) -> None:
    assert no_reply(text, "") == CUT_OFF


@pytest.mark.parametrize(
    "text",
    [
        '{"question": "Who is it?"',
        '{"question": "Who is it?", "reason": "a "quote" inside, and another"',
        "{'question': 'Who\\'s there?'}",
        '{"question": "Who is it?",}',
    ],
)
def test_what_is_said_whole_is_put_right(text: str) -> None:
    assert no_reply(text, "") is None
    reading = read_form(text, Reply)
    assert not isinstance(reading, Unreadable)
    assert reading[0].question.startswith("Who")


@pytest.mark.parametrize(
    "text", ["", "The set {'a', 'b'", "[1] says so.", 'print({"a": x["b"]})', "{" * 5000]
)
def test_other_text_is_not_taken_for_half_a_text(text: str) -> None:
    assert not breaks_off(text)
