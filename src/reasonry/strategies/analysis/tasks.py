"""Stage 4: tasks are opened, converted to the input of their resource, carried out, and judged.

    knowledge      looked up in the user's documents where there are any that cannot be shown whole, answered
    logic_kernel   deduced; a formal claim is checked where there is a checker
    py_executor    the program is written and run
    any tool       converted, called

Tasks are carried out one after another; with `concurrent_tasks` those that wait for no other go through the stages
together. Only what is accepted enters the analysis history.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...core.bodies import Body, Move, Thought, go, request, stay
from ...core.effects import Ask, CallTool
from ...core.events import Failed, Reply, ToolReturned
from ...core.json_schema import faults
from ...core.strategy import inlined_schema
from ...core.text import cut
from ...core.toolcard import ToolCard, arguments_for, card_named, convert_types
from ...patterns import lazy_pattern
from ...reading import parse
from ...reading.fit import Unreadable
from ...reading.json_in_text import json_values
from ...reading.vote import tally
from .plain_text import found_text, result_text
from .questions import (
    CODE_ERRORS,
    CONVERT,
    ERRORS,
    FORMAL,
    FORMAL_FIELD,
    JUDGED,
    PASSAGES,
    PERFORM,
    QUALITY,
    SANDBOX,
    SETBACKS,
    VERDICT_FIELDS,
    CodeReply,
    ConversionReply,
    JudgedKnowledgeReply,
    JudgedLogicReply,
    KnowledgeReply,
    LogicReply,
)
from .state import (
    BUILT_IN,
    CHECKER,
    COST_LIMIT,
    PASSED_THROUGH,
    RETRIEVER,
    TAKES_THE_QUERY,
    State,
    Task,
    affordable,
    at_work,
    book_costs,
    end_work,
    question,
    resources,
    room,
    votes_due,
    with_tasks,
)

REPLIES: dict[str, type[Struct]] = {
    "knowledge": KnowledgeReply,
    "logic_kernel": LogicReply,
    "py_executor": CodeReply,
}
"""What the model replies when it is the resource."""

JUDGED_REPLIES = REPLIES | {"knowledge": JudgedKnowledgeReply, "logic_kernel": JudgedLogicReply}
"""The same where the model judges what it brings; what a program brings is known only when it has run."""

MAX_REQUESTS = 16
"""Requests of one round of task execution in which attempts may begin; the round after it goes on."""

SHORTEST_QUOTE = 8
"""Characters; shorter texts are words that a reason may need."""

_SENTENCE = lazy_pattern(r"[^\n.!?;]+")


# -- the way through the stages


def move_on(state: State, here: str, *thoughts: Thought) -> Move:
    """Go where the tasks at work want to go; open new ones when those are over; end when all are."""
    if all(task.at in ("waiting", "over") for task in at_work(state)):
        state = _open_next(state)
    stages = {task.at for task in at_work(state)}
    if "quality_evaluation" in stages and "task_execution" not in stages:
        to = "quality_evaluation"
    elif "query_conversion" in stages:
        to = "query_conversion"
    elif "task_execution" in stages:
        to = "task_execution"
    else:
        return go(state, "iteration_decision", *thoughts)
    asks = {
        "task_execution": _asks_first,
        "query_conversion": _is_converted,
        "quality_evaluation": _votes_due,
    }
    costs = all(asks[to](state, task) for task in _tasks_at(state, to))
    if costs and not affordable(state, 1):
        return go(end_work(state, "cost_limit", COST_LIMIT), "iteration_decision", *thoughts)
    return stay(state, *thoughts) if to == here else go(state, to, *thoughts)


def _open_next(state: State) -> State:
    """Open the next task, or all that wait for no other; none that could not be paid to its end."""
    tasks = at_work(state)
    over = {task.number for task in tasks if task.at == "over"}
    ready = [task for task in tasks if task.at == "waiting"]
    if state.options.concurrent_tasks:
        ready = [task for task in ready if over.issuperset(task.depends_on)]
    else:
        ready = ready[:1]
    left, opening = room(state), list[Task]()
    for task in ready:
        writes = (task.resource_name not in TAKES_THE_QUERY) + (task.resource_name in REPLIES)
        left -= writes + state.options.majority
        if left < 0:
            break
        converts = task.resource_name not in PASSED_THROUGH
        opening.append(replace(task, at="query_conversion" if converts else "task_execution"))
    if ready and not opening:
        return end_work(state, "cost_limit", COST_LIMIT)
    return with_tasks(state, *opening)


def _tasks_at(state: State, stage: str) -> list[Task]:
    return [task for task in at_work(state) if task.at == stage]


def _book_failure(state: State, task: Task, failure: Failed) -> Task:
    """Book a failed attempt; the task is over when none is left. No other program will find a sandbox."""
    errors = (*task.errors, failure.message)
    if len(errors) > state.options.execution_retry_limit or failure.code == "sandbox_unavailable":
        return replace(task, errors=errors, at="over", status="FAILED", reason=failure.message)
    return replace(task, errors=errors)


def _failures(tasks: Sequence[Task]) -> list[Thought]:
    failed = [task for task in tasks if task.status == "FAILED"]
    return [
        Thought(f"{task.title} FAILED: {task.reason}", data={"task": task.number, "node_id": task.id})
        for task in failed
    ]


def _errors(task: Task) -> str:
    if not task.errors:
        return ""
    lines = "\n".join(f"- {error}" for error in task.errors)
    if task.program:
        return CODE_ERRORS.format(code=task.program, errors=lines)
    return ERRORS.format(errors=lines)


# -- conversion


def convert(s: State) -> Body:
    """X ← t as the input of its resource; what cannot be read is asked for again within the limit."""
    ready = [task for task in _tasks_at(s, "query_conversion") if not _is_converted(s, task)]
    s = with_tasks(s, *(replace(task, at="task_execution") for task in ready))
    tasks = _tasks_at(s, "query_conversion")
    tasks = tasks[: affordable(s, len(tasks))]
    if not tasks:
        return move_on(s, "query_conversion")
    questions = [_conversion(s, task, len(tasks)) for task in tasks]
    answers = yield request(s, *questions, give_failures=True)
    changed = [
        _book_failure(s, task, answer)
        if isinstance(answer, Failed)
        else replace(task, tool_input=answer.value, at="task_execution")
        for task, answer in zip(tasks, answers, strict=True)
    ]
    return move_on(with_tasks(book_costs(s, answers), *changed), "query_conversion", *_failures(changed))


def _is_converted(_: State, task: Task) -> bool:
    """Whether somebody is asked to write a task as the input of its resource."""
    return task.resource_name not in TAKES_THE_QUERY


def _conversion(state: State, task: Task, together: int) -> Ask:
    card = card_named(resources(state.options), task.resource_name)
    assert card is not None, "checked when the plan was read"
    properties = card.parameters.get("properties") or {}
    text = CONVERT.format(
        resource=task.resource_name,
        query=task.task_query,
        errors=_errors(task),
        parameters=msgspec.json.encode(card.parameters).decode(),
        example="{" + ", ".join(f'"{name}": "…"' for name in properties) + "}",
    )
    facts = {"resource": task.resource_name, "task": task.task_query}
    return question(state, "convert", text, together=together, facts=facts, about=task.id)


def read_input(state: State, ask: Ask, replies: Sequence[str]) -> tuple[dict[str, Any], str] | Unreadable:
    """Read an input; it has to fit what its resource takes."""
    card = card_named(resources(state.options), ask.facts["resource"])
    assert card is not None, "checked when the plan was read"
    reading = parse.read_form(replies[-1], ConversionReply)
    if isinstance(reading, Unreadable):
        reading = _bare_arguments(card, replies[-1]) or reading
    if isinstance(reading, Unreadable):
        return reading
    tool_input = reading[0].tool_input
    arguments = (
        arguments_for(card, tool_input) if isinstance(tool_input, str) else convert_types(card, tool_input)
    )
    if isinstance(arguments, Unreadable):
        return arguments
    fault = next(faults(arguments, card.parameters, "tool_input"), None)
    return (arguments, reading[1]) if fault is None else Unreadable(fault)


def _bare_arguments(card: ToolCard, reply: str) -> tuple[ConversionReply, str] | None:
    """Read arguments that came by themselves instead of in `tool_input`."""
    names = card.parameters.get("properties") or {}
    found = next(json_values(reply), None)
    if found is None or not isinstance(found[0], dict) or not found[0].keys() <= names.keys():
        return None
    return ConversionReply(found[0]), found[1]


# -- execution


def execute(s: State) -> Body:
    """R ← resource(x), the tasks at work side by side.

    A round goes on while a tool has yet to run what a model wrote; tasks that failed begin another attempt meanwhile.
    """
    under_way: dict[int, tuple[Attempt, CallTool | None]] = {}
    thoughts: list[Thought] = []
    for number in range(MAX_REQUESTS + 1):
        turn = _turn(s, under_way, may_begin=number < MAX_REQUESTS)
        effects = [call or _performance(s, task, len(turn)) for task, _, call in turn]
        answers = yield request(s, *thoughts, *effects, give_failures=True)
        changed: list[Task] = []
        under_way = {}
        for (task, attempt, _), answer in zip(turn, answers, strict=True):
            try:
                under_way[task.number] = attempt, attempt.send(answer)
            except StopIteration as end:
                changed.append(end.value)
        s, thoughts = with_tasks(book_costs(s, answers), *changed), [*_results(changed), *_failures(changed)]
        if not under_way:
            break
    return move_on(s, "task_execution", *thoughts)


Attempt = Generator[CallTool | None, Any, Task]
"""One attempt at a task: yields the tool calls it wants, None for what the model is to write; returns the task."""


def _turn(
    state: State, under_way: dict[int, tuple[Attempt, CallTool | None]], *, may_begin: bool
) -> list[tuple[Task, Attempt, CallTool | None]]:
    """Return the tasks that go on now, with what each wants; of the questions, those that can be paid."""
    turn: list[tuple[Task, Attempt, CallTool | None]] = []
    tasks = _tasks_at(state, "task_execution")
    questions = sum(task.number not in under_way and _asks_first(state, task) for task in tasks)
    left = affordable(state, questions)
    for task in tasks:
        if task.number in under_way:
            turn.append((task, *under_way[task.number]))
        elif may_begin and (left > 0 or not _asks_first(state, task)):
            left -= _asks_first(state, task)
            attempt = _attempt(state, task)
            turn.append((task, attempt, next(attempt)))
    return turn


def _looks_up(state: State, task: Task) -> bool:
    """Whether the user's documents are searched first; those that can be shown whole are not."""
    is_due = task.resource_name == "knowledge" and task.passages is None
    return is_due and state.passages is None and RETRIEVER in state.tool_names


