"""The options, the tasks and the state of an analysis.

Every prompt begins with the query, the context and the growing analysis history; the instruction comes last. Each
prompt thus repeats the beginning of the previous prompt, and providers can cache this beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from ...blocks.answers import AnswerOptions, AnswerState
from ...blocks.programs import SANDBOX_TOOL, WHERE_IT_RUNS
from ...blocks.toolcard import PROVER, ToolCard
from ...core.effects import Ask
from .focus import Focus, focus_of
from .forms import Complexity, DecisionReply, PlannedTask, QualityReply, SynthesisReply

SYSTEM = "You do one step of an analysis at a time, and never invent results, sources or figures."
"""The system message of all questions. The prompts are in the modules of their stages."""


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
    "Writes and runs a Python program: for anything to be computed. Say what to compute and from which figures. "
    f"Where it runs: {WHERE_IT_RUNS}",
    QUERY,
)

BUILT_IN = ("knowledge", "logic_kernel", SANDBOX_TOOL)
"""The resources whose input is the query of a task, so that no conversion is needed."""
RETRIEVER, CHECKER = "search_documents", PROVER

MODES: dict[str, tuple[int, int]] = {
    "quick": (1, 2),
    "balanced": (2, 3),
    "thorough": (3, 4),
    "research": (4, 5),
}
"""The fewest and the most iterations of each mode."""

Iterations = Annotated[int, Meta(ge=1, le=5)]


class Options(AnswerOptions, frozen=True):
    """Options of an analysis."""

    coached: ClassVar[Mapping[str, Any]] = {"judge_own_results": True, "candidate_plans": 2}
    mode: Annotated[
        Literal["quick", "balanced", "thorough", "research"],
        Meta(description="Sets the iterations: 1 to 2, 2 to 3, 3 to 4, 4 to 5."),
    ] = "quick"
    candidate_plans: Annotated[int, Meta(ge=1, le=5, description="Plans drafted side by side.")] = 3
    max_iterations: Annotated[
        Iterations | None, Meta(description="Most iterations; none: as `mode` says.")
    ] = None
    min_iterations: Annotated[
        Iterations | None, Meta(description="Iterations to aim for; none: set by `mode`, 1 in `quick`.")
    ] = None
    enforce_iterations: Annotated[bool, Meta(description="Continue to min_iterations in any case.")] = False
    execution_retry_limit: Annotated[
        int, Meta(ge=0, le=10, description="Further attempts at a failed task; each sees the error.")
    ] = 1
    complexity_analysis: Annotated[bool, Meta(description="Size up the query before planning.")] = True
    focused_answer_type: Annotated[
        str,
        Meta(
            max_length=20_000,
            description="none, number, yes/no, true/false, good/bad, high/low, accepted/rejected, "
            "yes/maybe/no, good/neutral/bad, high/medium/low, or `choice: A | B | …`.",
        ),
    ] = "none"
    judge_own_results: Annotated[
        bool,
        Meta(
            description="Judge results of `knowledge` and `logic_kernel` in the same question. On in coached "
            "runs, which also have 2 candidate_plans."
        ),
    ] = False
    concurrent_tasks: Annotated[bool, Meta(description="Execute independent tasks side by side.")] = False
    enforce_task_counts: Annotated[
        bool, Meta(description="Require the number of tasks that fits the complexity; otherwise 1 to 24.")
    ] = True
    cost_limit: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Limits the whole run to these US dollars, like `max_usd`; the lower limit counts."),
    ] = None
    image: Annotated[bool, Meta(description="Ask for the caption of an image.")] = False
    context: Annotated[str, Meta(max_length=400_000, description="Context for the query.")] = ""
    max_result_chars: Annotated[int, Meta(ge=100, description="Characters shown of a result.")] = 8_000
    tools: Annotated[tuple[ToolCard, ...], Meta(description="Tools besides the built-in resources.")] = ()

    def __post_init__(self) -> None:
        minimum, maximum = self.iterations
        if minimum > maximum:
            raise ValueError(f"min_iterations ({minimum}) is over max_iterations ({maximum})")
        focus_of(self.focused_answer_type)

    @property
    def iterations(self) -> tuple[int, int]:
        """The minimum and maximum number of iterations. A value set by the user replaces the mode's default."""
        minimum, maximum = MODES[self.mode]
        maximum = maximum if self.max_iterations is None else self.max_iterations
        return min(minimum, maximum) if self.min_iterations is None else self.min_iterations, maximum

    @property
    def resources(self) -> tuple[ToolCard, ...]:
        """The resources that tasks can use: the built-in ones and the user's tools. `py_executor` needs a sandbox."""
        programs = [PY_EXECUTOR for card in self.tools if card.name == PY_EXECUTOR.name]
        extra = (card for card in self.tools if card.name not in (*BUILT_IN, CHECKER, RETRIEVER))
        return (KNOWLEDGE, LOGIC_KERNEL, *programs[:1], *extra)


