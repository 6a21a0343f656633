"""Asking again for a reply that could not be used: the question, what was replied, and what is wrong with it."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ..reading.json_in_text import without_surrogates
from .effects import Ask
from .events import Answered

MAX_EXCERPT: Final = 2_000
"""Characters of an unusable reply that are shown to whoever is asked again."""

LAST_REPLY: Final = "\n\nYour last reply was:\n<<<\n"
"""What stands before an unusable reply in the question that asks again."""


def question_text(ask: Ask) -> str:
    """Return a question as it was first put: what was replied to it before is no part of it."""
    return ask.text.partition(LAST_REPLY)[0]


def ask_again(ask: Ask, reply: Answered, reason: str) -> Ask:
    """Return the question once more, with what was wrong with the last reply.

    What was asked before stays the beginning of the prompt, so that providers can cache it. After a reply that was
    cut off a shorter answer is asked for.
    """
    wish = "Answer the same question again"
    if reply.truncated:
        wish += ", much more briefly"
    if ask.form is not None:
        wish += "; reply with one JSON object of the form asked for and nothing else"
    excerpt = _excerpt(without_surrogates(reply.text).strip()) or "(nothing)"
    prompt = f"{ask.prompt}{LAST_REPLY}{excerpt}\n>>>\nIt cannot be used: {reason}.\n{wish}."
    return replace(ask, prompt=prompt)


def _excerpt(text: str) -> str:
    if len(text) <= MAX_EXCERPT:
        return text
    half = MAX_EXCERPT // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
