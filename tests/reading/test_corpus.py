"""How much of the corpus is read at first sight, and that it is fit to measure that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from reasonry.strategies import STRATEGIES

from .corpus import TURN, Found, ask, lines, measure, same

AT_LEAST = 0.98
"""Share of the readable replies that is read at first sight."""
MOST_WRONG = 0
"""Wrong readings."""


@cache
def found() -> tuple[Found, ...]:
    return tuple(measure(line) for line in lines())


def shown(*outcomes: str) -> str:
    return "\n".join(f"{one.line.id}: {one.detail}" for one in found() if one.outcome in outcomes)


def test_nearly_all_replies_are_read_at_first_sight() -> None:
    count = Counter(one.outcome for one in found() if one.line.reads is not None)
    readable = count.total() - count["not asked"]
    assert count["read"] / readable >= AT_LEAST, shown("wrong", "refused")


def test_no_reply_is_read_for_what_it_does_not_say() -> None:
    assert sum(one.outcome == "wrong" for one in found()) <= MOST_WRONG, shown("wrong")


def test_the_corpus_is_large_and_has_its_share_of_replies_to_ask_about_again() -> None:
    assert len({line.id for line in lines()}) == len(lines()) >= 320
    assert len({(line.form, line.problem, line.reply, repr(line.setting)) for line in lines()}) == len(
        lines()
    )
    again = sum(line.asked_again is not None for line in lines())
    assert 0.1 <= again / len(lines()) <= 0.2


def test_nearly_all_lines_answer_a_question_that_is_asked() -> None:
    asked = [one for one in found() if one.outcome != "not asked"]
    assert len(asked) >= 320, (
        f"{len(lines()) - len(asked)} lines are not asked; say in STAGES where they belong"
    )


def test_what_was_said_before_stands_in_the_question() -> None:
    for line in lines():
        asked = ask(line) if line.setting.said else None
        if asked is not None:
            texts = [part for text in _texts(line.setting.said) for part in text.split(TURN)]
            missing = [text for text in texts if text not in asked[2].effect.prompt]
            assert not missing, f"{line.id}: not in its question: {missing}"


def _texts(said: Any) -> Iterator[str]:
    if isinstance(said, str):
        yield said
    elif isinstance(said, dict | list):
        for item in said.values() if isinstance(said, dict) else said:
            yield from _texts(item)


def test_every_form_has_replies() -> None:
    forms = {
        f"{strategy.name}.{stage.name}"
        for strategy in STRATEGIES.values()
        for stage in strategy.stages
        if strategy.is_driven and stage.reply is not None
    }
    assert forms <= {line.stage for line in lines()}


@pytest.mark.parametrize(
    ("expected", "read", "name"),
    [
        ("60", "60.", "answer"),
        ("Hampshire", "**Hampshire**", "answer"),
        ({"any_of": ["60", "$60"]}, "$60", "answer"),
        ('["a", "b"]', '["a","b"]', "answer"),
        (["first", "second"], ("1. first", "2. second"), "steps"),
        (["first", "second"], "1. first\n2. second", "steps"),
        (0.5, "0.5", "score"),
        (None, None, "answer"),
        (False, False, "done"),
        ({"a": 1}, {"a": 1}, "stateVariables"),
    ],
)
def test_the_same_in_other_words_is_the_same(expected: Any, read: Any, name: str) -> None:
    assert same(expected, read, name)


@pytest.mark.parametrize(
    ("expected", "read", "name"),
    [
        ("60", "The answer is 60", "answer"),
        ("60", 61, "answer"),
        (r"\frac{1}{6}", "\x0crac{1}{6}", "answer"),
        (None, "null", "answer"),
        (True, "yes", "done"),
        (False, True, "done"),
        ([0.8, 0.3], [0.3, 0.8], "scores"),
        (["first", "second"], ["first"], "steps"),
        (["first"], ["first, and a great deal more that nobody said in it"], "steps"),
        ({"a": 1}, {"a": 2}, "stateVariables"),
        ({"a": 1}, {"a": 1, "b": 2}, "stateVariables"),
        ("if x:\n    y", "if x:\ny", "code"),
    ],
)
def test_something_else_is_not_the_same(expected: Any, read: Any, name: str) -> None:
    assert not same(expected, read, name)