def _asks_first(state: State, task: Task) -> bool:
    """Whether an attempt begins with a question rather than a tool call."""
    return task.resource_name in BUILT_IN and not _looks_up(state, task)


def _attempt(state: State, task: Task) -> Attempt:
    if _looks_up(state, task):
        return _look_up(state, task)
    ways = {"knowledge": _answer, "logic_kernel": _deduce, "py_executor": _compute}
    return ways.get(task.resource_name, _call)(state, task)


def _look_up(state: State, task: Task) -> Attempt:
    """Find passages in the user's documents; what is known is asked for after that."""
    found = yield CallTool(RETRIEVER, {"query": task.text}, about=task.id)
    if isinstance(found, Failed):
        return _book_failure(state, task, found)
    passages = found.value.get("passages", found.value) if isinstance(found.value, dict) else found.value
    return replace(task, passages=[] if passages is None else passages)


def _answer(state: State, task: Task) -> Attempt:
    """Have the model say what is known."""
    written = yield None
    if isinstance(written, Failed):
        return _book_failure(state, task, written)
    passages = _passages(state, task)
    with_passages = {} if passages is None else {"passages": passages}
    task, result = _own_verdict(task, written.value)
    return _hand_over(task, {**result, **with_passages})


def _passages(state: State, task: Task) -> Any:
    """Return what `knowledge` is shown of the documents: all of them, or what was found; None: there are none."""
    if task.passages is None and state.passages is not None:
        return list(state.passages)
    return task.passages


