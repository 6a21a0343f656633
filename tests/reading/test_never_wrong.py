"""Natural replies of many kinds to questions that asked for no mark: each is read right or asked again, never wrong.

A line of `never_wrong.jsonl` is `{"id", "kind", "problem", "reply", "answers"}`: its `answers` are equally right,
none where a person takes no answer from the reply.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from reasonry.blocks.answers import ReasonedAnswer
from reasonry.core.readings import Unreadable
from reasonry.reading.form import read_form
from reasonry.reading.thinking import without_thinking

LINES: list[dict[str, Any]] = [
    msgspec.json.decode(line)
    for line in Path(__file__).with_name("never_wrong.jsonl").read_text("utf-8").splitlines()
]


def letters(text: str) -> str:
    return re.sub(r"\W+", "", text).casefold()


def is_among(answer: str, answers: list[str]) -> bool:
    return any(letters(right) in letters(answer) for right in answers)


def test_a_natural_reply_is_read_right_or_asked_again() -> None:
    read = [(line, read_form(without_thinking(line["reply"]), ReasonedAnswer)) for line in LINES]
    found = [(line, reading[0].text) for line, reading in read if not isinstance(reading, Unreadable)]
    assert {line["id"]: answer for line, answer in found if not is_among(answer, line["answers"])} == {}
    assert len(LINES) == 100
    assert len(found) > 25


def test_asked_again_each_gives_the_answer_that_it_marks() -> None:
    for line in LINES:
        for answer in line["answers"][:1]:
            texts = [without_thinking(line["reply"]), f"<answer>{answer}</answer>"]
            reading = read_form(texts, ReasonedAnswer)
            assert not isinstance(reading, Unreadable), line["id"]
            assert letters(reading[0].text) == letters(answer), line["id"]
