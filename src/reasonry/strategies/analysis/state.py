"""An analysis between two answers: iterations, tasks, the analysis history, and what was spent."""

from __future__ import annotations

import math
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from ...core.closing import Closing
from ...core.effects import Ask
from ...core.events import Failed, Reply
from ...core.toolcard import ToolCard, cards_text
from .focus import Focus
from .forms import Complexity, DecisionReply, PlannedTask, SynthesisReply
from .options import Options
from .prompts import KNOWLEDGE, LOGIC_KERNEL, PY_EXECUTOR, SETBACKS, SYSTEM
from .tasks import BUILT_IN, CHECKER, RETRIEVER, Task, setback, skipped

RE_ASKS = 2
COST_LIMIT = "the cost limit was reached"


class Plan(Struct, frozen=True, omit_defaults=True):
    """A candidate plan, and what its scorers said."""

    tasks: tuple[PlannedTask, ...]
    scores: tuple[float, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def score(self) -> float | None:
        """The mean of its scores."""
        return sum(self.scores) / len(self.scores) if self.scores else None

    @property
    def text(self) -> str:
        """The tasks, numbered."""
        return "\n".join(
            f"{n}. {task.resource_name}: {task.task_query}" for n, task in enumerate(self.tasks, 1)
        )


class Iteration(Struct, frozen=True, omit_defaults=True):
    """One pass through planning, execution and decision."""

    complexity: Complexity | None = None
    plans: tuple[Plan, ...] = ()
    asked: int = 0
    """Plans asked for, those that could not be used included."""
    dropped: tuple[str, ...] = ()
    """Why plans could not be used."""
    ballots: tuple[str, ...] = ()
    """The plan that won each round of scores, as its number."""
    drawn: int = 0
    """Rounds of scores asked for."""
    selected: int | None = None
    """Index of the selected plan."""
    decision: DecisionReply | None = None


class State(Struct, frozen=True, omit_defaults=True):
    """The state of an analysis."""

    problem: str
    options: Options
    iterations: tuple[Iteration, ...] = (Iteration(),)
    tasks: tuple[Task, ...] = ()
    """Of all iterations, in the order of their plans."""
    history: tuple[str, ...] = ()
    """The analysis history: findings, accepted results and feedback. It only grows."""
    ended: tuple[str, str] | None = None
    """Why there will be no further work: (reason, detail)."""
    synthesis: SynthesisReply | None = None
    focused: str | int | float | None = None
    closing: Closing = Closing()
    """The answer on its way to being given."""
    fault: str = ""
    """Why the first reply of a run with a cost limit could not be used."""
    spent_usd: float = 0.0
    dearest_usd: float = 0.0
    """What the dearest call so far has cost."""
    calls: int = 0
    """Questions answered so far, each try counted."""

    @property
    def now(self) -> Iteration:
        """The iteration at work."""
        return self.iterations[-1]

    @property
    def number(self) -> int:
        """Its number, from 1."""
        return len(self.iterations)

    @property
    def focus(self) -> Focus | None:
        """The focused answer that is wanted."""
        return self.options.focus

    @property
    def accepted(self) -> tuple[Task, ...]:
        """All accepted tasks."""
        return tuple(task for task in self.tasks if task.status == "ACCEPTED")

    @property
    def tool_names(self) -> frozenset[str]:
        """The tools there are."""
        return frozenset(card.name for card in self.options.tools)


def at_work(state: State) -> tuple[Task, ...]:
    """Return the tasks of the iteration at work."""
    return tuple(task for task in state.tasks if task.iteration == state.number)


def with_iteration(state: State, **changes: Any) -> State:
    """Return the state with the iteration at work changed."""
    return replace(state, iterations=(*state.iterations[:-1], replace(state.now, **changes)))


def with_tasks(state: State, *changed: Task) -> State:
    """Return the state with tasks replaced."""
    by_place = {(task.iteration, task.number): task for task in changed}
    return replace(
        state, tasks=tuple(by_place.get((task.iteration, task.number), task) for task in state.tasks)
    )


def resources(options: Options) -> tuple[ToolCard, ...]:
    """Return what tasks can use: the built-in resources, programs only where they can be run, then the tools given."""
    given = {card.name: card for card in options.tools}
    program = given.get(PY_EXECUTOR.name)
    if program is not None:
        described = f"{PY_EXECUTOR.description} {program.description}".strip()
        program = ToolCard(PY_EXECUTOR.name, described, PY_EXECUTOR.parameters)
    extra = (card for card in options.tools if card.name not in (*BUILT_IN, CHECKER, RETRIEVER))
    return (KNOWLEDGE, LOGIC_KERNEL, *((program,) if program else ()), *extra)


# -- questions


def question(
    state: State,
    kind: str,
    task: str,
    *,
    sample: int = 0,
    together: int = 1,
    by: Literal["writer", "judge"] = "writer",
    form: dict[str, Any] | None = None,
    kept: int = 0,
    facts: dict[str, Any] | None = None,
) -> Ask:
    """Return a question: query, context and history first, what is to be done last.

    Args:
        together: How many questions go out at the same time; what can be spent is shared among them.
        kept: How many of the calls kept back for the end are this one's to use.
    """
    head = f"Query: {state.problem}"
    if state.options.context:
        head += f"\n\nContext:\n{state.options.context}"
    return Ask(
        "\n\n".join([head, *state.history, task]),
        SYSTEM.format(cards=cards_text(resources(state.options))),
        {"kind": kind, "problem": state.problem, "iteration": state.number, **(facts or {})},
        by=by,
        sample=sample,
        retries=re_asks(state, together, kept),
        temperature=state.options.temperature,
        form=form,
    )


def setbacks(state: State, iterations: tuple[int, ...]) -> str:
    """Say what did not work in these iterations: rejections, failures, plans that could not be used."""
    lines = [
        setback(task)
        for task in state.tasks
        if task.iteration in iterations and task.status in ("REJECTED", "FAILED", "SKIPPED")
    ]
    lines += [
        f"- a plan could not be used: {why}" for n in iterations for why in state.iterations[n - 1].dropped
    ]
    return "\n" + SETBACKS.format(lines="\n".join(lines)) + "\n" if lines else ""


def earlier(state: State) -> tuple[int, ...]:
    """Return the numbers of the iterations that are over."""
    return tuple(range(1, state.number))


# -- what may be spent


def paid(state: State, answers: tuple[Any, ...]) -> State:
    """Book what answers have cost, those that could not be used included."""
    spent, dearest, calls = state.spent_usd, state.dearest_usd, state.calls
    for one in answers:
        if not isinstance(one, Reply | Failed):
            continue
        tries = one.tries if isinstance(one, Reply) else max(1, len(one.replies))
        usd = one.usage.usd or 0.0
        spent, dearest, calls = spent + usd, max(dearest, usd / tries), calls + tries
    return replace(state, spent_usd=spent, dearest_usd=dearest, calls=calls)


def room(state: State) -> float:
    """Return how many calls can still go out, with what the end needs kept back.

    The first call of a run with a limit goes out alone: only then is it known what a call costs.
    """
    limit = state.options.cost_limit
    if limit is None:
        return math.inf
    if state.calls == 0:
        return 1.0
    if state.dearest_usd == 0:
        return math.inf
    kept = 1 if state.focus is None else 2
    return (limit - state.spent_usd) / state.dearest_usd - kept + 1e-9


def is_unmeasured(state: State) -> bool:
    """Whether there is a limit and nobody knows yet what a call costs."""
    return state.options.cost_limit is not None and state.calls == 0


def is_broke(state: State) -> bool:
    """Whether nothing at all is left of the limit."""
    limit = state.options.cost_limit
    return limit is not None and state.spent_usd >= limit


def affordable(state: State, wanted: int) -> int:
    """Return how many of the calls wanted can go out now."""
    return int(max(0, min(wanted, room(state))))


def re_asks(state: State, together: int, kept: int) -> int:
    """Return how often an unusable reply may be asked for again."""
    if is_unmeasured(state):
        return 0
    each = (room(state) + kept) / together - 1
    return int(max(0, min(RE_ASKS, each)))


def stopped(state: State, reason: str, detail: str) -> State:
    """Return the state with no further work to do; tasks that are not over are skipped."""
    tasks = tuple(skipped(task, detail) for task in state.tasks)
    return replace(state, tasks=tasks, ended=(reason, detail))
