"""Answers: the form they are asked for in, and what a verifier's verdict does to one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from .effects import Verify
from .events import Failed, Verified

REFUTED = "The answer {answer!r} was checked and is wrong."

_STATED = re.compile(
    r"(?:^|[.!?:]\s|(?=\b(?:so|thus|hence|therefore)\b))[\s*_#>-]*"
    r"(?:(?:so|thus|hence|therefore|then|and|finally|in conclusion)[,:]?\s+)*(?:(?:the|my|our)\s+)?"
    r"(?:(?:final|correct)\s+)?answer[*_]*\s*(?:is\b\s*:?|:|=)[\s*_]*"
    r"(?P<answer>(?:(?![.!?]\s)[^\n])+?)[*_]*\.?[*_]*\Z",
    re.IGNORECASE | re.MULTILINE,
)
_LEFT_OPEN = re.compile(
    r"(?:not|un(?:known|clear|certain|determined)|still|yet|open|what|which|where|when|how|whether|that|to\s+be|given\s+by"
    r"|found\s+by|obtained|something)\b",
    re.IGNORECASE,
)


Answer = Annotated[str | int | float, Meta(description="The answer alone.")]
"""Models that are asked for a number often give one; it is taken as the text they would have written."""


class AnswerReply(Struct, frozen=True):
    """The answer."""

    answer: Answer

    def __post_init__(self) -> None:
        if not self.text:
            raise ValueError("the answer is empty")

    @property
    def text(self) -> str:
        """The answer as text."""
        return str(self.answer).strip()


class Ruling(Struct, frozen=True):
    """What is left of an answer that was looked at.

    Attributes:
        answer: None if it was proved wrong; the verifier's own closed form where it gave one.
        proved: Whether it was proved right.
        objection: With a wrong answer: the sentence to put to whoever gave it.
    """

    answer: str | None
    proved: bool = False
    objection: str = ""


def stated_answer(text: str) -> str | None:
    """Return the answer that a text in English ends in: "… The answer is 5."; None: it states none at its end."""
    found = _STATED.search(text.strip()[-1000:])
    return None if found is None or _LEFT_OPEN.match(found["answer"]) else found["answer"].strip()


def claim(problem: str, thoughts: Iterable[str], answer: str) -> Verify:
    """Return the effect that has an answer looked at."""
    return Verify(problem, (*thoughts, answer), final=True)


def rule(answer: str, verdict: Verified | Failed) -> Ruling:
    """Apply a verdict. A verifier that failed has said nothing."""
    if isinstance(verdict, Failed) or verdict.verdict == "unknown":
        return Ruling(answer)
    if verdict.verdict == "right":
        return Ruling(verdict.answer or answer, proved=True)
    return Ruling(None, objection=f"{REFUTED.format(answer=answer)} {verdict.detail}".strip())
