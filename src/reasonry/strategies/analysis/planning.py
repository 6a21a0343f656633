"""Stages 1 to 3 of an analysis: rate the complexity, draft candidate plans, and select a plan."""

import re
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from ...blocks.evidence import passages_text
from ...blocks.reply import number_entries
from ...blocks.toolcard import card_named, cards_text, no_such_tool
from ...core.bodies import Body, Thought, fail, go, request
from ...core.effects import Ask, CallTool
from ...core.events import UNREADABLE, Failed, Reply
from ...core.readings import Unreadable
from ...core.type_schema import inlined_schema
from ...reading.form import read_form
from ...text import lazy_pattern
from .forms import TASKS, Complexity, EvaluationReply, PlannedTask, PlanReply, PlanScore
from .state import RETRIEVER, Overview, Plan, State, Task, plan_id
from .tasks import move_on, setbacks

DOCUMENTS = "The user's documents, which `knowledge` {how}:\n{documents}"
RESOURCES = "Resources that tasks can use:\n{cards}"

# Stage 1, complexity analysis.
COMPLEXITY = """Now size up the query, without answering it: the aspects to address, the difficulties, the order that \
they demand, and the number of passes. The levels, and how many tasks a plan then has:
straightforward (2-3): a direct question with a clear answer
moderate (3-4): several steps, some of which need others
complex (4-5): has to be looked at from several sides
highly_complex (5-6): many factors that act on one another
Reply with one JSON object:
{"dimensions": ["…"], "key_challenges": ["…"], "sequential_dependencies": ["…"], "iteration_strategy": "…", \
"complexity_level": "…"}"""

# Stage 2, plan generation.
PLAN = """Now draft one plan: {least} to {most} tasks, in the order to carry them out, each for one resource of the \
list. A task says by itself what its resource is to accomplish. Later tasks see the accepted results of earlier ones, \
so do not ask for the same thing twice.{depends}{lean} Reply with one JSON object:
{{"tasks": [{{"resource_name": "…", "task_query": "…"{field}}}]}}"""
DEPENDS = " Tasks that need no other's result run side by side: name in depends_on the tasks whose results one needs."
DEPENDS_FIELD = ', "depends_on": []'
LEAN = " You draft plan {number} of {count}, the others are drafted apart; {angle}."
ANGLES = (
    "take the most direct way",
    "weigh the sides of the matter against one another",
    "begin with what is least certain",
    "rely on what can be computed or checked, where anything can",
    "look for what speaks against the obvious answer",
)

# Stage 3, plan evaluation, with the seed's criteria. One question shows all plans.
PLANS = """Resources that tasks can use: {resources}.

{count} plans were drafted.

{plans}"""
EVALUATE = """Now score each of the plans from 0 to 100, side by side. Does each task use the right resource? Is the \
order right? Are all aspects of the query covered? Can it be carried out with the resources there are? Plans get the \
same score only if neither is better. Reply with one JSON object:
{form}"""

_LETTER = lazy_pattern(r"\W*(?:(?:candidate|plan)\W*)*(?P<letter>[A-Z]|\d{1,2})\W*", re.IGNORECASE)


def receive(s: State) -> Body:
    """Get an overview of the user's documents. Then go to the first stage that is enabled."""
    if RETRIEVER in s.tool_names:
        call = CallTool(RETRIEVER, {"query": s.problem, "overview": True})
        (found,) = yield request(s, call, give_failures=True)
        # A retriever that gives no overview of its documents can still be searched.
        with suppress(msgspec.ValidationError):
            s = replace(s, overview=msgspec.convert(getattr(found, "value", None), Overview))
    return go(s, "complexity_analysis" if s.options.complexity_analysis else "plan_generation")


def documents_shown(state: State) -> str:
    """Format the user's documents for a question: the full texts if they are short, otherwise only their beginnings."""
    documents, passages = state.overview.documents, state.overview.passages
    if not documents:
        return ""
    if passages is not None:
        return DOCUMENTS.format(how="reads whole", documents=passages_text(passages))
    lines = (f"{each.source} ({each.characters} characters): {each.begins}" for each in documents)
    return DOCUMENTS.format(how="searches", documents="\n".join(lines))


# -- stage 1: complexity


def size_up(s: State) -> Body:
    """Ask for the complexity of query q, given history H: (level, dimensions, order) ← Complexity(q, H, setbacks)."""
    material = documents_shown(s), setbacks(s, range(1, s.number))
    (answer,) = yield request(s, s.question("complexity", COMPLEXITY, *material), give_failures=True)
    if isinstance(answer, Reply):
        found: Complexity = answer.value
        text = complexity_text(found, s.number)
        s = replace(s, history=(*s.history, text)).with_iteration(complexity=found)
        thought = Thought(text, data={"complexity_level": found.complexity_level})
    elif answer.code == UNREADABLE:
        # The run continues as if the option `complexity_analysis` were off.
        thought = Thought(f"The complexity is unknown: {answer.message}")
    else:
        return fail(s, "error", answer.message, answer.code)
    return go(s, "plan_generation", thought)


