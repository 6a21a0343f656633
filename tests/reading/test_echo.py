"""Replies that hand back what they were given to fill in; an answer may share its words with the question."""

from typing import Any

import pytest

from reasonry.reading.thinking import echo_in

SHOWN = 'Reply with JSON: {"reasoning": "what follows", "answer": "the answer alone", "kind": "A plant" or "An animal"}'
FORM: dict[str, Any] = {
    "properties": {
        "reasoning": {"type": "string", "description": "What follows from it."},
        "answer": {"type": "string", "description": "The answer alone, in the form asked for."},
        "kind": {"enum": ["A plant", "An animal"]},
    }
}
PROBLEM = "Which is larger, a red ant or a red kite?"
MARK = "Once you are sure, write the answer alone, complete and as asked for, with <answer> before it."


@pytest.mark.parametrize(
    "value",
    [
        {"reasoning": "A kite flies.", "answer": "The answer alone."},
        {"answer": "The answer alone, in the form asked for"},
        {"answer": PROBLEM},
        {"answer": "which is larger a red ant or a red kite"},
        {"answer": "…"},
        {"answer": ","},
        {"answer": '"..."'},
        {"reasoning": "…", "answer": "A red kite"},
        ["the answer alone"],
        {"answer": "The answer alone, complete and as asked for"},
        {"answer": "write the answer"},
    ],
)
def test_what_only_repeats_the_question_is_an_echo(value: Any) -> None:
    assert echo_in(value, SHOWN, FORM, PROBLEM, MARK) is not None


@pytest.mark.parametrize(
    "value",
    [
        {"reasoning": "what follows", "answer": "a red kite"},
        {"reasoning": PROBLEM + " A kite.", "answer": "A red kite"},
        {"answer": "A red kite", "kind": "An animal"},
        {"answer": "the answer alone is a red kite"},
        {"answer": "+"},
        {"answer": ""},
        {"answer": None, "score": 0.5},
        {"stateVariables": {"rest": PROBLEM}},
        {"steps": [PROBLEM, "A kite is larger."], "answer": "A red kite"},
        {"answer": "before it"},
        {"answer": "complete"},
    ],
)
def test_what_shares_words_with_the_question_is_none(value: Any) -> None:
    assert echo_in(value, SHOWN, FORM, PROBLEM, MARK) is None
