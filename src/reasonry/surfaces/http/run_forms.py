"""Types of the JSON documents in requests and replies about runs."""

from contextlib import suppress
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, structs

from ...app.agent_calls import MAX_NAMES, AskedRun, ListedParts, Options
from ...app.app import App
from ...app.requests import RunRequest
from ...app.run_head import HeadUsage, RunHead, RunMembers, RunMode
from ...blocks.why import Why
from ...core.budget import Budget
from ...core.pending import Status
from ...core.problem import MAX_PROBLEM_CHARS
from ...engine.coach import document as coached_document
from ...engine.fork import MAX_QUESTION_CHARS
from ...engine.journal import CALLER
from ...engine.open_run import OpenRun
from ...errors import ConflictError
from .documents import Document

MAX_EFFECT_NAME_CHARS = 200
Prompt = Annotated[str, Meta(min_length=1, max_length=MAX_QUESTION_CHARS)]

ChangedLimits: type[Struct] = msgspec.defstruct(
    "ChangedLimits",
    [(limit.name, limit.type | UnsetType, UNSET) for limit in structs.fields(Budget)],
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
)
"""A request body with the limits of a run to change. A value of null removes the limit."""


def limits_in(changed: Struct | None) -> Document:
    """Return the limits that a request changes, by name. The value None removes a limit."""
    named = {} if changed is None else structs.asdict(changed)
    return {name: value for name, value in named.items() if value is not UNSET}


class StartRun(AskedRun, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to start a run."""

    problem: Annotated[str, Meta(min_length=1, max_length=MAX_PROBLEM_CHARS)] | None = None
    mode: RunMode = "driven"
    model: str | None = None
    prompts: Annotated[dict[str, Prompt], Meta(max_length=MAX_NAMES)] = msgspec.field(default_factory=dict)
    """Maps `STRATEGY.STAGE` to a new text for the question of this stage. The value is never the name of a file."""
    budget: Budget | None = None

    def request(self) -> RunRequest:
        """Return the request as a `RunRequest`."""
        return self.ask(budget=self.budget, prompts=self.prompts, coached=self.mode == "coached")


class ResumeBody(ListedParts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to resume a run."""

    mode: RunMode | None = None
    """The new mode. Without a mode, a request that names a model sets `driven`. Otherwise, the mode does not change."""
    model: str | None = None
    budget: ChangedLimits | None = None  # pyright: ignore[reportInvalidTypeForm]

    def is_coached(self, was_coached: bool) -> bool:
        """Whether the caller, not a model, answers the questions of the run from now on."""
        if self.mode is not None or self.model is not None:
            return self.mode == "coached"
        return was_coached


class ForkBody(ResumeBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to fork a run."""

    at: Annotated[int, Meta(ge=0)] | Annotated[str, Meta(max_length=MAX_EFFECT_NAME_CHARS)]
    """Where the fork begins: the id of the question to ask again, or how many answers to copy from the source run."""
    prompt: Prompt | None = None
    """The new text of the question that `at` names."""
    options: Options = msgspec.field(default_factory=dict)


class AnswersBody(ListedParts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Answers to a coached run, by question id: text, or data that fits the `answer_schema` of the question."""

    answers: dict[str, Any]


# -- the documents of replies


class QuestionDocument(TypedDict):
    """A question of a coached run, and the schema of its answer."""

    id: str
    stage: str
    prompt: str
    answer_schema: Document


class UsageDocument(HeadUsage):
    """The usage of a run; `usd` is null if the price is unknown."""

    samples: int
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int


class RunDocument(RunMembers):
    """The state of a run. The strategy of the run may add members."""

    why: Why | None
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


class ComparedDocument(TypedDict):
    """The comparison of a replay with the run's record. `identical` is null for an active run."""

    identical: bool | None
    events: int
    differs: list[str]


class ReplayDocument(TypedDict):
    """A run, and in `replay` the result of replaying its journal without a model."""

    run_id: str
    status: Status
    answer: str | None
    replay: ComparedDocument


class DiffDocument(TypedDict):
    """The differences between two runs, as in `reasonry runs diff --json`. `parting` is the first difference.

    Attributes:
        spend: The spending of the runs `a` and `b`, in rows of `name`, `a` and `b`.
        terms: The limits, options and other settings that differ, in rows of `name`, `a` and `b`.
    """

    runs: Document
    fork: Document | None
    parting: Document | None
    spend: list[Document]
    terms: list[Document]


async def run_document(app: App, run_id: str, read: OpenRun | None = None) -> Document:
    """Return the state of a run as a `RunDocument`. Its `questions` are empty unless the run is coached.

    Args:
        read: The run, if the caller has just read or written the run. If None, the run is read from the store.

    Raises:
        NotFoundError: The run does not exist.
        StoreError: The run is damaged.
    """
    if read is None and (await app.store.run(run_id)).status == "active":
        # A run that no longer fits its strategy is shown from its journal.
        with suppress(ConflictError):
            read = await app.engine.read(run_id, whole=False)
    if read is not None:
        row, record, position = read.row, read.record, read.chain.seq
    else:
        row, record, last = await app.engine.view(run_id)
        position = last.seq
    is_coached = record.result.model == CALLER
    coached = coached_document(read) if read is not None and is_coached else {"questions": []}
    return {
        **record.result.document(nodes=False),
        **record.head,
        "paused": row.paused,
        "mode": "coached" if is_coached else "driven",
        "position": position,
        **{name: coached[name] for name in ("questions", "note") if name in coached},
    }