def _deduce(state: State, task: Task) -> Attempt:
    """Have the model deduce, and a formal claim of it checked; a check that failed says nothing."""
    written = yield None
    if isinstance(written, Failed):
        return _book_failure(state, task, written)
    judged, result = _own_verdict(task, written.value)
    claim = result.get("formal_claim")
    if not claim or CHECKER not in state.tool_names:
        return _hand_over(judged, result)
    arguments = claim if isinstance(claim, dict) else {"claim": claim}
    checked = yield CallTool(CHECKER, arguments, about=task.id)
    if isinstance(checked, Failed):
        return _hand_over(task, {**result, "check": {"verdict": "unknown", "detail": checked.message}})
    return _hand_over(task, {**result, "check": checked.value})


def _own_verdict(task: Task, written: dict[str, Any]) -> tuple[Task, dict[str, Any]]:
    """Return the task with what whoever carried it out says of its result, where that was asked, and the result."""
    result = {name: value for name, value in written.items() if name not in ("quality", "reason")}
    return (
        _with_vote(task, written["quality"], written.get("reason", "")) if "quality" in written else task
    ), result


def _compute(state: State, task: Task) -> Attempt:
    """Have the model write a program, and run it."""
    written = yield None
    if isinstance(written, Failed):
        return _book_failure(state, task, written)
    task = replace(task, program=written.value["code"])
    returned = yield CallTool("py_executor", {"code": task.program}, about=task.id)
    if fault := _execution_fault(returned):
        return _book_failure(state, task, fault)
    return _hand_over(task, {**written.value, "output": returned.value})


