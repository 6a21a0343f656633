"""What requests about runs may say: the bodies of `/api/runs`, and what they stand for."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, structs

from ...app.agent_calls import ListedParts, Options
from ...app.use_cases import RunRequest
from ...core.budget import Budget
from ...core.problem import MAX_PROBLEM_CHARS
from ...engine.rewording import MAX_QUESTION_CHARS
from ...strategies import DEFAULT_STRATEGY

RunMode = Literal["driven", "coached"]
ListName = Literal["thoughts", "questions", "events", "path", "effects"]
MAX_EFFECT_NAME_CHARS = 200

ChangedLimits: type[Struct] = msgspec.defstruct(
    "ChangedLimits",
    [(limit.name, limit.type | UnsetType, UNSET) for limit in structs.fields(Budget)],
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
)
"""Limits to set anew: those that are named; null lifts one."""


def change_limits(recorded: Budget, changed: Struct | None) -> Budget:
    """Return the limits of a run with those that are named anew."""
    if changed is None:
        return recorded
    named = {name: value for name, value in structs.asdict(changed).items() if value is not UNSET}
    return structs.replace(recorded, **named)


class NamedParts(ListedParts, frozen=True, kw_only=True, rename=None, forbid_unknown_fields=True):
    """What a request may name of what the operator listed."""

    def parts(self) -> dict[str, Any]:
        """Return these names alone, as arguments of other calls take them."""
        return {"verifier": self.verifier, "tools": self.tools, "documents": self.documents}


class StartRun(NamedParts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run to begin."""

    problem: Annotated[str, Meta(max_length=MAX_PROBLEM_CHARS)] | None = None
    """None: the first thought of the session."""
    session_id: str | None = None
    """The session whose thoughts come with the problem."""
    strategy: str = DEFAULT_STRATEGY
    mode: RunMode = "driven"
    model: str | None = None
    options: Options = msgspec.field(default_factory=dict)
    budget: Budget | None = None

    def request(self) -> RunRequest:
        """Return what is asked for."""
        return RunRequest(
            problem=self.problem,
            session=self.session_id,
            strategy=self.strategy,
            options=self.options,
            budget=self.budget,
            participants=self.participants(self.model),
            coached=self.mode == "coached",
        )


class ResumeBody(NamedParts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a run is gone on with."""

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

    start: Annotated[int, Meta(ge=0)] | Annotated[str, Meta(max_length=MAX_EFFECT_NAME_CHARS)] = (
        msgspec.field(name="from")
    )
    """A question or node, which is asked anew; or how many answers are taken over."""
    prompt: Annotated[str, Meta(max_length=MAX_QUESTION_CHARS)] | None = None
    """What is asked in place of that question."""
    options: Options = msgspec.field(default_factory=dict)


class AnswersBody(NamedParts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Answers to questions of a coached run, by their ids: text, or data of the question's schema."""

    answers: dict[str, Any]
