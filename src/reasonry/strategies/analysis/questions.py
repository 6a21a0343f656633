"""What is asked, and the forms of all replies, in the pipeline's order.

Every prompt begins with the query, the context and the analysis history, which only grows; what is to be done stands
last. So each prompt repeats the beginning of the one before, and providers can cache it. What is data stays in the
result document; a question shows its meaning, without JSON and without scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from ...core.answering import Answer
from ...core.evidence import evidence_text, passage_place, passages_text
from ...core.toolcard import ToolCard
from ...patterns import lazy_pattern

_CITED = lazy_pattern(r"\[(\d{1,3})\]")

SYSTEM = """You work inside an analysis pipeline: a query is sized up, plans are drafted and scored, tasks are carried \
out and judged, and what was accepted is brought together. You are shown the query, what was accepted so far, and at \
the end what to do now. Do that alone; never invent results, sources or figures. Reply with one JSON object of the \
form given at the end, and nothing else."""
"""Seed 002's overview of the pipeline in one paragraph; every prompt below names the stage of the seed it is for."""


QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
KNOWLEDGE = ToolCard(
    "knowledge",
    "Says what is known about something: from the context, the user's documents, and general knowledge.",
    QUERY,
)
LOGIC_KERNEL = ToolCard(
    "logic_kernel", "Deduces step by step from what was accepted so far: compares, infers, decides.", QUERY
)
PY_EXECUTOR = ToolCard(
    "py_executor",
    "Writes and runs a Python program: for anything to be computed. Say what to compute and from which figures.",
    QUERY,
)

# Stage 1, complexity analysis.
COMPLEXITY = """{documents}Now size up the query, without answering it. The levels, and how many tasks a plan then has:
straightforward (2-3): a direct question with a clear answer
moderate (3-4): several steps, some of which need others
complex (4-5): has to be looked at from several sides
highly_complex (5-6): many factors that act on one another
{setbacks}
{{"dimensions": ["aspect to address"], "key_challenges": ["what makes it difficult"], "sequential_dependencies": \
["what must come before what"], "iteration_strategy": "how many passes, and for what", "complexity_level": "…"}}"""

# Stage 2, plan generation.
PLAN = """Resources that tasks can use:
{cards}

{documents}Now draft one plan: {least} to {most} tasks, in the order to carry them out, each for one resource of the \
list. A task says by itself what its resource is to accomplish. Later tasks see the accepted results of earlier ones, \
so do not ask for the same thing twice. {depends}{lean}
{setbacks}
{{"tasks": [{{"resource_name": "…", "task_query": "…"{field}}}]}}"""
DEPENDS = "Tasks that need no other's result run side by side: name in depends_on the tasks whose results one needs. "
DEPENDS_FIELD = ', "depends_on": []'
LEAN = "You draft plan {number} of {count}, the others are drafted apart; {angle}."
ANGLES = (
    "take the most direct way",
    "weigh the sides of the matter against one another",
    "begin with what is least certain",
    "rely on what can be computed or checked, where anything can",
    "look for what speaks against the obvious answer",
)

# Stage 3, plan evaluation, with the seed's criteria: all plans side by side.
EVALUATE = """Resources that tasks can use: {resources}.

{count} plans were drafted.

{plans}

Now score each of them from 0 to 100, side by side. Does each task use the right resource? Is the order right? Are all \
aspects of the query covered? Can it be carried out with the resources there are? Plans get the same score only if \
neither is better.
{form}"""

# Stage 4, task execution: the query as input, the resource, the quality gate.
CONVERT = """The next task is for `{resource}`:
{query}
{errors}
Now write it as the input of that resource: complete, with what it needs from the results above.
Its arguments: {parameters}
{{"tool_input": {example}}}"""

PERFORM = {
    "knowledge": """The next task is for `knowledge`:
{input}
{passages}{errors}
Now say what is known about it, from the context and the passages where they have it, else from general knowledge. \
Cite passages as [n]. Say how sure you are.{judged}
{{"answer": "…", "confidence": 0 to 1{verdict}}}""",
    "logic_kernel": """The next task is for `logic_kernel`:
{input}
{errors}
Now deduce it, step by step, from what was accepted above; each step is one inference.{formal}{judged}
{{"steps": ["…"], "conclusion": "…"{field}{verdict}}}""",
    "py_executor": """The next task is for `py_executor`:
{input}
{errors}
Now write the Python program that does it. Its last line is an expression: the result. The tool that runs it: \
{sandbox}
{{"code": "…"}}""",
}
JUDGED = (
    " Then decide whether later work may build on it: REJECTED if it is unsound, off the point or made up."
)
VERDICT_FIELDS = ', "reason": "what was checked", "quality": "ACCEPTED" or "REJECTED"'
FORMAL = (
    " If the conclusion can be stated in SMT-LIB2, state it in formal_claim too; it is then checked. An example: "
    '{"declarations": ["(declare-const x Int)"], "assumptions": ["(> x 2)"], "claim": "(> (* x x) 4)"}'
)
FORMAL_FIELD = ', "formal_claim": as above or null'
DOCUMENTS = "The user's documents, which `knowledge` {how}:\n{documents}\n\n"
PASSAGES = "\nPassages:\n{passages}\n"
SANDBOX = "Runs plain Python, without files and network."

