"""Stage 4 of an analysis: start tasks, write the inputs of their tools, execute the tasks, and judge the results.

For the resource `knowledge`, the model answers, and sees passages of the user's documents. For `logic_kernel`, the
model deduces, and a checker (if there is one) checks the formal claim. For `py_executor`, the model writes a program,
which is run. For any other tool, the model writes the input, and the tool is called. Tasks run one after another. With
`concurrent_tasks`, independent tasks pass through the stages together. Only accepted results enter the history.
"""

from collections.abc import Generator, Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...blocks.programs import SANDBOX_TOOL, UNAVAILABLE, WHERE_IT_RUNS, output_of
from ...blocks.toolcard import arguments_for, card_named, convert_types, properties_of
from ...core.bodies import Body, EffectFailed, Move, Thought, go, request, stay
from ...core.effects import Ask, CallTool, Effect
from ...core.events import Failed
from ...core.json_schema import faults
from ...core.readings import Unreadable
from ...core.type_schema import inlined_schema
from ...reading.form import read_form
from ...text import shorten
from . import forms
from .state import BUILT_IN, CHECKER, RETRIEVER, State, Task

NEXT_TASK = "The next task is for `{resource}`:\n{text}"

CONVERT = """Now write that task as the input of `{resource}`: complete, with what it needs from the results above. \
Its arguments: {parameters}
Reply with one JSON object:
{{"tool_input": {example}}}"""

PERFORM = {
    "knowledge": """Now say what is known about it, from the context and the passages where they have it, else from \
general knowledge. Cite passages as [n]. Say how sure you are.{judged} Reply with one JSON object:
{{"answer": "…", "confidence": 0 to 1{verdict}}}""",
    "logic_kernel": """Now deduce it, step by step, from what was accepted above; each step is one inference.{formal}\
{judged} Reply with one JSON object:
{{"steps": ["…"], "conclusion": "…"{field}{verdict}}}""",
    "py_executor": f"""Now write the Python program that does it; its last line is an expression: the result. Where it \
runs: {WHERE_IT_RUNS} Reply with one JSON object:
{{{{"code": "…"}}}}""",
}
JUDGED = (
    " Then decide whether later work may build on it: REJECTED if it is unsound, off the point or made up."
)
VERDICT_FIELDS = ', "reason": "…", "quality": "ACCEPTED" or "REJECTED"'
FORMAL = (
    " If the conclusion can be stated in SMT-LIB2, state it in formal_claim too; it is then checked. An example: "
    '{"declarations": ["(declare-const x Int)"], "assumptions": ["(> x 2)"], "claim": "(> (* x x) 4)"}'
)
FORMAL_FIELD = ', "formal_claim": as above or null'
PASSAGES = "Passages:\n{passages}"

ERRORS = "It was tried before and failed; do it another way:\n{errors}"
CODE_ERRORS = """The last program was:
{code}
What went wrong so far, to be corrected:
{errors}"""

DONE_TASK = """A task was carried out by `{resource}`:
{query}

Its result:
{result}"""
QUALITY = """Now decide whether later work may build on this result. Accept it if it does what the task asks, is \
sound, agrees with what was accepted before and is honest about what is uncertain. Reject it if it is wrong, refuted, \
off the point, empty or made up. Reply with one JSON object:
{"reason": "…", "quality": "ACCEPTED" or "REJECTED"}"""

SETBACKS = "What did not work so far:\n{lines}"

REPLIES: dict[str, tuple[type[Struct], type[Struct]]] = {
    "knowledge": (forms.KnowledgeReply, forms.JudgedKnowledgeReply),
    "logic_kernel": (forms.LogicReply, forms.JudgedLogicReply),
    "py_executor": (forms.CodeReply, forms.CodeReply),
}
"""For each resource, two forms of the model's reply: without and with the model's own verdict on its result.

A reply with a program never has a verdict, because the result is known only after the program has run.
"""


# -- the way through the stages


