"""The forms of all replies, in the order of the stages, and the functions that format results for questions.

The result document contains results as data. Questions show results as text, without JSON and without scores.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from ...blocks.answers import Answer
from ...blocks.evidence import evidence_text, passage_place, passages_text

Quality = Literal["ACCEPTED", "REJECTED"]
Level = Literal["straightforward", "moderate", "complex", "highly_complex"]

TASKS: dict[str, tuple[int, int]] = {
    "straightforward": (2, 3),
    "moderate": (3, 4),
    "complex": (4, 5),
    "highly_complex": (5, 6),
}
"""For each level of complexity, the fewest and the most tasks of a plan."""

MAX_TASKS = 24
"""The most tasks of a plan, even if the option `enforce_task_counts` is off."""


class Complexity(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The complexity of the query, with reasons."""

    dimensions: Annotated[tuple[str, ...], Meta(description="The aspects that need to be addressed.")] = ()
    key_challenges: Annotated[tuple[str, ...], Meta(description="What makes it difficult.")] = ()
    sequential_dependencies: Annotated[tuple[str, ...], Meta(description="What must happen in order.")] = ()
    iteration_strategy: Annotated[str, Meta(description="How many passes are needed, and for what.")] = ""
    complexity_level: Annotated[Level, Meta(description="How demanding the query is.")]

    @property
    def suggested_tasks(self) -> str:
        """The minimum and maximum number of tasks in a plan at this level, as text: `2-3`."""
        return "{}-{}".format(*TASKS[self.complexity_level])


class PlannedTask(Struct, frozen=True, omit_defaults=True):
    """One task of a plan."""

    resource_name: Annotated[str, Meta(description="Name of a resource from the list.")]
    task_query: Annotated[str, Meta(description="What the resource is to accomplish.")]
    depends_on: Annotated[tuple[int, ...], Meta(description="Earlier tasks whose results it needs.")] = ()


class PlanReply(Struct, frozen=True):
    """A plan."""

    tasks: Annotated[
        tuple[PlannedTask, ...],
        Meta(min_length=1, max_length=MAX_TASKS, description="In the order to run them."),
    ]


class PlanScore(Struct, frozen=True, kw_only=True):
    """The score of a plan."""

    plan: Annotated[str, Meta(description="The letter of the plan.")]
    reason: Annotated[str, Meta(description="Strengths and weaknesses in a sentence or two.")] = ""
    overall_score: Annotated[float, Meta(ge=0, le=100, description="0 is useless, 100 cannot be bettered.")]


class EvaluationReply(Struct, frozen=True):
    """The scores of all plans."""

    evaluations: Annotated[tuple[PlanScore, ...], Meta(min_length=1, description="One for each plan.")]


class ConversionReply(Struct, frozen=True):
    """A task as the input of its resource."""

    tool_input: Annotated[dict[str, Any] | str, Meta(description="The resource's arguments, by name.")]


class KnowledgeReply(Struct, frozen=True):
    """Knowledge about the task."""

    answer: Annotated[str, Meta(min_length=1, description="What is known, with passages cited as [n].")]
    confidence: Annotated[float | str, Meta(description="How sure that is, 0 to 1.")]

    def __post_init__(self) -> None:
        if isinstance(self.confidence, float) and not 0 <= self.confidence <= 1:
            raise ValueError("confidence is a number from 0 to 1")


class LogicReply(Struct, frozen=True, omit_defaults=True):
    """A deduction."""

    steps: Annotated[tuple[str, ...], Meta(description="One inference each, in order.")]
    conclusion: Annotated[str, Meta(min_length=1, description="What follows.")]
    formal_claim: Annotated[
        str | dict[str, Any] | None, Meta(description="The claim in the form the claim checker reads.")
    ] = None


class JudgedKnowledgeReply(KnowledgeReply, frozen=True, kw_only=True):
    """Knowledge about the task, and whether to accept it."""

    reason: Annotated[str, Meta(description="What was checked, and what is wrong if anything is.")] = ""
    quality: Quality


class JudgedLogicReply(LogicReply, frozen=True, kw_only=True, omit_defaults=True):
    """A deduction, and whether to accept it."""

    reason: Annotated[str, Meta(description="What was checked, and what is wrong if anything is.")] = ""
    quality: Quality


class CodeReply(Struct, frozen=True):
    """A program."""

    code: Annotated[str, Meta(min_length=1, description="Python; its last line is the result.")]


