r"""Models that read their replies from a file: a script, or the recording of a run.

Use a script for tests, for demonstrations, or to write the replies of a model yourself. A recording of a paid model
repeats a run for free. `scripted:FILE` names a JSONL file. A line has one of these forms:

    {"stage": "branch_evaluation", "reply": {"scores": {"1": 0.7}}, "usage": {"output_tokens": 12, "usd": 0.001}}
    {"stage": "*", "reply": "1. Think\n2. Act"}
    {"stage": "*", "error": "provider_timeout", "message": "…", "retryable": true}

Each sample of a question uses the first unused line for the question's stage. The stage `*` in a line means any stage.
`usage` may contain `calls`, `input_tokens`, `output_tokens`, `cached_input_tokens` and `usd`. A line may also have
`delay_ms` (for a slow model). A line with a reply may also have `truncated` (cut off) or `refused`.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from ..core.events import Answered, Usage
from ..engine.policy import MAX_ATTEMPTS
from ..engine.ports import Model, OnText, Question
from ..engine.prices import PriceOf
from ..errors import ModelError, UsageError
from ..system.masking import SECRETS
from ..system.processes import read_regular_file
from ..text import nearest_difference

L = TypeVar("L", bound=Struct)

MAX_FILE_BYTES = 256_000_000

Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]


class LineUsage(Struct, frozen=True, forbid_unknown_fields=True):
    """The usage of a scripted reply."""

    calls: Count = 1
    input_tokens: Count = 0
    output_tokens: Count = 0
    cached_input_tokens: Count = 0
    usd: Annotated[float, Meta(ge=0, le=1e9)] | None = None


class ScriptLine(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a script, with either `reply` or `error`."""

    stage: Annotated[str, Meta(min_length=1)]
    reply: Any = UNSET
    error: str | UnsetType = UNSET
    message: str = ""
    retryable: bool = False
    usage: LineUsage = LineUsage()
    delay_ms: Annotated[int, Meta(ge=0, le=86_400_000)] = 0
    truncated: bool = False
    refused: bool = False

    def __post_init__(self) -> None:
        if (self.reply is UNSET) == (self.error is UNSET):
            raise ValueError("a line has either `reply` or `error`")


class ScriptedModel(Model):
    """A model that takes its replies from a script."""

    is_free = True

    def __init__(self, lines: Iterable[ScriptLine], name: str = "scripted") -> None:
        self.name = name
        self._lines = dict(enumerate(lines, 1))
        self._unused = self._lines.copy()

    @classmethod
    def of(cls, *lines: dict[str, Any]) -> ScriptedModel:
        """Return a model with `lines` as its script.

        Raises:
            UsageError: A line is invalid. The error's `line` is the line number, counted from 1.
        """
        return cls(
            _check_line(partial(msgspec.convert, line, ScriptLine), n, "the script")
            for n, line in enumerate(lines, 1)
        )

    @classmethod
    def open(cls, path: str) -> ScriptedModel:
        """Return a model that reads its script from a file.

        Raises:
            UsageError: The file cannot be read, or a line is invalid. The error's `line` is the line number.
        """
        return cls(read_lines(path, ScriptLine, "script"), f"scripted:{path}")

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """Answer with the first unused line of the question's stage.

        Raises:
            ModelError: The line contains an error, or no line is left (`script_exhausted`).
        """
        number = _first(question.stage, self._unused)
        if number is None:
            message = f"{self.name} has no line left for stage {question.stage}"
            message += f"; the next unused one is {self.left_over[0]}" if self.left_over else ""
            raise ModelError(message, code="script_exhausted", stage=question.stage)
        line = self._unused.pop(number)
        await asyncio.sleep(line.delay_ms / 1000)
        if isinstance(line.error, str):
            message = line.message or f"{self.name} says {line.error} at stage {question.stage}"
            raise ModelError(message, code=line.error, retryable=line.retryable)
        text = line.reply if isinstance(line.reply, str) else msgspec.json.encode(line.reply).decode()
        if on_text is not None:
            on_text(text)
        return Answered(
            text,
            usage=Usage(**msgspec.structs.asdict(line.usage)),
            model=self.name,
            truncated=line.truncated,
            refused=line.refused,
        )

    def rewind(self, asked: Sequence[tuple[str, bool]]) -> None:
        """Skip the lines that a resumed run has used.

        Args:
            asked: The stage of each question of the run, in order, and whether the question was answered. The lines of
                answered questions are used up; the lines of open questions are kept.
        """
        left = self._lines.copy()
        for stage, answered in asked:
            for _ in range(MAX_ATTEMPTS):
                number = _first(stage, left)
                if number is None:
                    break
                line = left.pop(number)
                if answered:
                    self._unused.pop(number, None)
                # An answered question has also used the retryable errors before its answer.
                if not answered or not line.retryable or line.error is UNSET:
                    break

    @property
    def left_over(self) -> list[str]:
        """The unused lines, each as a text with its number and its stage."""
        return [f"reply {number} ({line.stage})" for number, line in self._unused.items()]


def _first(stage: str, lines: Mapping[int, ScriptLine]) -> int | None:
    return next((number for number, line in lines.items() if line.stage in (stage, "*")), None)