class Task(Struct, frozen=True, omit_defaults=True):
    """A task of a selected plan, with its progress.

    Attributes:
        number: The position of the task in its plan, from 1.
        at: The next stage of the task; `waiting` if the task has not started, `over` if the task has ended.
        program: The last program that the model wrote for the task.
        errors: The errors of failed attempts.
        judgement: The model's verdict on its own result, if the question asked for a verdict.
    """

    resource_name: str
    task_query: str
    iteration: int
    number: int
    depends_on: tuple[int, ...] = ()
    at: Literal["waiting", "query_conversion", "task_execution", "quality_evaluation", "over"] = "waiting"
    status: Literal["PENDING", "ACCEPTED", "REJECTED", "FAILED", "SKIPPED"] = "PENDING"
    reason: str = ""
    tool_input: dict[str, Any] = {}
    program: str = ""
    result: Any = None
    errors: tuple[str, ...] = ()
    judgement: QualityReply | None = None

    @property
    def title(self) -> str:
        """The title for display, such as `Task 2 (knowledge)`."""
        return f"Task {self.number} ({self.resource_name})"

    @property
    def id(self) -> str:
        """The id of the task in the result document."""
        return f"{iteration_id(self.iteration)}/task-{self.number}"

    @property
    def document(self) -> dict[str, Any]:
        """The task as data for the result document."""
        return {
            "id": self.id,
            "resource_name": self.resource_name,
            "task_query": self.task_query,
            "status": self.status,
            "reason": self.reason,
            "result": self.result,
            "iteration": self.iteration,
            "attempts": len(self.errors) + (self.status != "FAILED" and self.at != "waiting"),
            "errors": list(self.errors),
        }


class Plan(Struct, frozen=True, omit_defaults=True):
    """A candidate plan, with its score."""

    name: str
    """The letter of the plan. The first plan of an iteration is A."""
    tasks: tuple[PlannedTask, ...]
    score: float | None = None
    reason: str = ""

    @property
    def shown_score(self) -> str:
        """The score as text for display: `85/100` or `no score`."""
        return "no score" if self.score is None else f"{round(self.score, 1):g}/100"

    @property
    def text(self) -> str:
        """The tasks as numbered lines."""
        return "\n".join(
            f"{n}. {task.resource_name}: {task.task_query}" for n, task in enumerate(self.tasks, 1)
        )


def iteration_id(number: int) -> str:
    """Return the id of an iteration in the result document. The ids of its plans and tasks begin with this id."""
    return f"iteration-{number}"


def plan_id(iteration: int, name: str) -> str:
    """Return the id of a candidate plan in the result document."""
    return f"{iteration_id(iteration)}/plan-{name}"


class Iteration(Struct, frozen=True, omit_defaults=True):
    """One iteration: planning, the execution of the tasks, and the decision whether to continue."""

    complexity: Complexity | None = None
    plans: tuple[Plan, ...] = ()
    dropped: tuple[str, ...] = ()
    """For each plan that could not be used, the reason."""
    unscored: str = ""
    """Why the plans have no scores although scores were requested; otherwise empty."""
    selected: int | None = None
    """The index of the selected plan."""
    decision: DecisionReply | None = None


