"""A fork may put one of its questions in other words.

The machine goes by what the strategy asks, and keeps a digest of that. So the other words take the place of the
question where it waits for its answer, and a later try of it goes on from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from ..core.effects import Ask
from ..core.machine import Pending, Snapshot, Step
from ..core.problem import check_characters
from ..errors import TooLargeError, UsageError

MAX_QUESTION_CHARS: Final = 400_000
"""Of a question in other words."""


def check_rewordings(texts: Mapping[str, str]) -> None:
    """Check the texts that questions are to have, by their ids.

    Raises:
        UsageError: One is empty, or cannot be stored or sent.
        TooLargeError: One is too long.
    """
    for text in texts.values():
        if not text.strip():
            raise UsageError("prompt is empty; say what is to be asked", field="prompt")
        if len(text) > MAX_QUESTION_CHARS:
            message = f"prompt has {len(text):,} characters; the limit is {MAX_QUESTION_CHARS:,}"
            raise TooLargeError(message, field="prompt", limit=MAX_QUESTION_CHARS)
        check_characters(text, "prompt")


def reword(step: Step, texts: Mapping[str, str]) -> Step:
    """Return a step in which these questions have other texts, wherever they wait for an answer."""
    if not texts:
        return step
    effects = tuple(_reword_one(pending, texts, pending.id) for pending in step.effects)
    return replace(step, snapshot=_reword_open(step.snapshot, texts, ""), effects=effects)


def _reword_open(snapshot: Snapshot, texts: Mapping[str, str], prefix: str) -> Snapshot:
    pending = tuple(_reword_one(waiting, texts, prefix + waiting.id) for waiting in snapshot.pending)
    return replace(snapshot, pending=pending)


def _reword_one(waiting: Pending, texts: Mapping[str, str], effect_id: str) -> Pending:
    if waiting.child is not None:
        return replace(waiting, child=_reword_open(waiting.child, texts, f"{effect_id}/"))
    if isinstance(waiting.effect, Ask) and effect_id in texts:
        return replace(waiting, effect=waiting.effect.in_other_words(texts[effect_id]))
    return waiting