def complexity_text(found: Complexity, number: int) -> str:
    """Format the complexity for the analysis history."""
    parts = {
        f"Complexity, iteration {number}": found.complexity_level,
        "Dimensions": "; ".join(found.dimensions),
        "Key challenges": "; ".join(found.key_challenges),
        "Order": "; ".join(found.sequential_dependencies),
        "Iteration strategy": found.iteration_strategy,
        "Suggested tasks": found.suggested_tasks,
    }
    return "\n".join(f"{name}: {text}" for name, text in parts.items() if text)


# -- stage 2: plans


def draft_plans(s: State) -> Body:
    """Ask for k plans for query q in parallel, in view of history H: P_1 … P_k ← Plan(q, H)."""
    numbers = range(1, s.options.candidate_plans + 1)
    answers = yield request(s, *(_plan_question(s, number) for number in numbers), give_failures=True)
    failures = [answer for answer in answers if isinstance(answer, Failed)]
    found = zip(map(plan_letter, numbers), answers, strict=True)
    plans = [Plan(name, each.value.tasks) for name, each in found if isinstance(each, Reply)]
    thoughts: list[Thought] = []
    for plan in plans:
        text, data = f"Plan {plan.name}:\n{plan.text}", {"node_id": plan_id(s.number, plan.name)}
        thoughts.append(Thought(text, branch=plan_branch(s, plan), data=data))
    s = s.with_iteration(plans=tuple(plans), dropped=tuple(failure.message for failure in failures))
    if not plans:
        detail = f"no usable plan in {len(failures)} attempts: {failures[-1].message}"
        if s.accepted:
            return go(s.end_work("no_plan", detail), "iteration_decision")
        reason = "no_plan" if any(failure.code == UNREADABLE for failure in failures) else "error"
        return fail(s, reason, detail, failures[-1].code)
    if len({plan.text for plan in plans}) > 1:
        return go(s, "plan_evaluation", *thoughts)
    return move_on(select_plan(s, 0), "plan_generation", *thoughts)


def _plan_question(state: State, number: int) -> Ask:
    form = inlined_schema(PlanReply)
    tasks = form["properties"]["tasks"]
    names = [card.name for card in state.options.resources]
    tasks["items"]["properties"]["resource_name"]["enum"] = names
    fewest_tasks, most_tasks = _task_counts(state)
    if state.options.enforce_task_counts:
        tasks["minItems"], tasks["maxItems"] = fewest_tasks, most_tasks
    concurrent, count = state.options.concurrent_tasks, state.options.candidate_plans
    task = PLAN.format(
        least=fewest_tasks,
        most=most_tasks,
        depends=DEPENDS if concurrent else "",
        field=DEPENDS_FIELD if concurrent else "",
        lean=LEAN.format(number=number, count=count, angle=ANGLES[number - 1]) if count > 1 else "",
    )
    cards = RESOURCES.format(cards=cards_text(state.options.resources))
    material = cards, documents_shown(state), setbacks(state, range(1, state.number))
    facts, about = {"candidate": number}, plan_id(state.number, plan_letter(number))
    return state.question("plan", task, *material, sample=number - 1, form=form, facts=facts, about=about)


def read_plan(state: State, ask: Ask, replies: Sequence[str]) -> tuple[PlanReply, str] | Unreadable:
    """Read a plan. Each task needs an existing resource and a query, and may depend only on earlier tasks.

    At the last try, tasks that cannot be executed are dropped, and any number of tasks is accepted.
    """
    reading = read_form(replies[-1], PlanReply)
    if isinstance(reading, Unreadable):
        return reading
    cards, tasks = state.options.resources, list[PlannedTask]()
    faults, places = list[str](), dict[int, int]()
    for number, task in number_entries(ask, "tasks", reading[0].tasks):
        card = card_named(cards, task.resource_name)
        if card is None:
            faults.append(f"task {number}: {no_such_tool(cards, task.resource_name)}")
        elif not task.task_query.strip():
            faults.append(f"task {number}: its task_query is empty")
        elif any(not 1 <= earlier < number for earlier in task.depends_on):
            faults.append(f"task {number}: depends_on may name earlier tasks only, by their numbers from 1")
        else:
            # After a dropped task, the numbers of the later tasks change.
            depends_on = tuple(places[earlier] for earlier in task.depends_on if earlier in places)
            tasks.append(replace(task, resource_name=card.name, depends_on=depends_on))
            places[number] = len(tasks)
    fewest_tasks, most_tasks = _task_counts(state)
    plan = PlanReply(tuple(tasks)), reading[1]
    if faults:
        return Unreadable("; ".join(faults), in_part=plan if tasks else None)
    if state.options.enforce_task_counts and not fewest_tasks <= len(tasks) <= most_tasks:
        level = state.now.complexity.complexity_level if state.now.complexity else ""
        size = f"a {level} query has" if level else "a plan has"
        count = "1 task" if len(tasks) == 1 else f"{len(tasks)} tasks"
        reason = f"the plan has {count}; {size} {fewest_tasks} to {most_tasks}"
        return Unreadable(reason, is_doubt=True, in_part=plan)
    return plan


