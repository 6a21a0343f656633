"""Stages 1 to 3: complexity, candidate plans, the choice of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...core import parse
from ...core.effects import Ask, CallTool
from ...core.events import Failed, Reply, ToolReturned
from ...core.fit import Unreadable, plain_name
from ...core.strategy import Body, Move, Thought, fail, go, inlined_schema, request
from ...core.toolcard import ToolCard, card_named, no_such_tool
from ...core.vote import is_settled, tally
from .questions import (
    ANGLES,
    COMPLEXITY,
    DEPENDS,
    DEPENDS_FIELD,
    EVALUATE,
    LEAN,
    PLAN,
    TASKS,
    Complexity,
    PlannedTask,
    PlanReply,
    ScoreReply,
    texts,
)
from .state import (
    COST_LIMIT,
    RETRIEVER,
    Plan,
    State,
    Task,
    affordable,
    book_costs,
    cards_shown,
    documents_shown,
    end_work,
    is_unmeasured,
    question,
    resources,
    resources_shown,
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
    value = found.value if isinstance(found, ToolReturned) else None
    try:
        overview = msgspec.convert(value, Overview)
    except msgspec.ValidationError:
        return state
    passages = None if overview.passages is None else tuple(overview.passages)
    documents = tuple(msgspec.to_builtins(document) for document in overview.documents)
    return replace(state, documents=documents, passages=passages)


class Document(Struct, frozen=True):
    """A document, and how it begins."""

    source: str
    characters: int
    begins: str


class Overview(Struct, frozen=True):
    """What documents there are; all of their passages, where they are small."""

    documents: tuple[Document, ...]
    passages: tuple[dict[str, Any], ...] | None = None


# -- stage 1: complexity


def size_up(s: State) -> Body:
    """Level, dimensions, order ← Complexity(q, H, what went wrong)."""
    unmeasured = is_unmeasured(s)
    (answer,) = yield request(s, _complexity_question(s), give_failures=True)
    s = book_costs(s, (answer,))
    if unmeasured and (fault := _unusable(answer)):
        (answer,) = yield request(s, _complexity_question(s, fault), give_failures=True)
        s = book_costs(s, (answer,))
    if isinstance(answer, Failed):
        return fail(s, "error", answer.message, answer.code)
    found: Complexity = answer.value
    text = complexity_text(found, s.number)
    s = with_iteration(replace(s, history=(*s.history, text)), complexity=found)
    thought = Thought(text, data={"complexity_level": found.complexity_level})
    if plans_due(s):
        return go(s, "plan_generation", thought)
    return go(end_work(s, "cost_limit", COST_LIMIT), "iteration_decision", thought)


def _complexity_question(state: State, fault: str = "") -> Ask:
    task = COMPLEXITY.format(documents=documents_shown(state), setbacks=_before(state, fault))
    return question(state, "complexity", task)


def _unusable(answer: Reply | Failed) -> str:
    """Why a reply could not be used; empty if it could, or if there was none."""
    return answer.message if isinstance(answer, Failed) and answer.code == "output_invalid" else ""


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
    asked, fault = 0, ""
    failures: list[Failed] = []
    thoughts: list[Thought] = []
    while due := plans_due(s, asked):
        unmeasured, numbers = is_unmeasured(s), range(asked + 1, asked + due + 1)
        questions = [_plan_question(s, number, due, fault) for number in numbers]
        answers = yield request(s, *thoughts, *questions, give_failures=True)
        s, thoughts = book_costs(s, answers), []
        fault = _unusable(answers[0]) if unmeasured else ""
        if fault:
            continue
        asked += due
        failures = [answer for answer in answers if isinstance(answer, Failed)]
        plans = [Plan(answer.value.tasks) for answer in answers if isinstance(answer, Reply)]
        for number, plan in enumerate(plans, len(s.now.plans) + 1):
            thoughts.append(Thought(plan.text, branch=_branch(s, number)))
        dropped = (failure.message for failure in failures)
        s = with_iteration(s, plans=(*s.now.plans, *plans), dropped=(*s.now.dropped, *dropped))
    if not s.now.plans:
        return _without_plan(s, asked, failures)
    if len(s.now.plans) > 1:
        return go(s, "plan_evaluation", *thoughts)
    return move_on(_select(s, 0), "plan_generation", *thoughts)


def plans_due(state: State, asked: int = 0) -> int:
    """Return how many plans to ask for now, leaving enough to score them and to carry out one task."""
    wanted, have = state.options.candidate_plans - asked, len(state.now.plans)
    if is_unmeasured(state):
        return min(1, wanted)
    votes = _majority(state)
    for due in range(wanted, 0, -1):
        scores = (have + due) * votes if have + due > 1 else 0
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


def _plan_question(state: State, number: int, together: int, fault: str) -> Ask:
    return question(
        state,
        "plan",
        _plan_task(state, number, fault),
        sample=number - 1,
        together=together,
        form=_plan_form(state),
        facts={"candidate": number},
    )


def read_plan(state: State, _: Ask, replies: Sequence[str]) -> tuple[PlanReply, str] | Unreadable:
    """Read a plan; every task needs a resource there is, something to do, and only earlier tasks' results."""
    reading = parse.read_form(replies[-1], PlanReply)
    if isinstance(reading, Unreadable):
        return reading
    cards, tasks = resources(state.options), list[PlannedTask]()
    for number, task in enumerate(reading[0].tasks, 1):
        card = card_named(cards, task.resource_name) or _card_spelled(cards, task.resource_name)
        if card is None:
            return Unreadable(f"task {number}: {no_such_tool(cards, task.resource_name)}")
        if not task.task_query.strip():
            return Unreadable(f"task {number}: its task_query is empty")
        if any(not 1 <= earlier < number for earlier in task.depends_on):
            return Unreadable(
                f"task {number}: depends_on may name earlier tasks only, by their numbers from 1"
            )
        tasks.append(replace(task, resource_name=card.name))
    return PlanReply(tuple(tasks)), reading[1]