ERRORS = """
It was tried before and failed:
{errors}
Do it another way."""
CODE_ERRORS = """
The last program was:
{code}
What went wrong so far:
{errors}
Correct it."""

QUALITY = """A task was carried out by `{resource}`:
{query}

Its result:
{result}

Now decide whether later work may build on this result. Accept it if it does what the task asks, is sound, agrees \
with what was accepted before and is honest about what is uncertain. Reject it if it is wrong, refuted, off the \
point, empty or made up.
{{"reason": "what was checked, and what is wrong if anything is", "quality": "ACCEPTED" or "REJECTED"}}"""

# Stage 5, iteration decision.
DECIDE = """Iteration {number} of at most {most} is over{wanted}.
{setbacks}
Now decide whether another iteration is worth it: are aspects of the query still open, did results raise new \
questions, is there an error to correct?
{{"quality_summary": "how good the work is so far", "decision_rationale": "why to go on, or to stop", \
"continue_iterations": true or false, "recommendations_for_next_iteration": "what to focus on, if going on"}}"""

SETBACKS = "What did not work so far:\n{lines}"

# Stage 6, synthesis.
SYNTHESIZE = """Now bring all accepted results together and answer the query. Give the whole answer with its \
reasoning, the key findings, and the final answer for the user: polished, direct, complete in itself. A text or code \
that the query asks for is the final answer, whole; the answer then says what it rests on.{none}
{{"answer": "the whole answer with its reasoning", "key_findings": ["…"], "final_answer": "…", "title": "…", \
"headline": "the upshot in one line"{field}}}"""
NOTHING_ACCEPTED = " Nothing was accepted, so say plainly how far the answer can be relied upon."
CAPTION_FIELD = ', "image_caption": "caption of an image that shows the upshot"'

# Stage 7, focused answer.
FOCUS = """The analysis came to this answer:
{answer}

Now put it into one value that a program can branch on: {rule}. Nothing else will be accepted.
{{"reason": "which value the answer comes to, and why", "value": "…"}}"""


# -- the forms of replies

Quality = Literal["ACCEPTED", "REJECTED"]
Level = Literal["straightforward", "moderate", "complex", "highly_complex"]

TASKS: dict[str, tuple[int, int]] = {
    "straightforward": (2, 3),
    "moderate": (3, 4),
    "complex": (4, 5),
    "highly_complex": (5, 6),
}
"""How many tasks a plan has at each level."""

ANY_LEVEL = (2, 6)
"""Where the query was not sized up."""

MAX_TASKS = 24
"""Tasks a plan may have, whatever the level."""

Texts = tuple[str, ...] | str


