"""A strategy: one table of stages, each with its body and its possible next stages.

Rule 1: only the table defines edges. The table is checked when the strategy is defined.
Rule 2: a stage's body is one pure generator function of the state; see `bodies`.
Rule 3: a stage with one outgoing edge needs no body. In a driven strategy, a stage with several edges has a body.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, Final, Generic, Self, TypedDict, TypeVar

from msgspec import Meta, Struct

from ..errors import IllegalTransitionError, InvalidStrategyError
from .bodies import Body, Conclusion, Move, go
from .effects import Ask
from .readings import Unreadable
from .type_schema import all_required, inlined_schema

S = TypeVar("S")
O = TypeVar("O", bound=Struct)


@dataclass(frozen=True, slots=True)
class Field:
    """A named value that a thought of a stage carries in guided use.

    Args:
        schema: The JSON schema of the value, with a `description`.
        check: A function that checks rules which no schema expresses. It yields a sentence for each broken rule.
    """

    name: str
    schema: Mapping[str, Any]
    required: bool = True
    check: Callable[[Any], Iterator[str]] | None = None

    @classmethod
    def mandatory(cls, name: str, kind: str, description: str, **more: Any) -> Self:
        """Build a field that each thought of the stage must have.

        Args:
            kind: A JSON type, `texts` for a list of texts, or `any`.
            more: Additional keywords of the schema.
        """
        kinds = {"texts": {"type": "array", "items": {"type": "string"}}, "any": {}}
        return cls(name, {**kinds.get(kind, {"type": kind}), "description": description, **more})

    @classmethod
    def optional(cls, name: str, kind: str, description: str, **more: Any) -> Self:
        """Build a field that a thought of the stage may omit. The arguments are the same as for `mandatory`."""
        return replace(cls.mandatory(name, kind, description, **more), required=False)


LONG_REPLY: Final = 8_192
"""The token limit of a reply that may be a text of several thousand words."""

SHORT_REPLY: Final = 4_096
"""The token limit of a short reply (a verdict, scores or a question), with room for unreported reasoning."""


@dataclass(frozen=True)
class Stage(Generic[S]):
    """A stage: one row of a strategy's table.

    Args:
        name: The stage's name, taken from the paper or the earlier design ("seed") that the strategy implements.
        to: The possible next stages. Empty for the last stage.
        description: A description of the stage in one line.
        guidance: The instructions for the stage, including when to leave the stage.
        repeats: Whether the stage is a loop. If so, `stay` is an edge in the diagram, the table and the recorded path.
        fields: The fields that a guided thought has in its `data`.
        compares: Whether the agent compares branches of thought in this stage. The agent then sees their scores.
        tested_by: The stage that tests the claims of this stage. Empty if there is none.
        body: The code to run: a generator function of the state. A body without requests may be a plain function that
            returns the move. None means that the run takes the only outgoing edge.
        reply: The form of a reply: a Struct, whose JSON schema is sent with each question.
        example: A valid reply, as data.
        read: A function that reads the latest reply by rules that no schema expresses. The replies come oldest first.
        value: The type that `read` returns. Recorded readings are converted to this type. Defaults to `reply`.
        phase: The phase that a run reports while the run is in this stage. Empty if there is none.
        max_output_tokens: The token limit of a reply.
    """

    name: str
    to: tuple[str, ...] = ()
    description: str = ""
    guidance: str = ""
    fields: tuple[Field, ...] = ()
    compares: bool = False
    tested_by: str = ""
    body: Callable[[S], Body | Move] | None = None
    reply: type[Struct] | None = None
    example: Mapping[str, Any] | None = None
    read: Callable[[S, Ask, Sequence[str]], tuple[Any, str] | Unreadable] | None = None
    value: Any = None
    repeats: bool = False
    phase: str = ""
    max_output_tokens: int = LONG_REPLY

    @cached_property
    def run(self) -> Callable[[S], Body | Move] | None:
        """The stage's body. If the stage has no body, a function that moves along the only outgoing edge."""
        return partial(go, to=self.to[0]) if self.body is None and len(self.to) == 1 else self.body

    @property
    def ways(self) -> tuple[str, ...]:
        """The targets of the stage's edges: the stage itself if it repeats, then the possible next stages."""
        return (self.name, *self.to) if self.repeats else self.to

    @property
    def value_type(self) -> Any:
        """The type into which a reply is read. None means text or any value."""
        return self.reply if self.value is None else self.value

    @cached_property
    def form(self) -> dict[str, Any] | None:
        """The JSON schema of a reply, with all references inlined and all properties required.

        Providers enforce only such schemas, so an optional property may be null instead of missing.
        """
        return None if self.reply is None else all_required(inlined_schema(self.reply))