class Document(Struct, frozen=True):
    """A document of the user: its source, its length, and its beginning."""

    source: str
    characters: int
    begins: str


class Overview(Struct, frozen=True, omit_defaults=True):
    """The retriever's list of the user's documents, with all their passages if the documents are small."""

    documents: tuple[Document, ...]
    passages: tuple[dict[str, Any], ...] | None = None


class State(AnswerState, frozen=True, omit_defaults=True, kw_only=True):
    """The state of an analysis."""

    options: Options
    overview: Overview = Overview(())
    iterations: tuple[Iteration, ...] = (Iteration(),)
    tasks: tuple[Task, ...] = ()
    """The tasks of all iterations, in the order of their plans."""
    history: tuple[str, ...] = ()
    """The analysis history of findings, accepted results and feedback. Entries are only added."""
    ended: tuple[str, str] | None = None
    """Why the work has ended: (reason, detail)."""
    synthesis: SynthesisReply | None = None
    focused: str | int | float | None = None
    unchecked: str = ""
    """Why the answer is unchecked: the reply that could not be read, and the text that replaced this reply."""

    @property
    def now(self) -> Iteration:
        """The current iteration."""
        return self.iterations[-1]

    @property
    def number(self) -> int:
        """The number of the current iteration, from 1."""
        return len(self.iterations)

    @property
    def focus(self) -> Focus | None:
        """The requested type of focused answer, if any."""
        return focus_of(self.options.focused_answer_type)

    @property
    def accepted(self) -> tuple[Task, ...]:
        """All accepted tasks."""
        return tuple(task for task in self.tasks if task.status == "ACCEPTED")

    @property
    def tool_names(self) -> frozenset[str]:
        """The names of the available tools."""
        return frozenset(card.name for card in self.options.tools)

    @property
    def at_work(self) -> tuple[Task, ...]:
        """The tasks of the current iteration."""
        return tuple(task for task in self.tasks if task.iteration == self.number)

    def with_iteration(self, **changes: Any) -> State:
        """Return a copy of the state in which `changes` replace members of the current iteration."""
        return replace(self, iterations=(*self.iterations[:-1], replace(self.now, **changes)))

    def with_tasks(self, *changed: Task) -> State:
        """Return a copy of the state in which the `changed` tasks replace their earlier versions."""
        by_id = {task.id: task for task in changed}
        return replace(self, tasks=tuple(by_id.get(task.id, task) for task in self.tasks))

    def end_work(self, reason: str, detail: str) -> State:
        """Record why the analysis starts no more tasks, and mark unfinished tasks as skipped."""
        tasks = tuple(
            task if task.at == "over" else replace(task, status="SKIPPED", reason=detail, at="over")
            for task in self.tasks
        )
        return replace(self, tasks=tasks, ended=(reason, detail))

    # -- questions

    def question(
        self,
        kind: str,
        task: str,
        *material: str,
        with_history: bool = True,
        facts: dict[str, Any] | None = None,
        about: str = "",
        **parts: Any,
    ) -> Ask:
        """Build a question. The query, the context and the history come first, and the instruction (`task`) last.

        Args:
            material: Texts between the history and the instruction, such as the task at hand.
            with_history: Whether to show the analysis history.
            about: The id of the question's subject in the result document. Defaults to the current iteration.
            parts: Other members of the `Ask`, such as `by`, `form`, `mark` and `sample`.
        """
        head = f"Query: {self.problem}"
        if self.options.context:
            head += f"\n\nContext:\n{self.options.context}"
        return Ask(
            "\n\n".join(filter(None, [head, *(self.history if with_history else ()), *material])),
            SYSTEM,
            task=task,
            facts={"kind": kind, "problem": self.problem, "iteration": self.number, **(facts or {})},
            about=about or iteration_id(self.number),
            **parts,
        )
