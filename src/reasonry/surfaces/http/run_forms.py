"""What requests about runs may say, and how the API shows runs: where one stands, rows of lists, pages of a trace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Final, Literal, NotRequired, TypedDict

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, structs

from ...app.agent_calls import MAX_NAMES, AskedRun, ListedParts, Options
from ...app.agent_runs import page_of
from ...app.app import App
from ...app.requests import RunRequest
from ...app.run_head import HeadUsage, RunHead, RunMembers, RunMode
from ...core.budget import Budget
from ...core.pending import Status
from ...core.problem import MAX_PROBLEM_CHARS
from ...engine.coach import document as coached_document
from ...engine.drive import OpenRun
from ...engine.engine import RunView
from ...engine.fork import MAX_QUESTION_CHARS
from ...engine.journal import CALLER
from ...engine.record import Record
from ...errors import ConflictError
from ...guided.arguments import position_of
from ...records import RunRow
from .documents import Document

ListName = Literal["thoughts", "questions", "events", "path", "effects"]
MAX_EFFECT_NAME_CHARS = 200
Prompt = Annotated[str, Meta(min_length=1, max_length=MAX_QUESTION_CHARS)]

ChangedLimits: type[Struct] = msgspec.defstruct(
    "ChangedLimits",
    [(limit.name, limit.type | UnsetType, UNSET) for limit in structs.fields(Budget)],
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
)
"""Limits to set again: those that are named; null lifts one."""


def limits_in(changed: Struct | None) -> Document:
    """Return the limits that are named."""
    named = {} if changed is None else structs.asdict(changed)
    return {name: value for name, value in named.items() if value is not UNSET}


class StartRun(AskedRun, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run to begin."""

    problem: Annotated[str, Meta(min_length=1, max_length=MAX_PROBLEM_CHARS)] | None = None
    mode: RunMode = "driven"
    model: str | None = None
    prompts: Annotated[dict[str, Prompt], Meta(max_length=MAX_NAMES)] = msgspec.field(default_factory=dict)
    """Questions of stages in place of the strategy's own, by `STRATEGY.STAGE`: texts, never files."""
    budget: Budget | None = None

    def request(self) -> RunRequest:
        """Return what is asked for."""
        return self.ask(budget=self.budget, prompts=self.prompts, coached=self.mode == "coached")


class ResumeBody(ListedParts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a run is continued."""

    mode: RunMode | None = None
    """None: as it was; `driven` where a model is named."""
    model: str | None = None
    budget: ChangedLimits | None = None  # pyright: ignore[reportInvalidTypeForm]

    def is_coached(self, was_coached: bool) -> bool:
        """Whether the caller answers the questions from here on."""
        if self.mode is not None or self.model is not None:
            return self.mode == "coached"
        return was_coached


class ForkBody(ResumeBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run to begin from a point of another."""

    at: Annotated[int, Meta(ge=0)] | Annotated[str, Meta(max_length=MAX_EFFECT_NAME_CHARS)]
    """A question, which is asked again; or how many answers are taken over."""
    prompt: Prompt | None = None
    """What is asked in place of that question."""
    options: Options = msgspec.field(default_factory=dict)


class AnswersBody(ListedParts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Answers to questions of a coached run, by their ids: text, or data of the question's schema."""

    answers: dict[str, Any]


# -- shown

MAX_TRACE_CHARS: Final = 1_000_000
"""After so many characters of JSON a page of a trace ends; its first entry is always on it."""


class QuestionDocument(TypedDict):
    """A question of a coached run, and the schema of its answer."""

    id: str
    stage: str
    prompt: str
    answer_schema: Document


class UsageDocument(HeadUsage):
    """The usage of a run; `usd` is null if the price is unknown."""

    input_tokens: int
    output_tokens: int
    cached_input_tokens: int


class RunDocument(RunMembers):
    """A run; its strategy adds members."""

    best_answer: NotRequired[str]
    options: Document
    budget: Budget
    crew: Document
    usage: UsageDocument
    rounds: int
    duration_ms: int
    stage: str
    warnings: list[str]
    forked_from: str | None
    position: int
    questions: list[QuestionDocument]
    note: NotRequired[str]
    best: Document | None
    candidates: list[Document]
    tree: Document | None
    diagnostics: Document


class RunListDocument(TypedDict):
    """A page of runs."""

    runs: list[RunHead]
    next_cursor: str | None


class TracePageDocument(TypedDict):
    """A page of a list of a run's trace; its entries as in `reasonry runs show --json`."""

    run_id: str
    status: Status
    list: ListName
    entries: Sequence[Any]
    next_cursor: str | None


class ComparedDocument(TypedDict):
    """Whether a journal, walked again, led to the same: null where the run has not ended."""

    identical: bool | None
    events: int
    differs: list[str]


class ReplayDocument(TypedDict):
    """Whether the run's journal, walked again without a model, leads to what it left behind."""

    run_id: str
    status: Status
    answer: str | None
    replay: ComparedDocument


class DiffDocument(TypedDict):
    """Where two runs part and what differs between them; as `reasonry runs diff --json`.

    Attributes:
        spend: What each has spent: `name`, `a`, `b`.
        terms: Limits and options that are not the same: `name`, `a`, `b`.
    """

    runs: Document
    fork: Document | None
    parting: Document | None
    spend: list[Document]
    terms: list[Document]


async def run_document(app: App, run_id: str, read: OpenRun | None = None) -> Document:
    """Return where a run stands: what `runs show` has without its lists and nodes, and what a coached run asks.

    Args:
        read: The run, where it has just been read or written.

    Raises:
        NotFoundError: There is no such run.
        StoreError: It is damaged.
    """
    if read is None and (await app.store.run(run_id)).status == "active":
        # One that does not fit its strategy any more shows what its journal says.
        with suppress(ConflictError):
            read = await app.engine.read(run_id, whole=False)
    if read is not None:
        return _document(read.row, read.record, read.chain.seq, read)
    view = await app.engine.view(run_id)
    return _document(view.row, view.record, view.last.seq)


def _document(row: RunRow, record: Record, position: int, read: OpenRun | None = None) -> Document:
    is_coached = record.result.model == CALLER
    coached = coached_document(read) if read is not None and is_coached else {}
    return {
        **record.result.document(nodes=False),
        **record.head,
        "paused": row.paused,
        "mode": "coached" if is_coached else "driven",
        "position": position,
        "questions": [],
        **{name: coached[name] for name in ("questions", "note") if name in coached},
    }


async def trace_page(view: RunView, name: ListName, limit: int, cursor: str | None) -> Document:
    """Return a page of one of the lists of a run's trace.

    Raises:
        UsageError: The cursor is not one of this list.
    """
    after = position_of(cursor)
    entries, more = await asyncio.to_thread(
        lambda: page_of(view.record.entries(name), after, limit, MAX_TRACE_CHARS)
    )
    return {
        "run_id": view.row.run_id,
        "status": view.record.result.status,
        "list": name,
        "entries": entries,
        "next_cursor": str(after + len(entries)) if more else None,
    }