def _card_spelled(cards: Sequence[ToolCard], written: str) -> ToolCard | None:
    """Return the only card of a name that is spelled otherwise: `Logic Kernel` for `logic_kernel`."""
    alike = [card for card in cards if plain_name(card.name) == plain_name(written)]
    return alike[0] if len(alike) == 1 else None


def _plan_task(state: State, number: int, fault: str) -> str:
    level = state.now.complexity.complexity_level if state.now.complexity else None
    fewest_tasks, most_tasks = TASKS[level] if level else (2, 6)
    concurrent, count = state.options.concurrent_tasks, state.options.candidate_plans
    return PLAN.format(
        cards=cards_shown(state),
        documents=documents_shown(state),
        least=fewest_tasks,
        most=most_tasks,
        depends=DEPENDS if concurrent else "",
        field=DEPENDS_FIELD if concurrent else "",
        lean=LEAN.format(number=number, count=count, angle=ANGLES[number - 1]) if count > 1 else "",
        setbacks=_before(state, fault),
    )


def _plan_form(state: State) -> dict[str, Any]:
    form = inlined_schema(PlanReply)
    names = [card.name for card in resources(state.options)]
    form["properties"]["tasks"]["items"]["properties"]["resource_name"]["enum"] = names
    return form


def _before(state: State, fault: str) -> str:
    fault = f"\nYour last reply could not be used: {fault}.\n" if fault else ""
    return setbacks(state, range(1, state.number)) + fault


# -- stage 3: the choice


def choose_plan(s: State) -> Body:
    """P ← argmax_i score(P_i), the first of equals; each round of scores votes for its highest, and most votes win."""
    ballots: list[str] = []
    drawn, plans = 0, len(s.now.plans)
    while due := _rounds_due(s, ballots, drawn):
        questions = [
            _score_question(s, number, sample, due * plans)
            for sample in range(drawn, drawn + due)
            for number in range(1, plans + 1)
        ]
        replies = yield request(s, *questions, give_failures=True)
        s, drawn = book_costs(s, replies), drawn + due
        for start in range(0, len(replies), plans):
            s, winner = _book_scores(s, replies[start : start + plans])
            ballots += winner
    votes = tally(ballots)
    thoughts = [
        Thought(
            " ".join(dict.fromkeys(plan.reasons)) or "No score.", score=plan.score, branch=_branch(s, number)
        )
        for number, plan in enumerate(s.now.plans if drawn else (), 1)
    ]
    s = _select(s, int(votes[0].answer) - 1 if votes else 0)
    return move_on(s, "plan_evaluation", *thoughts)


def _rounds_due(state: State, ballots: Sequence[str], drawn: int) -> int:
    """Return how many rounds of scores to ask for now: as few as can settle the choice."""
    plans, votes = len(state.now.plans), tally(ballots)
    lead = votes[0].count if votes else 0
    left = state.options.votes - drawn
    if drawn and (left == 0 or is_settled(votes, left)):
        return 0
    return affordable(state, min(left, max(1, _majority(state) - lead)) * plans) // plans


def _score_question(state: State, number: int, sample: int, together: int) -> Ask:
    task = EVALUATE.format(resources=resources_shown(state), plan=state.now.plans[number - 1].text)
    facts = {"candidate": number}
    return question(state, "score", task, sample=sample, together=together, by="judge", facts=facts)


def _book_scores(state: State, replies: Sequence[Reply | Failed]) -> tuple[State, list[str]]:
    """Book a round of scores; return also the number of the plan it votes for, if there was any score."""
    plans, scores = list(state.now.plans), dict[int, float]()
    for index, reply in enumerate(replies):
        if isinstance(reply, Reply):
            found: ScoreReply = reply.value
            scores[index] = found.overall_score
            plan = plans[index]
            plans[index] = replace(
                plan, scores=(*plan.scores, found.overall_score), reasons=(*plan.reasons, found.reason)
            )
    winner = [str(max(scores, key=lambda index: scores[index]) + 1)] if scores else []
    return with_iteration(state, plans=tuple(plans)), winner


def _select(state: State, index: int) -> State:
    """Return the state with a plan selected and its tasks waiting."""
    planned = state.now.plans[index].tasks
    tasks = [
        Task(task.resource_name, task.task_query, state.number, number, task.depends_on)
        for number, task in enumerate(planned, 1)
    ]
    return with_iteration(replace(state, tasks=(*state.tasks, *tasks)), selected=index)


def _majority(state: State) -> int:
    return state.options.votes // 2 + 1


def _branch(state: State, number: int) -> str:
    return f"plan-{state.number}.{number}"