def move_on(state: State, here: str, *thoughts: Thought) -> Move:
    """Go to the stage where the open tasks continue. If no task is open, leave stage 4. `here` is the current stage."""
    if all(task.at in ("waiting", "over") for task in state.at_work):
        state = _open_next(state)
    stages = {task.at for task in state.at_work}
    if "quality_evaluation" in stages and "task_execution" not in stages:
        to = "quality_evaluation"
    else:
        work = ("query_conversion", "task_execution")
        to = next((stage for stage in work if stage in stages), "iteration_decision")
    return stay(state, *thoughts) if to == here else go(state, to, *thoughts)


def _open_next(state: State) -> State:
    tasks = state.at_work
    over = {task.number for task in tasks if task.at == "over"}
    ready = [task for task in tasks if task.at == "waiting" and over.issuperset(task.depends_on)]
    begun = [
        replace(task, at="task_execution" if task.resource_name in BUILT_IN else "query_conversion")
        for task in (ready if state.options.concurrent_tasks else ready[:1])
    ]
    return state.with_tasks(*begun)


def _tasks_at(state: State, stage: str) -> list[Task]:
    return [task for task in state.at_work if task.at == stage]


def _book_failure(state: State, task: Task, failure: Failed) -> Task:
    """Record a failed attempt at a task. If no retry is left or the sandbox is missing, the task fails."""
    errors = (*task.errors, failure.message)
    if len(errors) > state.options.execution_retry_limit or failure.code == UNAVAILABLE:
        return replace(task, errors=errors, at="over", status="FAILED", reason=failure.message)
    return replace(task, errors=errors)


def _record(task: Task, text: str, **data: str) -> Thought:
    return Thought(text, data={"task": task.number, "node_id": task.id, **data})


def _failures(tasks: Sequence[Task]) -> list[Thought]:
    failed = (task for task in tasks if task.status == "FAILED")
    return [_record(task, f"{task.title} FAILED: {task.reason}") for task in failed]


def _errors(task: Task) -> str:
    if not task.errors:
        return ""
    lines = "\n".join(f"- {error}" for error in task.errors)
    return (CODE_ERRORS if task.program else ERRORS).format(code=task.program, errors=lines)


def _question(state: State, task: Task, kind: str, instruction: str, *material: str, **parts: Any) -> Ask:
    facts = {"resource": task.resource_name, "task": task.task_query}
    return state.question(kind, instruction, *material, facts=facts, about=task.id, **parts)


# -- conversion


def convert(s: State) -> Body:
    """Ask the model to write each task t as the input x of its tool: x ← t."""
    tasks = _tasks_at(s, "query_conversion")
    answers = yield request(s, *(_conversion(s, task) for task in tasks), give_failures=True)
    changed = [
        _book_failure(s, task, answer)
        if isinstance(answer, Failed)
        else replace(task, tool_input=answer.value, at="task_execution")
        for task, answer in zip(tasks, answers, strict=True)
    ]
    return move_on(s.with_tasks(*changed), "query_conversion", *_failures(changed))


def _conversion(state: State, task: Task) -> Ask:
    card = card_named(state.options.resources, task.resource_name)
    assert card is not None, "checked when the plan was read"
    text = CONVERT.format(
        resource=task.resource_name,
        parameters=msgspec.json.encode(card.parameters).decode(),
        example="{" + ", ".join(f'"{name}": "…"' for name in properties_of(card)) + "}",
    )
    material = NEXT_TASK.format(resource=task.resource_name, text=task.task_query), _errors(task)
    return _question(state, task, "convert", text, *material)


def read_input(state: State, ask: Ask, replies: Sequence[str]) -> tuple[dict[str, Any], str] | Unreadable:
    """Read the input for a tool, and check the input against the tool's schema."""
    card = card_named(state.options.resources, ask.facts["resource"])
    assert card is not None, "checked when the plan was read"
    reading = read_form(replies[-1], forms.ConversionReply)
    if isinstance(reading, Unreadable):
        return reading
    found = reading[0].tool_input
    arguments = arguments_for(card, found) if isinstance(found, str) else convert_types(card, found)
    if isinstance(arguments, Unreadable):
        return arguments
    fault = next(faults(arguments, card.parameters, "tool_input"), None)
    return (arguments, reading[1]) if fault is None else Unreadable(fault)


# -- execution


