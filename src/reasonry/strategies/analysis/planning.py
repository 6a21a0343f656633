"""Stages 1 and 2: complexity, candidate plans."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from ...core.bodies import Body, Move, Thought, fail, go, request
from ...core.effects import Ask, CallTool
from ...core.events import Failed, Reply, ToolReturned
from ...core.strategy import inlined_schema
from ...core.toolcard import card_named, cards_text, no_such_tool
from ...reading import parse
from ...reading.fit import Unreadable
from .questions import (
    ANGLES,
    ANY_LEVEL,
    COMPLEXITY,
    DEPENDS,
    DEPENDS_FIELD,
    LEAN,
    PLAN,
    TASKS,
    Complexity,
    PlannedTask,
    PlanReply,
    texts,
)
from .state import (
    COST_LIMIT,
    RETRIEVER,
    Overview,
    Plan,
    State,
    Task,
    ask,
    documents_shown,
    end_work,
    is_unmeasured,
    plan_id,
    plan_letter,
    question,
    resources,
    room,
    with_iteration,
)
from .tasks import move_on, setbacks


def receive(s: State) -> Body:
    """Look at the user's documents; then size the query up first, unless that is switched off."""
    if RETRIEVER in s.tool_names:
        call = CallTool(RETRIEVER, {"query": s.problem, "overview": True})
        (found,) = yield request(s, call, give_failures=True)
        s = _with_documents(s, found)
    return go(s, "complexity_analysis" if s.options.complexity_analysis else "plan_generation")


def _with_documents(state: State, found: ToolReturned | Failed) -> State:
    """Return the state with what the retriever says of its documents; one that cannot is only searched."""
    try:
        return replace(state, overview=msgspec.convert(getattr(found, "value", None), Overview))
    except msgspec.ValidationError:
        return state


# -- stage 1: complexity


def size_up(s: State) -> Body:
    """Level, dimensions, order ← Complexity(q, H, what went wrong)."""
    task = COMPLEXITY.format(documents=documents_shown(s), setbacks=_before(s))
    s, (answer,) = yield from ask(s, question(s, "complexity", task))
    if isinstance(answer, Failed):
        return fail(s, "error", answer.message, answer.code)
    found: Complexity = answer.value
    text = complexity_text(found, s.number)
    s = with_iteration(replace(s, history=(*s.history, text)), complexity=found)
    thought = Thought(text, data={"complexity_level": found.complexity_level})
    if plans_due(s):
        return go(s, "plan_generation", thought)
    return go(end_work(s, "cost_limit", COST_LIMIT), "iteration_decision", thought)


def complexity_text(found: Complexity, number: int) -> str:
    """Return the findings as the history has them."""
    lines = [f"Complexity, iteration {number}: {found.complexity_level}"]
    parts = {
        "Dimensions": "; ".join(texts(found.dimensions)),
        "Key challenges": "; ".join(texts(found.key_challenges)),
        "Order": "; ".join(texts(found.sequential_dependencies)),
        "Iteration strategy": found.iteration_strategy,
    }
    return "\n".join([*lines, *(f"{name}: {text}" for name, text in parts.items() if text)])


# -- stage 2: plans


def draft_plans(s: State) -> Body:
    """P_1 … P_k ← Plan(q, H), side by side, as far as they can be paid; one is carried out as it is."""
    asked = 0
    failures: list[Failed] = []
    thoughts: list[Thought] = []
    while due := plans_due(s, asked):
        numbers = range(asked + 1, asked + due + 1)
        s, answers = yield from ask(s, *thoughts, *(_plan_question(s, number) for number in numbers))
        asked, thoughts = asked + due, []
        failures = [answer for answer in answers if isinstance(answer, Failed)]
        plans = [
            Plan(answer.value.tasks, draft=number)
            for number, answer in zip(numbers, answers, strict=True)
            if isinstance(answer, Reply)
        ]
        for number, plan in enumerate(plans, len(s.now.plans) + 1):
            thoughts.append(
                Thought(
                    f"Plan {plan_letter(number)}:\n{plan.text}",
                    branch=plan_branch(s, number),
                    data={"node_id": plan_id(s.number, plan.draft)},
                )
            )
        dropped = (failure.message for failure in failures)
        s = with_iteration(s, plans=(*s.now.plans, *plans), dropped=(*s.now.dropped, *dropped))
    if not s.now.plans:
        return _without_plan(s, asked, failures)
    if len({plan.text for plan in s.now.plans}) > 1:
        return go(s, "plan_evaluation", *thoughts)
    return move_on(select_plan(s, 0), "plan_generation", *thoughts)


