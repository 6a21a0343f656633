"""Answers kept in a file and played again: a run recorded with a paid model can be repeated for nothing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.events import Answered
from ..core.metering import PriceOf, no_price
from ..engine.ports import Model, OnText, Question
from ..errors import ModelError, UsageError
from ..masking import SECRETS
from .scripted import read_lines


class Recording(Struct, frozen=True, forbid_unknown_fields=True):
    """One answer, found again by what was asked."""

    stage: str
    digest: str
    """Of system and prompt."""
    sample: int
    answer: Answered


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
        self.price: PriceOf = getattr(model, "price", no_price)
        self.is_free = bool(getattr(model, "is_free", False))
        self.rewind: Callable[[Sequence[tuple[str, bool]]], None] = getattr(
            model, "rewind", lambda asked: None
        )
        try:
            # Others on the machine may not read it: replies may be confidential.
            self._file = open(path, "ab", opener=lambda path, flags: os.open(path, flags, 0o600))  # noqa: SIM115
            if self._file.tell():
                # A crash may have cut off the last line; an empty one is passed over.
                self._file.write(b"\n")
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise UsageError(f"the recording {path!r} cannot be written: {why}", option="record") from None

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """Answer as the model does."""
        answer = await self.model.answer(question, on_text)
        kept = replace(answer, text=SECRETS.mask(answer.text))
        line = Recording(question.stage, digest(question), question.ask.sample, kept)
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()
        return answer

    async def close(self) -> None:
        """Close the file and the model."""
        self._file.close()
        await self.model.close()


class RecordedModel(Model):
    """Plays a recording: the same question gets the same answer, asked again the next one recorded for it.

    The last answer recorded for a question serves for good, so that a run can be resumed or forked over a recording.

    Args:
        path: A file that a `Recorder` wrote.

    Raises:
        UsageError: It cannot be read, or a line is broken: `line` says which.
    """

    is_free = True

    def __init__(self, path: str) -> None:
        self.name = f"recorded:{path}"
        self._answers: dict[tuple[str, str, int], list[Recording]] = {}
        for recording in read_lines(path, Recording, "recording"):
            key = recording.stage, recording.digest, recording.sample
            self._answers.setdefault(key, []).append(recording)

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
        recording = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if on_text is not None:
            on_text(recording.answer.text)
        return replace(recording.answer, model=self.name)