def _call(state: State, task: Task) -> Attempt:
    """Call the tool; after a failure its input is written anew."""
    returned = yield CallTool(task.resource_name, task.tool_input, about=task.id)
    if isinstance(returned, Failed):
        return _book_failure(state, replace(task, at="query_conversion"), returned)
    return _hand_over(task, returned.value)


def _execution_fault(returned: ToolReturned | Failed) -> Failed | None:
    """What went wrong; a sandbox may say so in its document."""
    if isinstance(returned, Failed):
        return returned
    value = returned.value
    if not isinstance(value, dict) or value.get("status") in (None, "ok"):
        return None
    error = value.get("error") or value.get("stdout") or msgspec.json.encode(value).decode()
    return Failed("tool_error", f"{value['status']}: {error}")


def _hand_over(task: Task, result: Any) -> Task:
    return replace(task, result=result, at="quality_evaluation")


def _results(tasks: Sequence[Task]) -> list[Thought]:
    return [
        Thought(
            f"{task.title}: {task.task_query}\n{result_text(task.resource_name, task.result)}",
            data={"resource_name": task.resource_name, "task": task.number, "node_id": task.id},
        )
        for task in tasks
        if task.at == "quality_evaluation"
    ]


def _performance(state: State, task: Task, together: int) -> Ask:
    checks = CHECKER in state.tool_names
    sandbox = card_named(state.options.tools, "py_executor")
    found = _passages(state, task) if task.resource_name == "knowledge" else None
    passages = "" if found is None else PASSAGES.format(passages=found_text(found))
    text = PERFORM[task.resource_name].format(
        input=task.text,
        errors=_errors(task),
        passages=passages,
        formal=FORMAL if checks else "",
        field=FORMAL_FIELD if checks else "",
        judged=JUDGED if state.options.judge_own_results else "",
        verdict=VERDICT_FIELDS if state.options.judge_own_results else "",
        sandbox=(sandbox.description if sandbox else "") or SANDBOX,
    )
    facts = {"resource": task.resource_name, "task": task.text}
    return question(
        state,
        "perform",
        text,
        together=together,
        form=inlined_schema(_reply_form(state, task.resource_name)),
        facts=facts,
        about=task.id,
    )


def _reply_form(state: State, resource: str) -> type[Struct]:
    return (JUDGED_REPLIES if state.options.judge_own_results else REPLIES)[resource]


def read_work(state: State, ask: Ask, replies: Sequence[str]) -> tuple[dict[str, Any], str] | Unreadable:
    """Read what the model replied as the resource."""
    reading = parse.read_form(replies[-1], _reply_form(state, ask.facts["resource"]))
    if isinstance(reading, Unreadable):
        return reading
    return msgspec.json.decode(msgspec.json.encode(reading[0])), reading[1]


# -- quality


def judge(s: State) -> Body:
    """H ← H + r if r is ACCEPTED, else nothing of r is kept; as few votes are drawn as can settle it.

    Nobody is asked where whoever brought the result has judged it and one vote is enough.
    """
    due = _ballots_due(s)
    questions = [_judgement(s, task, sample, len(due)) for task, sample in due]
    answers = yield request(s, *questions, give_failures=True)
    judged = {task.number: task for task in _tasks_at(s, "quality_evaluation")}
    for (task, _), answer in zip(due, answers, strict=True):
        judged[task.number] = _add_vote(judged[task.number], answer)
    settled = {n: _settle(task) for n, task in judged.items() if not _votes_due(s, task)}
    accepted = [_entry(s, task) for task in settled.values() if task.status == "ACCEPTED"]
    s = with_tasks(book_costs(s, answers), *(judged | settled).values())
    s = replace(s, history=(*s.history, *accepted))
    return move_on(s, "quality_evaluation", *(_verdict(task) for task in settled.values()))