def plans_due(state: State, asked: int = 0) -> int:
    """Return how many plans to ask for now, leaving enough to score them and to carry out one task."""
    wanted, have = state.options.candidate_plans - asked, len(state.now.plans)
    if is_unmeasured(state):
        return min(1, wanted)
    votes = state.options.majority
    for due in range(wanted, 0, -1):
        scores = votes if have + due > 1 else 0
        if due + scores + 2 + votes <= room(state):
            return due
    return min(wanted, 1) if not have and room(state) >= 1 else 0


def _without_plan(state: State, asked: int, failures: Sequence[Failed]) -> Move:
    last = failures[-1] if failures else Failed("output_invalid", "")
    detail = f"none of {asked} plans could be used; the last: {last.message}"
    if asked < state.options.candidate_plans:
        return go(end_work(state, "cost_limit", COST_LIMIT), "iteration_decision")
    if state.accepted:
        return go(end_work(state, "no_plan", detail), "iteration_decision")
    reason = "no_plan" if any(failure.code == "output_invalid" for failure in failures) else "error"
    return fail(state, reason, detail, last.code)


def _plan_question(state: State, number: int) -> Ask:
    form = inlined_schema(PlanReply)
    names = [card.name for card in resources(state.options)]
    form["properties"]["tasks"]["items"]["properties"]["resource_name"]["enum"] = names
    task, facts = _plan_task(state, number), {"candidate": number}
    about = plan_id(state.number, number)
    return question(state, "plan", task, sample=number - 1, form=form, facts=facts, about=about)


def read_plan(state: State, ask: Ask, replies: Sequence[str]) -> tuple[PlanReply, str] | Unreadable:
    """Read a plan; every task needs a resource there is, something to do, and only earlier tasks' results.

    A plan that can be carried out and only has too few or too many tasks is taken at the last try.
    """
    reading = parse.read_form(replies[-1], PlanReply)
    if isinstance(reading, Unreadable):
        return reading
    cards, tasks = resources(state.options), list[PlannedTask]()
    for number, task in enumerate(reading[0].tasks, 1):
        card = card_named(cards, task.resource_name)
        if card is None:
            return Unreadable(f"task {number}: {no_such_tool(cards, task.resource_name)}")
        if not task.task_query.strip():
            return Unreadable(f"task {number}: its task_query is empty")
        if any(not 1 <= earlier < number for earlier in task.depends_on):
            return Unreadable(
                f"task {number}: depends_on may name earlier tasks only, by their numbers from 1"
            )
        tasks.append(replace(task, resource_name=card.name))
    fault = _count_fault(state, len(tasks))
    if fault and len(replies) <= ask.retries:
        return Unreadable(fault, is_doubt=True)
    return PlanReply(tuple(tasks)), reading[1]


def _count_fault(state: State, count: int) -> str:
    """Return what is wrong with the number of tasks of a plan; empty if nothing is."""
    fewest_tasks, most_tasks = _task_counts(state)
    if not state.options.enforce_task_counts or fewest_tasks <= count <= most_tasks:
        return ""
    size = f"a {_level(state)} query has" if _level(state) else "a plan has"
    return f"the plan has {count} {'task' if count == 1 else 'tasks'}; {size} {fewest_tasks} to {most_tasks}"


def _level(state: State) -> str | None:
    return state.now.complexity.complexity_level if state.now.complexity else None


def _task_counts(state: State) -> tuple[int, int]:
    """Return how few and how many tasks a plan should have."""
    level = _level(state)
    return TASKS[level] if level else ANY_LEVEL


def _plan_task(state: State, number: int) -> str:
    fewest_tasks, most_tasks = _task_counts(state)
    concurrent, count = state.options.concurrent_tasks, state.options.candidate_plans
    return PLAN.format(
        cards=cards_text(resources(state.options)),
        documents=documents_shown(state, whole=True),
        least=fewest_tasks,
        most=most_tasks,
        depends=DEPENDS if concurrent else "",
        field=DEPENDS_FIELD if concurrent else "",
        lean=LEAN.format(number=number, count=count, angle=ANGLES[number - 1]) if count > 1 else "",
        setbacks=_before(state),
    )


def _before(state: State) -> str:
    return setbacks(state, range(1, state.number))


def select_plan(state: State, index: int) -> State:
    """Return the state with a plan selected and its tasks waiting."""
    planned = state.now.plans[index].tasks
    tasks = [
        Task(task.resource_name, task.task_query, state.number, number, task.depends_on)
        for number, task in enumerate(planned, 1)
    ]
    return with_iteration(replace(state, tasks=(*state.tasks, *tasks)), selected=index)


def plan_branch(state: State, number: int) -> str:
    """Return the branch that a candidate plan of the iteration at work is on."""
    return f"plan-{state.number}.{number}"
