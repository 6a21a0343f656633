"""Answers kept in a file and played again: a run recorded with a paid model can be repeated for nothing."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
from msgspec import Struct

from ..core.budget import Usage
from ..core.events import Answered
from ..errors import ModelError, UsageError
from ..runtime.ports import Model, OnText, Question


class Recording(Struct, frozen=True, forbid_unknown_fields=True):
    """One answer, found again by what was asked."""

    stage: str
    digest: str
    """Of system and prompt."""
    sample: int
    reply: str
    usage: Usage = Usage()
    model: str = ""
    truncated: bool = False
    refused: bool = False


def digest(question: Question) -> str:
    """Return what two questions have in common that are the same question."""
    asked = f"{question.ask.system}\0{question.ask.prompt}"
    return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:24]


class Recorder:
    """Asks a model and appends each answer to a file.

    Raises:
        UsageError: The file cannot be written.
    """

    def __init__(self, model: Model, path: str) -> None:
        self.model, self.name = model, model.name
        try:
            self._file = Path(path).open("ab")  # noqa: SIM115, closed by `close`
        except OSError as error:
            raise UsageError(f"the recording {path!r} cannot be written: {error.strerror}") from None

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """Answer as the model does."""
        answer = await self.model.answer(question, on_text)
        line = Recording(
            question.stage,
            digest(question),
            question.ask.sample,
            answer.text,
            answer.usage,
            answer.model,
            answer.truncated,
            answer.refused,
        )
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()
        return answer

    async def close(self) -> None:
        """Close the file and the model."""
        self._file.close()
        await self.model.close()


class RecordedModel:
    """Plays a recording: the same question gets the same answer, asked again the next one recorded for it.

    The last answer recorded for a question serves for good, so that a run can be resumed or forked over a recording.

    Args:
        path: A file that a `Recorder` wrote.

    Raises:
        UsageError: It cannot be read, or a line is broken: `line` says which.
    """

    def __init__(self, path: str) -> None:
        self.name = f"recorded:{path}"
        self._answers: dict[tuple[str, str, int], list[Recording]] = {}
        try:
            text = Path(path).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise UsageError(f"the recording {path!r} cannot be read: {error}", option="model") from None
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                one = _read(path, number, line)
                self._answers.setdefault((one.stage, one.digest, one.sample), []).append(one)

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """Answer as recorded.

        Raises:
            ModelError: `script_exhausted`: this was never asked.
        """
        waiting = self._answers.get((question.stage, digest(question), question.ask.sample))
        if not waiting:
            raise ModelError(
                f"{self.name} has no answer for this question at stage {question.stage}",
                code="script_exhausted",
                stage=question.stage,
            )
        one = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if on_text is not None:
            on_text(one.reply)
        return Answered(
            one.reply, usage=one.usage, model=self.name, truncated=one.truncated, refused=one.refused
        )

    async def close(self) -> None:
        """Do nothing: there is nothing to give back."""


def _read(path: str, number: int, line: str) -> Recording:
    try:
        return msgspec.json.decode(line, type=Recording)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise UsageError(
            f"line {number} of the recording {path!r} is broken: {error}", option="model", line=number
        ) from None
