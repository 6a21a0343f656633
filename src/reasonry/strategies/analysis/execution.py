"""Stage 4, up to the result: tasks are opened, converted to the input of their resource, and carried out.

Tasks are carried out one after another; with `concurrent_tasks` those that wait for no other go through the stages
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ...core import parse
from ...core.effects import Ask, Effect
from ...core.events import Failed, Reply
from ...core.evidence import evidence_text
from ...core.fields import faults
from ...core.parse import Unreadable
from ...core.strategy import Move, Thought, go, inlined_schema, stay
from ...core.toolcard import ToolCard, arguments_for, card_named, typed
from . import tasks as life
from .forms import CodeReply, ConversionReply, KnowledgeReply, LogicReply
from .prompts import (
    CODE_ERRORS,
    CONVERT,
    ERRORS,
    FORMAL,
    FORMAL_FIELD,
    PASSAGES,
    PERFORM,
    SANDBOX,
)
from .state import (
    COST_LIMIT,
    State,
    affordable,
    at_work,
    paid,
    question,
    resources,
    room,
    stopped,
    with_tasks,
)
from .tasks import CHECKER, PASSED_THROUGH, Task

REPLIES: dict[str, type[Struct]] = {
    "knowledge": KnowledgeReply,
    "logic_kernel": LogicReply,
    "py_executor": CodeReply,
}
"""What the model replies when it is the resource."""

FORMS = {name: inlined_schema(reply) for name, reply in REPLIES.items()}


# -- the way through the stage


def move_on(state: State, here: str, *thoughts: Thought) -> Move:
    """Go where the tasks at work want to go; open new ones when those are over; end when all are."""
    if all(task.step in ("waiting", "over") for task in at_work(state)):
        state = _opened(state)
    steps = {task.step for task in at_work(state)}
    if "judge" in steps and not steps & {"fetch", "perform", "run"}:
        to, asks = "quality_evaluation", True
    elif "convert" in steps:
        to, asks = "query_conversion", True
    elif steps & {"fetch", "perform", "run"}:
        to, asks = "task_execution", not steps & {"fetch", "run"}
    else:
        return go(state, "iteration_decision", *thoughts)
    if asks and not affordable(state, 1):
        return go(stopped(state, "cost_limit", COST_LIMIT), "iteration_decision", *thoughts)
    return stay(state, *thoughts) if to == here else go(state, to, *thoughts)


def _opened(state: State) -> State:
    """Open the next task, or all that wait for no other; none that could not be paid to its end."""
    tasks = at_work(state)
    over = {task.number for task in tasks if task.is_over}
    ready = [task for task in tasks if task.step == "waiting"]
    if state.options.concurrent_tasks:
        ready = [task for task in ready if over.issuperset(task.depends_on)]
    else:
        ready = ready[:1]
    left, opening = room(state), list[Task]()
    for task in ready:
        left -= calls_of(task.resource_name, state.options.votes)
        if left < 0:
            break
        opening.append(life.opened(task))
    if ready and not opening:
        return stopped(state, "cost_limit", COST_LIMIT)
    return with_tasks(state, *opening)


def calls_of(resource: str, votes: int) -> int:
    """Return how many questions a task takes at least."""
    converts = resource not in PASSED_THROUGH
    return converts + (resource in REPLIES) + votes // 2 + 1


def among(state: State, *steps: str) -> list[Task]:
    """Return the tasks at work that stand at one of these steps."""
    return [task for task in at_work(state) if task.step in steps]


# -- conversion


def ask_inputs(state: State) -> tuple[Effect, ...]:
    """Ask for each task as the input of its resource."""
    tasks = _converting(state)
    return tuple(_conversion(state, task, len(tasks)) for task in tasks)


def _converting(state: State) -> list[Task]:
    tasks = among(state, "convert")
    return tasks[: affordable(state, len(tasks))]


def _conversion(state: State, task: Task, together: int) -> Ask:
    card = _card(state, task)
    properties = card.parameters.get("properties") or {}
    text = CONVERT.format(
        resource=task.resource_name,
        query=task.task_query,
        errors=_errors(task),
        parameters=msgspec.json.encode(card.parameters).decode(),
        example="{" + ", ".join(f'"{name}": …' for name in properties) + "}",
    )
    facts = {"resource": task.resource_name, "task": task.task_query}
    return question(state, "convert", text, together=together, facts=facts)


def read_input(state: State, ask: Ask, replies: Sequence[str]) -> tuple[dict[str, Any], str] | Unreadable:
    """Read an input; it has to fit what its resource takes."""
    reading = parse.read_form(replies[-1], ConversionReply)
    if isinstance(reading, Unreadable):
        return reading
    card = card_named(resources(state.options), ask.facts["resource"])
    assert card is not None, "checked when the plan was read"
    given = reading[0].tool_input
    arguments = arguments_for(card, given) if isinstance(given, str) else typed(card, given)
    if isinstance(arguments, Unreadable):
        return arguments
    fault = next(faults(arguments, card.parameters, "tool_input"), None)
    return (arguments, reading[1]) if fault is None else Unreadable(fault)


def keep_inputs(state: State, answers: tuple[Any, ...]) -> Move:
    """Take the inputs."""
    limit, changed = state.options.execution_retry_limit, list[Task]()
    for task, answer in zip(_converting(state), answers, strict=True):
        if isinstance(answer, Failed):
            changed.append(life.failed(task, answer.message, limit))
        else:
            changed.append(life.converted(task, answer.value, state.tool_names))
    return move_on(with_tasks(paid(state, answers), *changed), "query_conversion", *_failures(changed))


# -- execution


def carry_out(state: State) -> tuple[Effect, ...]:
    """Call the tools that are wanted, and ask what the model is the resource for."""
    tasks = _performing(state)
    return tuple(
        life.call(task) if task.step != "perform" else _performance(state, task, len(tasks)) for task in tasks
    )


def _performing(state: State) -> list[Task]:
    asked = among(state, "perform")
    paid_for = asked[: affordable(state, len(asked))]
    return [
        task for task in among(state, "fetch", "run", "perform") if task.step != "perform" or task in paid_for
    ]


def _performance(state: State, task: Task, together: int) -> Ask:
    checker = card_named(state.options.tools, CHECKER)
    sandbox = card_named(state.options.tools, "py_executor")
    formal = FORMAL.format(how=_how(checker)) if checker else ""
    passages = "" if task.passages is None else PASSAGES.format(passages=_numbered(task.passages))
    text = PERFORM[task.resource_name].format(
        input=task.text,
        errors=_errors(task),
        passages=passages,
        formal=formal,
        field=FORMAL_FIELD if checker else "",
        sandbox=(sandbox.description if sandbox else "") or SANDBOX,
    )
    facts = {"resource": task.resource_name, "task": task.text}
    return question(state, "perform", text, together=together, form=FORMS[task.resource_name], facts=facts)


def _numbered(passages: Any) -> str:
    """Return passages with the numbers to cite them by; what is no list of passages as it is."""
    if not isinstance(passages, list):
        return evidence_text(passages)
    return (
        "\n".join(f"[{number}] {evidence_text(one)}" for number, one in enumerate(passages, 1))
        or "(none fit)"
    )


def _how(checker: ToolCard) -> str:
    return f"{checker.description} {msgspec.json.encode(checker.parameters).decode()}"


def read_work(_: State, ask: Ask, replies: Sequence[str]) -> tuple[dict[str, Any], str] | Unreadable:
    """Read what the model replied as the resource."""
    reading = parse.read_form(replies[-1], REPLIES[ask.facts["resource"]])
    if isinstance(reading, Unreadable):
        return reading
    return msgspec.json.decode(msgspec.json.encode(reading[0])), reading[1]


def keep_work(state: State, answers: tuple[Any, ...]) -> Move:
    """Take results; a failure counts as an attempt."""
    limit, changed, thoughts = state.options.execution_retry_limit, list[Task](), list[Thought]()
    for task, answer in zip(_performing(state), answers, strict=True):
        if isinstance(answer, Failed):
            # No other program will find a sandbox.
            after = life.failed(task, answer.message, 0 if answer.code == "sandbox_unavailable" else limit)
        elif isinstance(answer, Reply):
            after = life.performed(task, answer.value, state.tool_names)
        else:
            after = life.returned(task, answer.value, limit)
        changed.append(after)
        if after.step == "judge":
            data = {"resource_name": task.resource_name, "task": task.number}
            thoughts.append(Thought(evidence_text(after.result), data=data))
    thoughts += _failures(changed)
    return move_on(with_tasks(paid(state, answers), *changed), "task_execution", *thoughts)


def _failures(tasks: Sequence[Task]) -> list[Thought]:
    failed = [task for task in tasks if task.status == "FAILED"]
    return [Thought(f"FAILED: {task.reason}", data={"task": task.number}) for task in failed]


def _card(state: State, task: Task) -> ToolCard:
    card = card_named(resources(state.options), task.resource_name)
    assert card is not None, "checked when the plan was read"
    return card


def _errors(task: Task) -> str:
    if not task.errors:
        return ""
    lines = "\n".join(f"- {error}" for error in task.errors)
    if "code" in task.draft:
        return CODE_ERRORS.format(code=task.draft["code"], errors=lines)
    return ERRORS.format(errors=lines)
