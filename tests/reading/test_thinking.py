"""Thinking is a prefix: it is taken off, and nothing inside an answer ever is."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import Struct

from reasonry.core.readings import Unreadable
from reasonry.reading.form import read_form
from reasonry.reading.mark import strip_mark
from reasonry.reading.thinking import blank_quotes, without_thinking

STRIP = 'import re\n\ndef strip(text):\n    return re.sub(r"<think>.*?</think>\\s*", "", text)'


@pytest.mark.parametrize(
    ("reply", "rest"),
    [
        ("<think>Is it 3?</think>\nIt is 4.", "It is 4."),
        ("<think>a</think>\n<think>b</think>\nIt is 4.", "It is 4."),
        ("<think>The tags <think> and </think>.</think>It is 4.", "It is 4."),
        ("<think>A <think> tag.</think>It is 4.", "It is 4."),
        ("<think>\n```python\nx\n</think>\n```python\ny\n```", "```python\ny\n```"),
        ("[THINK]Is it 3?[/THINK]It is 4.", "It is 4."),
        ("◁think▷Is it 3?◁/think▷It is 4.", "It is 4."),
        ("Is it <answer>3</answer>? No.\n</think>\n\n<answer>4</answer>", "<answer>4</answer>"),
        ("Is it 3?</think>\n\nIt says </think> here.", "It says </think> here."),
        ("<think>Is it 3?", ""),
        ("Is it 3?\n</think>\n", ""),
        (
            "<|channel|>analysis<|message|>3?<|end|><|start|>assistant<|channel|>final<|message|>4<|return|>",
            "4",
        ),
        ("<|channel|>analysis<|message|>Is it 3?", ""),
    ],
)
def test_thinking_before_a_reply_is_no_part_of_it(reply: str, rest: str) -> None:
    assert without_thinking(reply) == rest


@pytest.mark.parametrize(
    "reply",
    [
        json.dumps({"steps": ["regex"], "answer": STRIP}),
        STRIP,
        "def parse(t):\n    return t.split('</think>')[-1].strip()",
        f"Here it is:\n```python\n{STRIP}\n```\nIt takes the tags off.",
        "Use `<think>draft</think>` before the answer, then close it.",
        'It writes "</think>"\nand goes on.',
        "```\na\n</think>\nb\n```",
        "<answer>\nfirst\n</think>\nlast\n</answer>",
        "Close it with </think> at the end.",
        "Its form is <think>…</think>, then the answer.",
        '{"answer": "a\n</think>\nb',
        "The mark <|channel|>final<|message|> begins the reply.",
    ],
)
def test_tags_of_thinking_within_a_reply_stay(reply: str) -> None:
    assert without_thinking(reply) == reply


def test_what_stands_in_fences_and_quotes_is_told_from_the_rest() -> None:
    text = "don't `a` \"b c\" 'd'\n```py\ne\n```\n“f” 5\" g\n```\nh"
    assert blank_quotes(text).split() == ["don't", '5"', "g", "```", "h"]
    assert len(blank_quotes(text)) == len(text)


# -- laws

TAGS = ["<answer>", "</answer>", "<think>", "</think>", "<thought>", "</thought>", "[THINK]", "[/THINK]"]
BEFORE = st.sampled_from(
    ["", "So.\n\n", 'It\'s a "q".\n', "```python\nx\n```\n", "<think><answer>7</answer></think>\n"]
)
QUOTED = [
    form.format(tag) for tag in TAGS for form in ("`{}`", '"{}"', "f('{}')", "\n```python\ns = {}\n```\n")
]
WORDS = ["a", "5 km", "\n", "x = 1\n", "It is. ", "don't "]
TEXTS = st.recursive(
    st.sampled_from([*WORDS, *QUOTED]),
    lambda inner: (
        st.lists(inner, max_size=4).map("".join)
        | st.tuples(st.sampled_from(list(zip(TAGS[::2], TAGS[1::2], strict=True))), inner).map(
            lambda drawn: f"{drawn[0][0]}{drawn[1]}{drawn[0][1]}"
        )
    ),
    max_leaves=8,
)
"""Texts in which the tags are balanced, or stand in fences, quotes or backticks."""
PIECES = [*TAGS, *TAGS, *"\"'`{}()\\r5x \n“”«»", "```", "\n```\n", "\n```python\n"]
ANY_TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


class Answer(Struct):
    answer: str


def read(reply: str) -> tuple[Answer, str] | Unreadable:
    return read_form(without_thinking(reply), Answer)


@given(TEXTS, BEFORE)
def test_a_text_with_balanced_or_quoted_tags_comes_back_to_the_letter(text: str, before: str) -> None:
    assume(text.strip())
    assert read(f"{before}<answer>\n{text}\n</answer>") == (Answer(text.strip()), "marked")


@given(ANY_TEXTS, BEFORE)
def test_any_other_text_is_asked_again_and_never_shortened(text: str, before: str) -> None:
    # Closed and opened again, it is two answers, which may be the same.
    assume("<answer>" not in text.partition("</answer>")[2])
    found = read(f"{before}<answer>{text}</answer>")
    assert isinstance(found, Unreadable) or found[0].answer == text.strip()


def test_a_mark_around_all_of_a_text_comes_off_and_no_other() -> None:
    texts = {
        "<answer>7</answer>": "7",
        "<answer>7": "<answer>7",
        "a <answer>7</answer> ": "a <answer>7</answer> ",
    }
    assert {text: strip_mark(text) for text in texts} == texts


@given(ANY_TEXTS)
def test_data_is_never_searched_for_tags(text: str) -> None:
    for reply in (json.dumps({"answer": text}), f"```json\n{json.dumps({'answer': text}, indent=2)}\n```"):
        for thought in ("", "<think>Is it?</think>\n"):
            found = read(thought + reply)
            assert not isinstance(found, Unreadable)
            assert found[0].answer == strip_mark(text)


@given(TEXTS)
def test_reading_twice_changes_nothing(text: str) -> None:
    once = without_thinking(f"<think>a</think>\nSo: {text}")
    assert without_thinking(once) == once