def _task_counts(state: State) -> tuple[int, int]:
    """Return the minimum and maximum number of tasks in a plan. If the query's level is unknown, return (2, 6)."""
    return TASKS[state.now.complexity.complexity_level] if state.now.complexity else (2, 6)


def select_plan(state: State, index: int) -> State:
    """Select a plan and queue its tasks."""
    tasks = [
        Task(task.resource_name, task.task_query, state.number, number, task.depends_on)
        for number, task in enumerate(state.now.plans[index].tasks, 1)
    ]
    return replace(state, tasks=(*state.tasks, *tasks)).with_iteration(selected=index)


def plan_letter(number: int) -> str:
    """Return the letter that names a candidate plan. Plan 1 is A."""
    return chr(ord("A") + number - 1)


def plan_branch(state: State, plan: Plan) -> str:
    """Return the name of the branch that holds the thoughts about a candidate plan of the current iteration."""
    return f"plan-{state.number}.{plan.name}"


# -- stage 3: scores


def choose_plan(s: State) -> Body:
    """Ask for a score for each plan, and select the best plan: P ← argmax_i score(P_i)."""
    (reply,) = yield request(s, _score_question(s), give_failures=True)
    plans = {plan.name: plan for plan in s.now.plans}
    if isinstance(reply, Failed):
        unscored = f"no plan has a score, so plan {next(iter(plans))} was selected: {reply.message}"
        s = select_plan(s, 0).with_iteration(unscored=unscored)
        return move_on(s, "plan_evaluation", *_verdicts(s))
    scores: tuple[PlanScore, ...] = reply.value
    for each in scores:
        plans[each.plan] = replace(plans[each.plan], score=each.overall_score, reason=each.reason)
    best = max(scores, key=lambda score: score.overall_score).plan
    s = select_plan(s.with_iteration(plans=tuple(plans.values())), [*plans].index(best))
    return move_on(s, "plan_evaluation", *_verdicts(s))


def _verdicts(state: State) -> list[Thought]:
    """Return one thought for each plan, with the plan's score, and one thought for the selection."""
    thoughts = list[Thought]()
    for plan in state.now.plans:
        text = f"Plan {plan.name}: {plan.shown_score}. {plan.reason}".strip()
        thoughts.append(Thought(text, score=plan.score, branch=plan_branch(state, plan)))
    assert state.now.selected is not None, "selected before"
    selected = state.now.plans[state.now.selected]
    selection = f"Selected plan {selected.name}: {selected.shown_score}"
    return [*thoughts, Thought(selection, data={"selected_plan": selected.name})]


def _score_question(state: State) -> Ask:
    count, names = len(state.now.plans), [plan.name for plan in state.now.plans]
    plans = "\n\n".join(f"Plan {plan.name}:\n{plan.text}" for plan in state.now.plans)
    reasons = ["strengths and weaknesses in a sentence", *(["…"] * (count - 1))]
    shown = (
        f'{{"plan": "{name}", "reason": "{reason}", "overall_score": 0 to 100}}'
        for name, reason in zip(names, reasons, strict=True)
    )
    wanted = f'{{"evaluations": [{", ".join(shown)}]}}'
    about = ((card.name, re.split("[.:]", card.description)[0].strip()) for card in state.options.resources)
    resources = "; ".join(f"{name} ({words[:100]})" if words else name for name, words in about)
    task, material = EVALUATE.format(form=wanted), PLANS.format(resources=resources, count=count, plans=plans)
    form = inlined_schema(EvaluationReply)
    evaluations = form["properties"]["evaluations"]
    evaluations["minItems"] = evaluations["maxItems"] = count
    evaluations["items"]["properties"]["plan"]["enum"] = names
    return state.question("score", task, material, by="judge", form=form, facts={"candidates": count})


def read_scores(s: State, _: Ask, replies: Sequence[str]) -> tuple[tuple[PlanScore, ...], str] | Unreadable:
    """Read the scores, in the order of the plans. On the last try, some scores may be missing."""
    reading = read_form(replies[-1], EvaluationReply)
    if isinstance(reading, Unreadable):
        return reading
    letters, evaluations = [plan.name for plan in s.now.plans], reading[0].evaluations
    names = [
        match["letter"].upper() if (match := _LETTER.fullmatch(each.plan)) else "" for each in evaluations
    ]
    names = [plan_letter(int(name)) if name.isdigit() else name for name in names]
    found = {name: each for name, each in zip(names, evaluations, strict=True) if names.count(name) == 1}
    scores = tuple(replace(found[name], plan=name) for name in letters if name in found), reading[1]
    if sorted(names) == letters:
        return scores
    reason = f"give each of the plans {', '.join(letters)} one score, not {', '.join(names)}"
    return Unreadable(reason, in_part=scores if scores[0] else None)