def _verdict(task: Task) -> Thought:
    data = {
        "quality": task.status,
        "resource_name": task.resource_name,
        "task": task.number,
        "node_id": task.id,
    }
    return Thought(f"{task.title} {task.status}: {task.reason}", data=data)


def _ballots_due(state: State) -> list[tuple[Task, int]]:
    due = [
        (task, sample)
        for task in _tasks_at(state, "quality_evaluation")
        for sample in range(task.votes_drawn, task.votes_drawn + _votes_due(state, task))
    ]
    return due[: affordable(state, len(due))]


def _votes_due(state: State, task: Task) -> int:
    return votes_due(state, task.verdicts, task.votes_drawn)


def _judgement(state: State, task: Task, sample: int, together: int) -> Ask:
    text = QUALITY.format(
        resource=task.resource_name,
        query=task.task_query,
        result=_result_text(state, task, with_passages=True),
    )
    facts = {"resource": task.resource_name, "task": task.task_query}
    return question(
        state, "quality", text, sample=sample, together=together, by="judge", facts=facts, about=task.id
    )


def _add_vote(task: Task, answer: Reply | Failed) -> Task:
    if isinstance(answer, Failed):
        reason = f"there was no verdict: {answer.message}"
        return replace(task, votes_drawn=task.votes_drawn + 1, reason=reason)
    return _with_vote(task, answer.value.quality, answer.value.reason)


def _with_vote(task: Task, quality: str, reason: str) -> Task:
    return replace(
        task,
        votes_drawn=task.votes_drawn + 1,
        verdicts=(*task.verdicts, quality),
        reasons=(*task.reasons, reason),
    )


def _settle(task: Task) -> Task:
    votes = tally(task.verdicts)
    if not votes:
        return replace(task, status="REJECTED", at="over")
    verdict: Literal["ACCEPTED", "REJECTED"] = "ACCEPTED" if votes[0].answer == "ACCEPTED" else "REJECTED"
    return replace(task, status=verdict, reason=task.reasons[votes[0].voters[0]], at="over")


def _entry(state: State, task: Task) -> str:
    head = f"Accepted result, iteration {task.iteration}, task {task.number} ({task.resource_name}): {task.task_query}"
    # What an agent said that it checked, or did not, goes where its result goes.
    own = f"\nChecked: {task.reason}" if state.options.judge_own_results and task.reason else ""
    return f"{head}\n{_result_text(state, task)}{own}"


def _result_text(state: State, task: Task, *, with_passages: bool = False) -> str:
    shown = result_text(task.resource_name, task.result, with_passages=with_passages)
    return cut(shown, state.options.max_result_chars)


# -- what did not work


def setbacks(state: State, iterations: Iterable[int]) -> str:
    """Say what did not work in these iterations: rejections, failures, plans that could not be used."""
    lines = [
        _setback(task)
        for task in state.tasks
        if task.iteration in iterations and task.status in ("REJECTED", "FAILED", "SKIPPED")
    ]
    lines += [
        f"- a plan could not be used: {why}" for n in iterations for why in state.iterations[n - 1].dropped
    ]
    return "\n" + SETBACKS.format(lines="\n".join(lines)) + "\n" if lines else ""


def _setback(task: Task) -> str:
    """Say what became of a task without a word of its result."""
    reason = task.reason if task.status != "REJECTED" else without_quotes(task.reason, task.result)
    return f'- {task.resource_name}, "{task.task_query}": {task.status.lower()}: {reason}'


def without_quotes(reason: str, result: Any) -> str:
    """Return a reason without the sentences of a result that it quotes."""
    quoted = {piece.strip() for text in _texts(result) for piece in (text, *_SENTENCE.findall(text))}
    for piece in sorted(quoted, key=len, reverse=True):
        if len(piece) >= SHORTEST_QUOTE:
            reason = reason.replace(piece, "[…]")
    return reason


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
