"""Stages 1 to 3: complexity, candidate plans, the choice of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ...core import parse
from ...core.effects import Ask, Effect
from ...core.events import Failed
from ...core.parse import Unreadable
from ...core.strategy import Move, Thought, fail, go, inlined_schema, stay
from ...core.toolcard import card_named, no_such_tool
from ...core.vote import is_settled, tally
from .execution import move_on
from .forms import TASKS, Complexity, PlannedTask, PlanReply, ScoreReply, texts
from .prompts import ANGLES, COMPLEXITY, DEPENDS, DEPENDS_FIELD, EVALUATE, LEAN, PLAN
from .state import (
    COST_LIMIT,
    Plan,
    State,
    affordable,
    earlier,
    is_unmeasured,
    paid,
    question,
    resources,
    room,
    setbacks,
    stopped,
    with_iteration,
)
from .tasks import Task


def receive(state: State, _: tuple[Any, ...]) -> Move:
    """Size the query up first, unless that is switched off."""
    return go(state, "complexity_analysis" if state.options.complexity_analysis else "plan_generation")


# -- stage 1: complexity


def ask_complexity(state: State) -> tuple[Effect, ...]:
    """Ask how demanding the query is; after an iteration, with what did not work in it."""
    task = COMPLEXITY.format(setbacks=_before(state))
    return (question(state, "complexity", task),)


def keep_complexity(state: State, answers: tuple[Any, ...]) -> Move:
    """Take the findings into the history."""
    first, state = is_unmeasured(state), paid(state, answers)
    (answer,) = answers
    if isinstance(answer, Failed):
        if first and answer.code == "output_invalid":
            return stay(replace(state, fault=answer.message))
        return fail(state, "error", answer.message, answer.code)
    found: Complexity = answer.value
    text = complexity_text(found, state.number)
    state = with_iteration(replace(state, fault="", history=(*state.history, text)), complexity=found)
    thought = Thought(text, data={"complexity_level": found.complexity_level})
    if plans_due(state):
        return go(state, "plan_generation", thought)
    return go(stopped(state, "cost_limit", COST_LIMIT), "iteration_decision", thought)


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


def plans_due(state: State) -> int:
    """Return how many plans to ask for now, leaving enough to score them and to carry out one task."""
    wanted, have = state.options.candidate_plans - state.now.asked, len(state.now.plans)
    if is_unmeasured(state):
        return min(1, wanted)
    votes = _majority(state)
    for due in range(wanted, 0, -1):
        scores = (have + due) * votes if have + due > 1 else 0
        if due + scores + 2 + votes <= room(state):
            return due
    return min(wanted, 1) if not have and room(state) >= 1 else 0


def ask_plans(state: State) -> tuple[Effect, ...]:
    """Ask for candidate plans, side by side."""
    due, form = plans_due(state), _plan_form(state)
    return tuple(
        question(
            state,
            "plan",
            _plan_task(state, number),
            sample=number - 1,
            together=due,
            form=form,
            facts={"candidate": number},
        )
        for number in range(state.now.asked + 1, state.now.asked + due + 1)
    )


def read_plan(state: State, _: Ask, replies: Sequence[str]) -> tuple[PlanReply, str] | Unreadable:
    """Read a plan; every task needs a resource there is, something to do, and only earlier tasks' results."""
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
        if any(not 1 <= one < number for one in task.depends_on):
            return Unreadable(
                f"task {number}: depends_on may name earlier tasks only, by their numbers from 1"
            )
        tasks.append(replace(task, resource_name=card.name))
    return PlanReply(tuple(tasks)), reading[1]


def keep_plans(state: State, answers: tuple[Any, ...]) -> Move:
    """Take the plans that can be used; one is carried out as it is, several are scored."""
    first, state = is_unmeasured(state), paid(state, answers)
    failures = [one for one in answers if isinstance(one, Failed)]
    if first and failures and failures[0].code == "output_invalid":
        return stay(replace(state, fault=failures[0].message))
    plans = [Plan(one.value.tasks) for one in answers if not isinstance(one, Failed)]
    have = len(state.now.plans)
    thoughts = [Thought(plan.text, branch=_branch(state, have + n)) for n, plan in enumerate(plans, 1)]
    state = with_iteration(
        replace(state, fault=""),
        plans=(*state.now.plans, *plans),
        asked=state.now.asked + len(answers),
        dropped=(*state.now.dropped, *(one.message for one in failures)),
    )
    if plans_due(state):
        return stay(state, *thoughts)
    if not state.now.plans:
        return _without_plan(state, failures)
    if len(state.now.plans) > 1:
        return go(state, "plan_evaluation", *thoughts)
    return move_on(chosen(state, 0), "plan_generation", *thoughts)


