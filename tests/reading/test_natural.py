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


@pytest.mark.parametrize("line", LINES, ids=[line["id"] for line in LINES])
def test_a_reply_gives_what_a_person_takes_from_it_and_all_of_it(line: dict[str, Any]) -> None:
    answer = answer_of(line)
    if line["id"] in ASKED_AGAIN or not line["answers"]:
        assert answer is None
    else:
        assert any(letters(right) in letters(answer or "") for right in line["answers"])