def read_lines(path: str, kind: type[L] | Any, noun: str) -> list[L]:
    """Read and check a file with one JSON document in each line. Empty lines are skipped.

    Args:
        path: A UTF-8 file, with or without a byte order mark.
        noun: The name of the file in errors: `script` or `recording`.

    Raises:
        UsageError: `path` is not a regular, readable file, or a line is invalid. The error's `line` is the line number.
        TooLargeError: The file is over 256 MB.
    """
    data = read_regular_file(path, MAX_FILE_BYTES, label=noun, option="model")
    decoder = msgspec.json.Decoder(kind)
    # Only a line feed ends a line, because JSON text may contain other line separators unescaped.
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return [
        _check_line(partial(decoder.decode, line), number, f"the {noun} {path!r}", file=path)
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]


def _check_line(read: Callable[[], L], number: int, source: str, **details: Any) -> L:
    try:
        return read()
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        message = f"line {number} of {source} cannot be read: {why}"
        raise UsageError(message, option="model", line=number, **details) from None


# -- recordings


class Recording(Struct, frozen=True, forbid_unknown_fields=True, tag_field="line", tag="answer"):
    """An answer, stored under the digest of its question.

    Attributes:
        digest: The digest of the whole question.
        text: The question; empty in a recorded table.
        id: In a recorded table, the id of the question in its run.
        seal: In a recorded table, the digest of this line and all lines before it.
    """

    stage: str
    digest: str
    sample: int
    answer: Answered
    text: str = ""
    id: str = ""
    seal: str = ""

    @property
    def question(self) -> tuple[str, str, int]:
        """The stage and the digest of the question, and the number of the sample."""
        return self.stage, self.digest, self.sample


class TableLine(Struct, frozen=True, forbid_unknown_fields=True, tag_field="line", tag="table"):
    """Any line of a recorded table except a `Recording`; see `compare.recorded_table`."""

    part: dict[str, msgspec.Raw]
    seal: str = ""


RecordingLine = Recording | TableLine


def digest(question: Question) -> str:
    """Return a digest of a question. Equal questions have equal digests."""
    asked = "\0".join(text for _, text in question.ask.messages)
    return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:24]


class Recorder:
    """Asks a model and appends each answer to a file.

    Raises:
        UsageError: The file cannot be written.
    """

    def __init__(self, model: Model, path: str) -> None:
        self.model, self.name = model, model.name
        if price := getattr(model, "price", None):
            # A model without `price` states its dollars with each answer.
            self.price: PriceOf = price
        self.is_free = bool(getattr(model, "is_free", False))
        self.rewind: Callable[[Sequence[tuple[str, bool]]], None] = getattr(
            model, "rewind", lambda asked: None
        )
        try:
            # Other users of the machine must not read the file: replies may be confidential.
            self._file = open(path, "ab", opener=lambda path, flags: os.open(path, flags, 0o600))  # noqa: SIM115
            if self._file.tell():
                # A crash may have cut off the last line. An empty line is skipped.
                self._file.write(b"\n")
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise UsageError(f"the recording {path!r} cannot be written: {why}", option="record") from None

    @property
    def left_over(self) -> list[str]:
        """See `ScriptedModel.left_over`."""
        return getattr(self.model, "left_over", [])

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """Return the model's answer, and append it to the file."""
        answer = await self.model.answer(question, on_text)
        kept, text = replace(answer, text=SECRETS.mask(answer.text)), SECRETS.mask(question.prompt)
        line = Recording(question.stage, digest(question), question.ask.sample, kept, text)
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()
        return answer

    async def close(self) -> None:
        """Close the file and the model."""
        self._file.close()
        await self.model.close()


class RecordedModel(Model):
    """A model that replays a recording: each question gets its recorded answers in order.

    The last answer of a question is repeated without limit, so that a run with a recording can be resumed or forked.

    Args:
        path: A file written by `Recorder`, or a recorded table of `reasonry compare`.

    Raises:
        UsageError: The file is not readable, or a line is invalid. The error's `line` is the line number.
    """

    is_free = rewinds_for_others = True

    def __init__(self, path: str) -> None:
        self.name = f"recorded:{path}"
        self._answers: dict[tuple[str, str, int], list[Recording]] = {}
        lines = read_lines(path, RecordingLine, "recording")
        self.lines = [line for line in lines if isinstance(line, Recording)]
        self._used, self._earlier = set[int](), Counter[str]()
        for recording in self.lines:
            self._answers.setdefault(recording.question, []).append(recording)

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """Return the recorded answer of the question, or raise ModelError (`script_exhausted`)."""
        waiting = self._answers.get((question.stage, digest(question), question.ask.sample))
        if not waiting:
            alike = [line.text for line in self.lines if line.stage == question.stage]
            place, was, now = nearest_difference(question.prompt, alike or [line.text for line in self.lines])
            raise ModelError(
                f"{self.name} has no answer for this question at stage {question.stage}; the nearest one differs at "
                f"character {place}. Recorded: {was} Asked: {now}",
                code="script_exhausted",
                stage=question.stage,
            )
        recording = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        self._used.add(id(recording))
        if on_text is not None:
            on_text(recording.answer.text)
        return replace(recording.answer, model=self.name)

    def rewind(self, asked: Sequence[tuple[str, bool]]) -> None:
        """Count the answered questions of each stage in a resumed run. `left_over` omits as many lines of the stage."""
        self._earlier = Counter(stage for stage, answered in asked if answered)

    @property
    def left_over(self) -> list[str]:
        """See `ScriptedModel.left_over`."""
        earlier, left = self._earlier.copy(), list[str]()
        for number, line in enumerate(self.lines, 1):
            if id(line) not in self._used:
                earlier[line.stage] -= 1
                left += [f"reply {number} ({line.stage})"] * (earlier[line.stage] < 0)
        return left