class QualityReply(Struct, frozen=True, kw_only=True):
    """Whether to accept a result."""

    reason: Annotated[str, Meta(description="What was checked, and what is wrong if anything is.")] = ""
    quality: Quality


class DecisionReply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether to run another iteration."""

    quality_summary: Annotated[str, Meta(description="How good the work is so far.")] = ""
    decision_rationale: Annotated[str, Meta(description="Why to go on, or to stop.")] = ""
    continue_iterations: Annotated[bool, Meta(description="Whether more work is needed.")]
    recommendations_for_next_iteration: Annotated[str, Meta(description="What to focus on next.")] = ""


class SynthesisReply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The synthesis of all findings."""

    answer: Annotated[Answer, Meta(description="The whole answer with its reasoning.")]
    key_findings: Annotated[tuple[str, ...], Meta(description="What was found, one finding each.")] = ()
    final_answer: Annotated[Answer, Meta(description="The answer for the user: polished and direct.")]
    title: Annotated[str, Meta(description="A title for the analysis.")] = ""
    headline: Annotated[str, Meta(description="The upshot in one line.")] = ""
    image_caption: Annotated[str | None, Meta(description="Caption of an image, if one is asked for.")] = None

    def __post_init__(self) -> None:
        if not str(self.answer).strip() or not str(self.final_answer).strip():
            raise ValueError("answer and final_answer must not be empty")


class FocusReply(Struct, frozen=True, kw_only=True):
    """The answer for a program to branch on."""

    reason: Annotated[str, Meta(description="Which value the answer comes to, and why.")] = ""
    value: Annotated[str | int | float | bool, Meta(description="One of the allowed words, or a number.")]


# -- results and passages as text


def found_text(passages: Any) -> str:
    """Number and format the passages that a search found. If `passages` is not a list, format it as plain text."""
    return passages_text(passages) if isinstance(passages, list) else evidence_text(passages)


def result_text(resource: str, result: Any, *, with_passages: bool = False) -> str:
    """Format the result of a task, to be shown in a question.

    Args:
        with_passages: Whether to show the found passages, which a judge of the result needs.
    """
    if not isinstance(result, Mapping):
        return data_text(result)
    writers = {"knowledge": _knowledge, "logic_kernel": _logic, "py_executor": _program}
    lines = list(writers[resource](result)) if resource in writers else [data_text(result)]
    if with_passages and result.get("passages"):
        lines = ["Passages it was given:", found_text(result["passages"]), "What it says:", *lines]
    return "\n".join(lines)


def _knowledge(result: Mapping[str, Any]) -> Iterator[str]:
    yield f"{result.get('answer', '')}"
    if result.get("confidence") is not None:
        yield f"Confidence: {result['confidence']}"
    answer, passages = str(result.get("answer")), result.get("passages")
    numbered = enumerate(passages if isinstance(passages, list) else [], 1)
    if cited := [f"[{n}] {passage_place(passage)}" for n, passage in numbered if f"[{n}]" in answer]:
        yield "Sources: " + "; ".join(cited)


def _logic(result: Mapping[str, Any]) -> Iterator[str]:
    yield from result.get("steps") or ()
    yield f"Conclusion: {result.get('conclusion', '')}"
    check = result.get("check")
    # A check with the verdict `unknown` says nothing about the deduction.
    if isinstance(check, Mapping) and check.get("verdict") == "unknown":
        return
    if result.get("formal_claim"):
        yield f"Formal claim: {data_text(result['formal_claim'])}"
    if check is not None:
        yield f"Check of the claim: {data_text(check)}"


def _program(result: Mapping[str, Any]) -> Iterator[str]:
    yield f"Program:\n{result.get('code', '')}"
    yield f"Output: {data_text(result.get('output'))}"


def data_text(value: Any, indent: str = "") -> str:
    """Format JSON data as lines: `name: value` for a member of an object, and `- item` for an item of a list."""
    if isinstance(value, Mapping) and value:
        return "\n".join(f"{indent}{name}: {_nested_text(item, indent)}" for name, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return "\n".join(f"{indent}- {_nested_text(item, indent).lstrip()}" for item in value)
    return evidence_text(value)


def _nested_text(value: Any, indent: str) -> str:
    if isinstance(value, Mapping | list) and value:
        return "\n" + data_text(value, f"{indent}  ")
    return evidence_text(value)
