r"""A model that reads its lines from a file: for tests, demonstrations, and playing a model by hand.

`scripted:FILE` names a JSONL file. A line is one of

    {"stage": "branch_evaluation", "reply": {"scores": {"1": 0.7}}, "usage": {"output_tokens": 12, "usd": 0.001}}
    {"stage": "*", "reply": "1. Think\n2. Act"}
    {"stage": "*", "error": "provider_timeout", "message": "…", "retryable": true}

Each ask, and each sample of it, takes the first unused line of its stage (`*` is every stage).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ..core.budget import Usage
from ..core.events import Answered
from ..errors import ModelError, UsageError
from ..runtime.ports import OnText, Question


class ScriptLine(Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a script; it has either `reply` or `error`."""

    stage: str
    reply: Any = UNSET
    error: str | UnsetType = UNSET
    message: str = ""
    retryable: bool = False
    usage: Usage = Usage()
    delay_ms: int = 0
    truncated: bool = False
    refused: bool = False

    def __post_init__(self) -> None:
        if (self.reply is UNSET) == (self.error is UNSET):
            raise ValueError("a line has either `reply` or `error`")


class ScriptedModel:
    """Plays a script.

    Args:
        lines: Taken from the top, each once.
        name: As a user would write it after `--model`.
    """

    def __init__(self, lines: Iterable[ScriptLine], name: str = "scripted") -> None:
        self.name = name
        self._lines = list(lines)
        self._used = [False] * len(self._lines)

    @classmethod
    def of(cls, *lines: dict[str, Any]) -> ScriptedModel:
        """Return a model that plays lines given as data."""
        return cls([msgspec.convert(line, ScriptLine) for line in lines])

    @classmethod
    def open(cls, path: str) -> ScriptedModel:
        """Return a model that plays a file.

        Raises:
            UsageError: The file cannot be read, or a line is broken: `line` says which, the message why.
        """
        try:
            text = Path(path).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise UsageError(f"the script {path!r} cannot be read: {error}", option="model") from None
        numbered = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
        return cls([_read_line(path, n, line) for n, line in numbered], f"scripted:{path}")

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """Answer with the first unused line of the question's stage.

        Raises:
            ModelError: The line says so, or none is left (`script_exhausted`).
        """
        line = self._take(question.stage)
        if line is None:
            raise ModelError(
                f"{self.name} has no line left for stage {question.stage}",
                code="script_exhausted",
                stage=question.stage,
            )
        await asyncio.sleep(line.delay_ms / 1000)
        if isinstance(line.error, str):
            message = line.message or f"{self.name} says {line.error} at stage {question.stage}"
            raise ModelError(message, code=line.error, retryable=line.retryable)
        text = line.reply if isinstance(line.reply, str) else msgspec.json.encode(line.reply).decode()
        if on_text is not None:
            on_text(text)
        return Answered(
            text, usage=line.usage, model=self.name, truncated=line.truncated, refused=line.refused
        )

    def rewind(self, asked: Sequence[tuple[str, bool]]) -> None:
        """Go to where a run stands that is taken up again.

        Args:
            asked: The stage of each question of the run, in the order asked, and whether it was answered: the line
                of an answered one is used, that of another is kept for when it is asked again.
        """
        given = [False] * len(self._lines)
        for stage, answered in asked:
            index = self._first(stage, given)
            if index is not None:
                given[index] = True
                self._used[index] = self._used[index] or answered

    async def close(self) -> None:
        """Do nothing: there is nothing to give back."""

    def _take(self, stage: str) -> ScriptLine | None:
        index = self._first(stage, self._used)
        if index is None:
            return None
        self._used[index] = True
        return self._lines[index]

    def _first(self, stage: str, used: Sequence[bool]) -> int | None:
        wanted = (stage, "*")
        return next((n for n, line in enumerate(self._lines) if not used[n] and line.stage in wanted), None)


def _read_line(path: str, number: int, line: str) -> ScriptLine:
    try:
        return msgspec.json.decode(line, type=ScriptLine)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise UsageError(
            f"line {number} of the script {path!r} is broken: {error}", option="model", line=number
        ) from None