def problem_reception(
    to: tuple[str, ...], guidance: str, *, description: str = "Take in the problem.", **parts: Any
) -> Stage[Any]:
    """Build the first stage of a strategy."""
    return Stage("problem_reception", to, description, guidance, **parts)


def final_response(
    guidance: str = "State the answer alone, complete and in the form that was asked for.",
    *,
    description: str = "Give the answer.",
    phase: str = "",
) -> Stage[Any]:
    """Build the last stage of a strategy."""
    return Stage("final_response", (), description, guidance, phase=phase)


class NoOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The options of a strategy without options."""


class Details(TypedDict, total=False):
    """Members that every strategy may add to its result. A strategy extends this type with its own members."""

    diagnostics: Annotated[dict[str, Any], Meta(description="Why `auto` chose the strategy, and more.")]
    unchecked: Annotated[str, Meta(description="Why the answer is unchecked.")]


class AnswerDetails(Details):
    """Members of a result whose answer was verified or reviewed."""

    verification: Annotated[str, Meta(description="`open`, `reviewed`, `doubted`, `unchecked` or `proved`.")]
    objections: Annotated[list[str], Meta(description="The faults of earlier answers.")]


class DraftsDetails(Details):
    """Members of a result that compares drafts."""

    votes: Annotated[list[dict[str, Any]], Meta(description="`answer` and `count`.")]
    drafts: Annotated[
        list[dict[str, Any]],
        Meta(description="`id`, `number`, `answer`, `vote`, `dropped`, `improves`, `inside`."),
    ]
    drafts_used: Annotated[int, Meta(description="Drafts written.")]


@dataclass(frozen=True)
class Strategy(Generic[S, O]):
    """A reasoning strategy.

    Args:
        name: The canonical name, in snake_case.
        title: The name for display.
        source: The paper (`arXiv:…`) or the earlier design ("seed") that the strategy implements.
        summary: The strategy's purpose in one sentence.
        stages: The table, in reading order. A run begins in the first stage and ends in the stage without `to`.
        options: A frozen Struct: the only source of the options' defaults, ranges and descriptions.
        version: A number that increases when a change of prompts, forms or stages may break existing runs. Each run
            records its version.
        state: The type of the strategy's own data, encodable by msgspec. None means guided use only.
        begin: A function: (problem, options) → first state. Defaults to `state(problem=problem, options=options)`.
        conclude: A function: state → conclusion so far.
        close: A function: state → move to a stage that answers from the results so far with at most one question. It
            returns None if the next question is already the best last question. By default, no run is closed.
        details: The type of the members that the strategy adds to a result.
        aliases: Other names.
        resources: The built-in tools that the strategy uses if they are available.
        suits: The kinds of problem for which `auto` chooses the strategy, as named in `strategies.choice`.
        task_after_thoughts: The problem of a run to which the user gives a session's thoughts but no problem. If
            empty, the first thought is the problem.
        calls: How many calls a typical run with default options makes, judging included.
        least_calls: How many calls the strategy needs. If the budget has fewer, a run asks one direct question.
        wants_value: Whether the answer is a number or a truth value, never a whole text.
        needs_least: Whether a run with fewer calls than `least_calls` is refused, as it would have no result.
        needs_models: Whether a driven run needs two or more different models.

    Raises:
        InvalidStrategyError: The table is inconsistent; the message names the stage and the fault.
    """

    name: str
    title: str
    source: str
    summary: str
    stages: tuple[Stage[S], ...]
    options: type[O] = NoOptions  # pyright: ignore[reportAssignmentType]
    version: int = 1
    state: type[Any] | None = None
    begin: Callable[[str, O], S] | None = None
    conclude: Callable[[S], Conclusion] = lambda _: Conclusion()
    close: Callable[[S], Move | None] = lambda _: None
    details: type[Any] = Details
    aliases: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    suits: tuple[str, ...] = ()
    task_after_thoughts: str = ""
    calls: int = 1
    least_calls: int = 1
    wants_value: bool = False
    needs_least: bool = False
    needs_models: bool = False

    def __post_init__(self) -> None:
        if fault := next(_faults(self), None):
            raise InvalidStrategyError(f"strategy {self.name!r}: {fault}")

    @cached_property
    def by_name(self) -> Mapping[str, Stage[S]]:
        """Maps the name of each stage to the stage."""
        return {stage.name: stage for stage in self.stages}

    def first_state(self, problem: str, options: O) -> Any:
        """Build the first state of a run."""
        assert self.state is not None, "it is for guided use only"
        return self.begin(problem, options) if self.begin else self.state(problem=problem, options=options)

    @property
    def first(self) -> str:
        """The name of the stage in which a run begins."""
        return self.stages[0].name

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """All edges, in table order."""
        return tuple((stage.name, to) for stage in self.stages for to in stage.ways)

    @property
    def is_driven(self) -> bool:
        """Whether the engine can run the strategy. If it cannot, the strategy only guides an agent."""
        return self.state is not None

    def phase(self, stage: str, status: str) -> str:
        """Return the phase of a stage. If the run has ended, return `completed` or `error`."""
        phase = self.by_name[stage].phase
        if status == "active" or not phase:
            return phase
        return "completed" if status == "done" else "error"

    def check_move(self, stage: str, to: str) -> None:
        """Check that the table has an edge from `stage` to `to`.

        Raises:
            IllegalTransitionError: There is no such edge; `choices` lists the legal stages.
        """
        legal = self.by_name[stage].ways
        if to not in legal:
            choices = ", ".join(legal) if legal else "none: it is the last stage"
            raise IllegalTransitionError(
                f"Invalid transition from {stage} to {to}. Legal next stages: {choices}.",
                stage=stage,
                choices=list(legal),
            )


def _faults(strategy: Strategy[Any, Any]) -> Iterator[str]:
    """Yield the faults of a table. Each check assumes that the checks before it found no fault."""
    names = [stage.name for stage in strategy.stages]
    if len(names) < 2:
        yield "a table needs at least two stages"
    yield from (f"stage {name!r} stands twice in the table" for name in names if names.count(name) > 1)
    for stage in strategy.stages:
        yield from _faults_of_stage(stage, names, is_driven=strategy.is_driven)
    last = [stage.name for stage in strategy.stages if not stage.to]
    if len(last) != 1:
        yield f"there must be exactly one stage without a way out, the end; found {last or 'none'}"
    forward = _reach(strategy.edges, strategy.first)
    backward = _reach([(to, stage) for stage, to in strategy.edges], last[0])
    lost = (name for name in names if name not in forward)
    yield from (f"stage {name!r} cannot be reached from {strategy.first!r}" for name in lost)
    stuck = (name for name in names if name not in backward)
    yield from (f"the end {last[0]!r} cannot be reached from stage {name!r}" for name in stuck)


def _faults_of_stage(stage: Stage[Any], names: Sequence[str], *, is_driven: bool) -> Iterator[str]:
    for to in stage.to:
        if to not in names:
            yield f"stage {stage.name!r} leads to {to!r}, which is not in the table"
    if stage.tested_by and stage.tested_by not in names:
        yield f"stage {stage.name!r} names as its test {stage.tested_by!r}, which is not in the table"
    if is_driven and stage.to and stage.run is None:
        yield f"stage {stage.name!r} has several ways out and no `body`, so the strategy cannot be driven"


def _reach(edges: Sequence[tuple[str, str]], start: str) -> set[str]:
    reached = {start}
    while found := {b for a, b in edges if a in reached} - reached:
        reached |= found
    return reached