def execute(s: State) -> Body:
    """Attempt each open task once, in parallel. The input x gives the result r: r ← resource(x)."""
    changed = list[Task]()
    under_way: list[tuple[Task, Attempt, Any]] = [
        (task, ATTEMPTS.get(task.resource_name, _call)(s, task), None)
        for task in _tasks_at(s, "task_execution")
    ]
    while under_way:
        waiting = list[tuple[Task, Attempt, Effect]]()
        for task, attempt, answer in under_way:
            try:
                waiting.append((task, attempt, attempt.send(answer)))
            except StopIteration as end:
                changed.append(end.value)
            except EffectFailed as lost:
                changed.append(_book_failure(s, task, lost.failure))
        if not waiting:
            break
        answers = yield request(s, *(effect for _, _, effect in waiting), give_failures=True)
        under_way = [(*each[:2], answer) for each, answer in zip(waiting, answers, strict=True)]
    changed.sort(key=lambda task: task.number)
    return move_on(s.with_tasks(*changed), "task_execution", *_results(changed), *_failures(changed))


Attempt = Generator[Effect, Any, Task]
"""A generator that makes one attempt at a task: it yields one effect at a time and returns the changed task."""


def _require(effect: Effect) -> Generator[Effect, Any, Any]:
    """Yield an effect and return its result. If the effect fails, raise EffectFailed, which ends the attempt."""
    answer = yield effect
    if isinstance(answer, Failed):
        raise EffectFailed(answer)
    return answer.value


def _answer(state: State, task: Task) -> Attempt:
    """Ask the model for knowledge about a task. The question shows passages of the user's documents, if any."""
    passages: Any = state.overview.passages
    if passages is None and RETRIEVER in state.tool_names:
        found = yield from _require(CallTool(RETRIEVER, {"query": task.task_query}, about=task.id))
        passages = (found.get("passages", found) if isinstance(found, dict) else found) or []
    passages = list(passages) if isinstance(passages, tuple) else passages
    result = yield from _require(_performance(state, task, passages))
    return _hand_over(task, result if passages is None else {**result, "passages": passages})


def _deduce(state: State, task: Task) -> Attempt:
    """Ask the model for a deduction, and check its formal claim if there is a checker."""
    result = yield from _require(_performance(state, task))
    claim = result.get("formal_claim")
    if not claim or CHECKER not in state.tool_names:
        return _hand_over(task, result)
    checked = yield CallTool(CHECKER, claim if isinstance(claim, dict) else {"claim": claim}, about=task.id)
    is_lost = isinstance(checked, Failed)
    check = {"verdict": "unknown", "detail": checked.message} if is_lost else checked.value
    return _hand_over(task, {**result, "check": check})


def _compute(state: State, task: Task) -> Attempt:
    written = yield from _require(_performance(state, task))
    task = replace(task, program=written["code"])
    returned = yield CallTool(SANDBOX_TOOL, {"code": task.program}, about=task.id)
    if error := output_of(returned).error:
        fault = returned if isinstance(returned, Failed) else Failed("tool_error", error)
        return _book_failure(state, task, fault)
    return _hand_over(task, {**written, "output": returned.value})


def _call(state: State, task: Task) -> Attempt:
    """Call the tool. After a failure, the model writes a new input for the tool."""
    returned = yield CallTool(task.resource_name, task.tool_input, about=task.id)
    if isinstance(returned, Failed):
        return _book_failure(state, replace(task, at="query_conversion"), returned)
    return replace(task, result=returned.value, at="quality_evaluation")


ATTEMPTS = {"knowledge": _answer, "logic_kernel": _deduce, "py_executor": _compute}
"""For each built-in resource, the function that makes an attempt. For any other resource, use `_call`."""


def _hand_over(task: Task, reply: dict[str, Any]) -> Task:
    """Add the result in `reply` to the task. Add the model's own verdict too, unless a checker was called."""
    is_judged = "quality" in reply and "check" not in reply
    result = {name: value for name, value in reply.items() if name not in ("quality", "reason")}
    judgement = msgspec.convert(reply, forms.QualityReply) if is_judged else None
    return replace(task, result=result, judgement=judgement, at="quality_evaluation")


