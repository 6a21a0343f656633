"""A strategy: one table of stages, each with its body and the stages it may lead to.

Rule 1: the table is the only place where edges stand. It is checked when the strategy is defined.
Rule 2: a stage's body is one pure generator function of the state, see `bodies`.
Rule 3: a stage with one way out needs no body. A strategy that is driven has a body wherever there is a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, Final, Generic, TypedDict, TypeVar

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
    """A named value of a thought of a stage, in guided use.

    Args:
        schema: JSON schema of the value, with a `description`.
        check: Yields, of a value that fits the schema, the rules it breaks that no schema can hold, as sentences.
    """

    name: str
    schema: Mapping[str, Any]
    required: bool = True
    check: Callable[[Any], Iterator[str]] | None = None

    @classmethod
    def mandatory(cls, name: str, kind: str, description: str, **more: Any) -> Field:
        """Return a field that each thought of the stage has.

        Args:
            kind: A JSON type, `texts` for a list of texts, or `any`.
            more: Of its schema.
        """
        kinds = {"texts": {"type": "array", "items": {"type": "string"}}, "any": {}}
        return cls(name, {**kinds.get(kind, {"type": kind}), "description": description, **more})

    @classmethod
    def optional(cls, name: str, kind: str, description: str, **more: Any) -> Field:
        """Return a field that a thought of the stage may leave out; for the arguments see `mandatory`."""
        return replace(cls.mandatory(name, kind, description, **more), required=False)


LONG_REPLY: Final = 8_192
"""Tokens of a reply that may be a text of several thousand words."""

SHORT_REPLY: Final = 4_096
"""Tokens of a reply that is a verdict, scores or a question, by a model that thinks before it without saying so."""


@dataclass(frozen=True)
class Stage(Generic[S]):
    """One row of the table.

    Args:
        name: As seed or paper has it.
        to: The stages that may come next; none for the last.
        description: The stage in one line.
        guidance: Instructions for the stage, and when to leave it.
        repeats: Whether the stage is a loop: each `stay` is an edge to itself, in diagram, table and recorded path.
        fields: The fields of a guided thought of this stage, in `data`.
        compares: Whether a thinker weighs lines of thought against each other here, and so wants to see their scores.
        tested_by: The stage that tests what is claimed in this one, if there is such a stage.
        body: The code to run: a generator function of the state, or, for a stage that asks nothing, a plain
            function that returns the move. None: the stage is passed through by its only way out.
        reply: The form of a reply: a Struct, whose JSON schema goes out with each question.
        example: A legal reply, as data.
        read: Reads the replies to one ask, oldest first, into a value; for forms that a schema alone cannot hold.
        value: Type of what `read` returns, where that is not `reply`: recorded readings are read back into it.
        phase: The words for this stage while a run works, if not its name.
        max_output_tokens: How long a reply may be.
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
        """What the engine runs: the body; where there is none, a move along the only way out."""
        return partial(go, to=self.to[0]) if self.body is None and len(self.to) == 1 else self.body

    @property
    def ways(self) -> tuple[str, ...]:
        """The stages an edge leads to from here: itself where it repeats, then those that may come next."""
        return (self.name, *self.to) if self.repeats else self.to

    @property
    def value_type(self) -> Any:
        """What an answer is read into; None: its text, or anything."""
        return self.reply if self.value is None else self.value

    @cached_property
    def form(self) -> dict[str, Any] | None:
        """The reply's JSON schema, every reference resolved in place, every property required.

        A property that may be left out may be null instead: providers hold replies to a schema only if it is like this.
        """
        return None if self.reply is None else all_required(inlined_schema(self.reply))


def problem_reception(
    to: tuple[str, ...], guidance: str, *, description: str = "Take in the problem.", **parts: Any
) -> Stage[Any]:
    """Return the stage that every strategy begins with."""
    return Stage("problem_reception", to, description, guidance, **parts)


def final_response(
    guidance: str = "State the answer alone, complete and in the form that was asked for.",
    *,
    description: str = "Give the answer.",
    phase: str = "",
) -> Stage[Any]:
    """Return the stage that every strategy ends with."""
    return Stage("final_response", (), description, guidance, phase=phase)


class NoOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The options of a strategy that has none."""


class Details(TypedDict, total=False):
    """What any strategy may add to a result; each has a type of its own for what it adds."""

    diagnostics: Annotated[dict[str, Any], Meta(description="Why `auto` chose the strategy, and more.")]
    unchecked: Annotated[str, Meta(description="Why the answer is unchecked.")]


class AnswerDetails(Details):
    """What a strategy whose answers are verified or reviewed adds to a result."""

    verification: Annotated[str, Meta(description="`open`, `reviewed`, `doubted`, `unchecked` or `proved`.")]
    objections: Annotated[list[str], Meta(description="The faults of earlier answers.")]


class DraftsDetails(Details):
    """What a strategy that compares drafts adds to a result."""

    votes: Annotated[list[dict[str, Any]], Meta(description="`answer`, `count` and, if weighed, `weight`.")]
    samples: Annotated[
        list[dict[str, Any]], Meta(description="`id`, `number`, `answer`, `vote`, `dropped`, `inside`.")
    ]
    samples_used: Annotated[int, Meta(description="Drafts written.")]


@dataclass(frozen=True)
class Strategy(Generic[S, O]):
    """A way of thinking.

    Args:
        name: Canonical, snake_case.
        title: For people.
        source: The paper (`arXiv:…`) or seed it comes from.
        summary: One sentence: what it is good for.
        stages: The table, in reading order; the first is where a run begins, the one without `to` where it ends.
        options: Frozen Struct; field defaults, ranges and descriptions are the only place they stand.
        version: Raised whenever prompts, forms or stages change so that a run begun before may not fit any more;
            recorded with each run.
        state: Type of the strategy's own data; anything msgspec can encode. None: guided use only.
        begin: (problem, options) → first state; by default `state(problem=problem, options=options)`.
        conclude: state → conclusion so far.
        close: state → the move to the stage that gives the answer from what there is, with one question or none; None
            where the next question of the run is the best last one. A strategy without it is never closed.
        details: Type of its document.
        aliases: Other names it goes by.
        resources: Built-in tools it uses where they are available.
        suits: The kinds of problem that `auto` takes it for, as `strategies.choice` names them.
        task_after_thoughts: The problem of a run that begins with the thoughts of a session and names none; empty: the
            first of them is the problem.
        calls: Of a usual run with its default options, judging included.
        least_calls: Calls without which it is one direct question.
        wants_value: Whether its answer is a number or a truth value, so that no text is ever the answer as a whole.
        needs_least: Whether it gives nothing at all with fewer calls than these.

    Raises:
        InvalidStrategyError: The table does not hold together; the message says which stage and why.
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

    def __post_init__(self) -> None:
        if fault := next(_faults(self), None):
            raise InvalidStrategyError(f"strategy {self.name!r}: {fault}")

    @cached_property
    def by_name(self) -> Mapping[str, Stage[S]]:
        """The table, by the names of the stages."""
        return {stage.name: stage for stage in self.stages}

    def first_state(self, problem: str, options: O) -> Any:
        """Return the state that a run begins with."""
        assert self.state is not None, "it is for guided use only"
        return self.begin(problem, options) if self.begin else self.state(problem=problem, options=options)

    @property
    def first(self) -> str:
        """The stage a run begins in."""
        return self.stages[0].name

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """All edges, in table order."""
        return tuple((stage.name, to) for stage in self.stages for to in stage.ways)

    @property
    def is_driven(self) -> bool:
        """Whether the engine can run it, rather than only keep a thinker's stages straight."""
        return self.state is not None

    def phase(self, stage: str, status: str) -> str:
        """Return what a run does that stands in a stage, or how it has ended: `completed` or `error`.

        Empty where the table has no phases.

        Args:
            status: That of the run: `active`, `done`, `failed` or `cancelled`.
        """
        phase = self.by_name[stage].phase
        if status == "active" or not phase:
            return phase
        return "completed" if status == "done" else "error"

    def check_move(self, stage: str, to: str) -> None:
        """Check that the table has an edge.

        Raises:
            IllegalTransitionError: It has not; `choices` has the legal stages.
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
    """Yield the faults of a table; each check takes for granted that the faults before it are absent."""
    names = [stage.name for stage in strategy.stages]
    if len(names) < 2:
        yield "a table needs at least two stages"
    yield from (f"stage {name!r} stands twice in the table" for name in names if names.count(name) > 1)
    for stage in strategy.stages:
        for to in stage.to:
            if to not in names:
                yield f"stage {stage.name!r} leads to {to!r}, which is not in the table"
        if stage.tested_by and stage.tested_by not in names:
            yield f"stage {stage.name!r} is to be tested by {stage.tested_by!r}, which is not in the table"
        if strategy.is_driven and stage.to and stage.run is None:
            yield f"stage {stage.name!r} has several ways out and no `body`, so the strategy cannot be driven"
    last = [stage.name for stage in strategy.stages if not stage.to]
    if len(last) != 1:
        yield f"there must be exactly one stage without a way out, the end; found {last or 'none'}"
    forward = _reach(strategy.edges, strategy.first)
    backward = _reach([(to, stage) for stage, to in strategy.edges], last[0])
    lost = (name for name in names if name not in forward)
    yield from (f"stage {name!r} cannot be reached from {strategy.first!r}" for name in lost)
    stuck = (name for name in names if name not in backward)
    yield from (f"the end {last[0]!r} cannot be reached from stage {name!r}" for name in stuck)


def _reach(edges: Sequence[tuple[str, str]], start: str) -> set[str]:
    reached = {start}
    while found := {b for a, b in edges if a in reached} - reached:
        reached |= found
    return reached
