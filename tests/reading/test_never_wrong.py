"""Natural replies of many kinds to questions that asked for no mark: each is read right or asked again, never wrong.

A line of `never_wrong.jsonl` is `{"id", "kind", "problem", "reply", "answers"}`: its `answers` are equally right,
none where a person takes no answer from the reply.
"""

import re

from reasonry.core.readings import Unreadable

from . import lines_of, read_answer

LINES = lines_of("never_wrong")


def letters(text: str) -> str:
    return re.sub(r"\W+", "", text).casefold()


def is_among(answer: str, answers: list[str]) -> bool:
    return any(letters(right) in letters(answer) for right in answers)


def test_a_natural_reply_is_read_right_or_asked_again() -> None:
    read = [(line, read_answer(line["reply"])) for line in LINES]
    found = [(line, reading[0].text) for line, reading in read if not isinstance(reading, Unreadable)]
    assert {line["id"]: answer for line, answer in found if not is_among(answer, line["answers"])} == {}
    assert len(LINES) == 100
    assert len(found) > 25


def test_asked_again_each_gives_the_answer_that_it_marks() -> None:
    for line in LINES:
        for answer in line["answers"][:1]:
            reading = read_answer(line["reply"], f"<answer>{answer}</answer>")
            assert not isinstance(reading, Unreadable), line["id"]
            assert letters(reading[0].text) == letters(answer), line["id"]