def _results(tasks: Sequence[Task]) -> list[Thought]:
    return [
        _record(
            task,
            f"{task.title}: {task.task_query}\n{forms.result_text(task.resource_name, task.result)}",
            resource_name=task.resource_name,
        )
        for task in tasks
        if task.at == "quality_evaluation"
    ]


def _performance(state: State, task: Task, passages: Any = None) -> Ask:
    checks = CHECKER in state.tool_names
    text = PERFORM[task.resource_name].format(
        formal=FORMAL if checks else "",
        field=FORMAL_FIELD if checks else "",
        judged=JUDGED if state.options.judge_own_results else "",
        verdict=VERDICT_FIELDS if state.options.judge_own_results else "",
    )
    material = (
        NEXT_TASK.format(resource=task.resource_name, text=task.task_query),
        "" if passages is None else PASSAGES.format(passages=forms.found_text(passages)),
        _errors(task),
    )
    form = inlined_schema(REPLIES[task.resource_name][state.options.judge_own_results])
    return _question(state, task, "perform", text, *material, form=form)


def read_work(state: State, ask: Ask, replies: Sequence[str]) -> tuple[dict[str, Any], str] | Unreadable:
    """Read the model's reply for a task. The resource of the task determines the form of the reply."""
    form = REPLIES[ask.facts["resource"]][state.options.judge_own_results]
    reading = read_form(replies[-1], form)
    if isinstance(reading, Unreadable):
        return reading
    return msgspec.json.decode(msgspec.json.encode(reading[0])), reading[1]


# -- quality


def judge(s: State) -> Body:
    """Judge the results, and add each accepted result r to history H: H ← H + r if r is ACCEPTED."""
    tasks = _tasks_at(s, "quality_evaluation")
    due = [task for task in tasks if task.judgement is None]
    answers = yield request(s, *(_judgement(s, task) for task in due), give_failures=True)
    verdicts = {task.number: task.judgement for task in tasks}
    for task, answer in zip(due, answers, strict=True):
        verdicts[task.number] = (
            forms.QualityReply(reason=f"there was no verdict: {answer.message}", quality="REJECTED")
            if isinstance(answer, Failed)
            else answer.value
        )
    settled = [
        replace(task, status=verdict.quality, reason=verdict.reason, at="over")
        for task in tasks
        if (verdict := verdicts[task.number])
    ]
    accepted = [_entry(s, task) for task in settled if task.status == "ACCEPTED"]
    s = replace(s.with_tasks(*settled), history=(*s.history, *accepted))
    thoughts = [
        _record(
            each,
            f"{each.title} {each.status}: {each.reason}",
            quality=each.status,
            resource_name=each.resource_name,
        )
        for each in settled
    ]
    return move_on(s, "quality_evaluation", *thoughts)


def _judgement(state: State, task: Task) -> Ask:
    result = _result_text(state, task, with_passages=True)
    material = DONE_TASK.format(resource=task.resource_name, query=task.task_query, result=result)
    return _question(state, task, "quality", QUALITY, material, by="judge")


def _entry(state: State, task: Task) -> str:
    head = f"Accepted result, iteration {task.iteration}, task {task.number} ({task.resource_name}): {task.task_query}"
    # If the model judged its own result, the reason of its verdict enters the history with the result.
    own = f"\nChecked: {task.reason}" if state.options.judge_own_results and task.reason else ""
    return f"{head}\n{_result_text(state, task)}{own}"


def _result_text(state: State, task: Task, *, with_passages: bool = False) -> str:
    shown = forms.result_text(task.resource_name, task.result, with_passages=with_passages)
    return shorten(shown, state.options.max_result_chars)


# -- setbacks


def setbacks(state: State, iterations: Iterable[int]) -> str:
    """List the setbacks of `iterations`: rejected, failed and skipped tasks, and unusable plans."""
    lines = [
        f'- {task.resource_name}, "{task.task_query}": {task.status.lower()}: {task.reason}'
        for task in state.tasks
        if task.iteration in iterations and task.status in ("REJECTED", "FAILED", "SKIPPED")
    ]
    lines += [
        f"- a plan could not be used: {why}" for n in iterations for why in state.iterations[n - 1].dropped
    ]
    return SETBACKS.format(lines="\n".join(lines)) if lines else ""