class Complexity(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How demanding the query is, and why."""

    dimensions: Annotated[Texts, Meta(description="The aspects that need to be addressed.")] = ()
    key_challenges: Annotated[Texts, Meta(description="What makes it difficult.")] = ()
    sequential_dependencies: Annotated[Texts, Meta(description="What must happen in order.")] = ()
    iteration_strategy: Annotated[str, Meta(description="How many passes are needed, and for what.")] = ""
    complexity_level: Annotated[Level, Meta(description="How demanding the query is.")]


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
    """What a plan is worth."""

    plan: Annotated[str, Meta(description="The letter of the plan.")]
    reason: Annotated[str, Meta(description="Strengths and weaknesses in a sentence or two.")] = ""
    overall_score: Annotated[float, Meta(ge=0, le=100, description="0 is useless, 100 cannot be bettered.")]


class EvaluationReply(Struct, frozen=True):
    """What all plans are worth, side by side."""

    evaluations: Annotated[tuple[PlanScore, ...], Meta(min_length=1, description="One for each plan.")]


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


class JudgedKnowledgeReply(KnowledgeReply, frozen=True, kw_only=True):
    """What is known, and whether it may be built upon."""

    reason: Annotated[str, Meta(description="What was checked, and what is wrong if anything is.")] = ""
    quality: Quality


class JudgedLogicReply(LogicReply, frozen=True, kw_only=True, omit_defaults=True):
    """A deduction, and whether it may be built upon."""

    reason: Annotated[str, Meta(description="What was checked, and what is wrong if anything is.")] = ""
    quality: Quality


class CodeReply(Struct, frozen=True):
    """A program."""

    code: Annotated[str, Meta(min_length=1, description="Python; its last line is the result.")]


class ExecutionReply(Struct, frozen=True, omit_defaults=True):
    """What carrying out a task brings: `answer` and `confidence` from `knowledge`, `steps` and `conclusion` from
    `logic_kernel`, `code` for `py_executor`.
    """  # noqa: D205

    answer: Annotated[str | None, Meta(description="`knowledge`: what is known.")] = None
    confidence: Annotated[float | str | None, Meta(description="`knowledge`: how sure, 0 to 1.")] = None
    steps: Annotated[Texts | None, Meta(description="`logic_kernel`: one inference each, in order.")] = None
    conclusion: Annotated[str | None, Meta(description="`logic_kernel`: what follows.")] = None
    formal_claim: Annotated[
        str | dict[str, Any] | None,
        Meta(description="`logic_kernel`: the claim in the form the checker reads."),
    ] = None
    code: Annotated[str | None, Meta(description="`py_executor`: Python that ends with the result.")] = None


class QualityReply(Struct, frozen=True, kw_only=True):
    """Whether a result may be built upon."""

    reason: Annotated[str, Meta(description="What was checked, and what is wrong if anything is.")] = ""
    quality: Quality


class DecisionReply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether another iteration is worth it."""

    quality_summary: Annotated[str, Meta(description="How good the work is so far.")] = ""
    decision_rationale: Annotated[str, Meta(description="Why to go on, or to stop.")] = ""
    continue_iterations: Annotated[bool, Meta(description="Whether more work is needed.")]
    recommendations_for_next_iteration: Annotated[Texts, Meta(description="What to focus on next.")] = ""


class SynthesisReply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that was found, in one piece."""

    answer: Annotated[Answer, Meta(description="The whole answer with its reasoning.")]
    key_findings: Annotated[Texts, Meta(description="What was found, one finding each.")] = ()
    final_answer: Annotated[Answer, Meta(description="The answer for the user: polished and direct.")]
    title: Annotated[str, Meta(description="A title for the analysis.")] = ""
    headline: Annotated[str, Meta(description="The upshot in one line.")] = ""
    image_caption: Annotated[str | None, Meta(description="Caption of an image, if one is asked for.")] = None

    def __post_init__(self) -> None:
        if not str(self.answer).strip() or not str(self.final_answer).strip():
            raise ValueError("answer and final_answer must not be empty")


class FocusReply(Struct, frozen=True, kw_only=True):
    """The answer a program can branch on."""

    reason: Annotated[str, Meta(description="Which value the answer comes to, and why.")] = ""
    value: Annotated[str | int | float | bool, Meta(description="One of the allowed words, or a number.")]


def texts(reply: Texts | None) -> tuple[str, ...]:
    """Return a list that may have come as one text."""
    if reply is None or isinstance(reply, str):
        return (reply,) if reply else ()
    return reply


# -- results and passages as text


def found_text(passages: Any) -> str:
    """Return what was found: passages with their numbers, anything else as it is."""
    return passages_text(passages) if isinstance(passages, list) else evidence_text(passages)


def result_text(resource: str, result: Any, *, with_passages: bool = False) -> str:
    """Return the result of a task as questions show it.

    Args:
        with_passages: Show the passages that were found, too; who judges the result needs them.
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
    passages = result.get("passages")
    cited = {int(digits) for digits in _CITED.findall(str(result.get("answer")))}
    if isinstance(passages, list) and cited:
        shown = (f"[{n}] {passage_place(passage)}" for n, passage in enumerate(passages, 1) if n in cited)
        yield "Sources: " + "; ".join(shown)


def _logic(result: Mapping[str, Any]) -> Iterator[str]:
    yield from texts(tuple(result["steps"]) if isinstance(result.get("steps"), list) else result.get("steps"))
    yield f"Conclusion: {result.get('conclusion', '')}"
    check = result.get("check")
    # A check that came to nothing says nothing of the deduction.
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
    """Return JSON data as lines: `name: value`, and `- item` for the items of a list."""
    if isinstance(value, Mapping) and value:
        return "\n".join(f"{indent}{name}: {_nested_text(item, indent)}" for name, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return "\n".join(f"{indent}- {_nested_text(item, indent).lstrip()}" for item in value)
    return evidence_text(value)


def _nested_text(value: Any, indent: str) -> str:
    if isinstance(value, Mapping | list) and value:
        return "\n" + data_text(value, f"{indent}  ")
    return evidence_text(value)