def _without_plan(state: State, failures: Sequence[Failed]) -> Move:
    last = failures[-1] if failures else Failed("output_invalid", "")
    detail = f"none of {state.now.asked} plans could be used; the last: {last.message}"
    if state.now.asked < state.options.candidate_plans:
        return go(stopped(state, "cost_limit", COST_LIMIT), "iteration_decision")
    if state.accepted:
        return go(stopped(state, "no_plan", detail), "iteration_decision")
    reason = "no_plan" if any(one.code == "output_invalid" for one in failures) else "error"
    return fail(state, reason, detail, last.code)


def _plan_task(state: State, number: int) -> str:
    level = state.now.complexity.complexity_level if state.now.complexity else None
    least, most = TASKS[level] if level else (2, 6)
    concurrent, count = state.options.concurrent_tasks, state.options.candidate_plans
    return PLAN.format(
        least=least,
        most=most,
        depends=DEPENDS if concurrent else "",
        field=DEPENDS_FIELD if concurrent else "",
        lean=LEAN.format(number=number, count=count, angle=ANGLES[number - 1]) if count > 1 else "",
        setbacks=_before(state),
    )


def _plan_form(state: State) -> dict[str, Any]:
    form = inlined_schema(PlanReply)
    names = [card.name for card in resources(state.options)]
    form["properties"]["tasks"]["items"]["properties"]["resource_name"]["enum"] = names
    return form


def _before(state: State) -> str:
    fault = f"\nYour last reply could not be used: {state.fault}.\n" if state.fault else ""
    return setbacks(state, earlier(state)) + fault


# -- stage 3: the choice


def ballots_due(state: State) -> int:
    """Return how many rounds of scores to ask for now: as few as can settle the choice."""
    now, plans = state.now, len(state.now.plans)
    votes = tally(now.ballots)
    lead = votes[0].count if votes else 0
    left = state.options.votes - now.drawn
    if now.drawn and (left == 0 or is_settled(votes, left)):
        return 0
    return affordable(state, min(left, max(1, _majority(state) - lead)) * plans) // plans


def ask_scores(state: State) -> tuple[Effect, ...]:
    """Ask what each plan is worth, once a round."""
    rounds, plans = range(state.now.drawn, state.now.drawn + ballots_due(state)), state.now.plans
    return tuple(
        question(
            state,
            "score",
            EVALUATE.format(plan=plan.text),
            sample=sample,
            together=len(rounds) * len(plans),
            by="judge",
            facts={"candidate": number},
        )
        for sample in rounds
        for number, plan in enumerate(plans, 1)
    )


def keep_scores(state: State, answers: tuple[Any, ...]) -> Move:
    """Take rounds of scores; each votes for its highest plan, the first of equals, and most votes win."""
    if not answers:
        return move_on(chosen(state, _winner(state)), "plan_evaluation")
    state, plans = paid(state, answers), list(state.now.plans)
    width, ballots = len(plans), list(state.now.ballots)
    for start in range(0, len(answers), width):
        scores: dict[int, float] = {}
        for index, one in enumerate(answers[start : start + width]):
            if not isinstance(one, Failed):
                reply: ScoreReply = one.value
                scores[index] = reply.overall_score
                plan = plans[index]
                plans[index] = replace(
                    plan, scores=(*plan.scores, reply.overall_score), reasons=(*plan.reasons, reply.reason)
                )
        ballots += [str(max(scores, key=lambda index: scores[index]) + 1)] if scores else []
    drawn = state.now.drawn + len(answers) // width
    state = with_iteration(state, plans=tuple(plans), ballots=tuple(ballots), drawn=drawn)
    if ballots_due(state):
        return stay(state)
    thoughts = [
        Thought(
            " ".join(dict.fromkeys(plan.reasons)) or "No score.", score=plan.score, branch=_branch(state, n)
        )
        for n, plan in enumerate(plans, 1)
    ]
    return move_on(chosen(state, _winner(state)), "plan_evaluation", *thoughts)


def chosen(state: State, index: int) -> State:
    """Return the state with a plan selected and its tasks waiting."""
    planned = state.now.plans[index].tasks
    tasks = [
        Task(one.resource_name, one.task_query, state.number, number, one.depends_on)
        for number, one in enumerate(planned, 1)
    ]
    return with_iteration(replace(state, tasks=(*state.tasks, *tasks)), selected=index)


def _winner(state: State) -> int:
    votes = tally(state.now.ballots)
    return int(votes[0].answer) - 1 if votes else 0


def _majority(state: State) -> int:
    return state.options.votes // 2 + 1


def _branch(state: State, number: int) -> str:
    return f"plan-{state.number}.{number}"
