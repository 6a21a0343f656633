"""The forms of all replies, in the pipeline's order."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from ...core.answering import Answer

Level = Literal["straightforward", "moderate", "complex", "highly_complex"]

TASKS: dict[str, tuple[int, int]] = {
    "straightforward": (2, 3),
    "moderate": (3, 4),
    "complex": (4, 5),
    "highly_complex": (5, 6),
}
"""How many tasks a plan should have at each level."""

MAX_TASKS = 24
"""Tasks a plan may have, whatever the level."""

Texts = tuple[str, ...] | str


class Complexity(Struct, frozen=True, omit_defaults=True):
    """How demanding the query is, and why."""

    complexity_level: Annotated[Level, Meta(description="How demanding the query is.")]
    dimensions: Annotated[Texts, Meta(description="The aspects that need to be addressed.")] = ()
    key_challenges: Annotated[Texts, Meta(description="What makes it difficult.")] = ()
    sequential_dependencies: Annotated[Texts, Meta(description="What must happen in order.")] = ()
    iteration_strategy: Annotated[str, Meta(description="How many passes are needed, and for what.")] = ""


class PlannedTask(Struct, frozen=True, omit_defaults=True):
    """One task of a plan."""

    resource_name: Annotated[str, Meta(description="Name of a resource from the list.")]
    task_query: Annotated[str, Meta(description="What the resource is to accomplish.")]
    depends_on: Annotated[
        tuple[int, ...], Meta(description="Numbers of the earlier tasks whose results it needs.")
    ] = ()


class PlanReply(Struct, frozen=True):
    """A plan."""

    tasks: Annotated[
        tuple[PlannedTask, ...],
        Meta(min_length=1, max_length=MAX_TASKS, description="In the order to run them."),
    ]


class ScoreReply(Struct, frozen=True):
    """What a plan is worth."""

    overall_score: Annotated[float, Meta(ge=0, le=100, description="0 is useless, 100 cannot be bettered.")]
    reason: Annotated[str, Meta(description="Strengths and weaknesses in a sentence or two.")] = ""


class ConversionReply(Struct, frozen=True):
    """A task as the input of its resource."""

    tool_input: Annotated[dict[str, Any] | str, Meta(description="The resource's arguments, by name.")]


class KnowledgeReply(Struct, frozen=True):
    """What is known."""

    answer: Annotated[str, Meta(min_length=1, description="What is known, with passages cited as [n].")]
    confidence: Annotated[float | str, Meta(description="How sure that is, 0 to 1.")]

    def __post_init__(self) -> None:
        if isinstance(self.confidence, float) and not 0 <= self.confidence <= 1:
            raise ValueError("confidence is a number from 0 to 1")


class LogicReply(Struct, frozen=True, omit_defaults=True):
    """A deduction."""

    steps: Annotated[Texts, Meta(description="One inference each, in order.")]
    conclusion: Annotated[str, Meta(min_length=1, description="What follows.")]
    formal_claim: Annotated[
        str | dict[str, Any] | None, Meta(description="The claim in the form the claim checker reads.")
    ] = None


class CodeReply(Struct, frozen=True):
    """A program."""

    code: Annotated[str, Meta(min_length=1, description="Python; its last line is the result.")]


class ExecutionReply(Struct, frozen=True, omit_defaults=True):
    """What carrying out a task brings: `answer` and `confidence` from `knowledge`, `steps` and `conclusion` from
    `logic_kernel`, `code` for `py_executor`.
    """  # noqa: D205

    answer: Annotated[str | None, Meta(description="`knowledge`: what is known.")] = None
    confidence: Annotated[float | str | None, Meta(description="`knowledge`: how sure that is, 0 to 1.")] = (
        None
    )
    steps: Annotated[Texts | None, Meta(description="`logic_kernel`: one inference each, in order.")] = None
    conclusion: Annotated[str | None, Meta(description="`logic_kernel`: what follows.")] = None
    formal_claim: Annotated[
        str | dict[str, Any] | None,
        Meta(description="`logic_kernel`: the claim in the form the checker reads."),
    ] = None
    code: Annotated[str | None, Meta(description="`py_executor`: Python; its last line is the result.")] = (
        None
    )


class QualityReply(Struct, frozen=True):
    """Whether a result may be built upon."""

    quality: Literal["ACCEPTED", "REJECTED"]
    reason: Annotated[str, Meta(description="Why.")] = ""


class DecisionReply(Struct, frozen=True, omit_defaults=True):
    """Whether another iteration is worth it."""

    continue_iterations: Annotated[bool, Meta(description="Whether more work is needed.")]
    quality_summary: Annotated[str, Meta(description="How good the work is so far.")] = ""
    decision_rationale: Annotated[str, Meta(description="Why to go on, or to stop.")] = ""
    recommendations_for_next_iteration: Annotated[
        Texts, Meta(description="What to focus on, if going on.")
    ] = ""


class SynthesisReply(Struct, frozen=True, omit_defaults=True):
    """All that was found, in one piece."""

    answer: Annotated[Answer, Meta(description="The whole answer with its reasoning.")]
    final_answer: Annotated[Answer, Meta(description="The answer for the user: polished and direct.")]
    key_findings: Annotated[Texts, Meta(description="What was found, one finding each.")] = ()
    title: Annotated[str, Meta(description="A title for the analysis.")] = ""
    headline: Annotated[str, Meta(description="The upshot in one line.")] = ""
    image_caption: Annotated[str | None, Meta(description="Caption of an image, if one is asked for.")] = None

    def __post_init__(self) -> None:
        if not str(self.answer).strip() or not str(self.final_answer).strip():
            raise ValueError("answer and final_answer must not be empty")


class FocusReply(Struct, frozen=True):
    """The answer a program can branch on."""

    value: Annotated[str | int | float | bool, Meta(description="One of the allowed words, or a number.")]


def texts(given: Texts | None) -> tuple[str, ...]:
    """Return a list that may have come as one text."""
    if given is None or isinstance(given, str):
        return (given,) if given else ()
    return given
