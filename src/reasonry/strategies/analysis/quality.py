"""Stage 4, the gate: results are judged, and only what is accepted enters the analysis history."""

from __future__ import annotations

from typing import Any, Literal

from msgspec.structs import replace

from ...core.effects import Ask, Effect
from ...core.events import Failed, Reply
from ...core.evidence import evidence_text
from ...core.strategy import Move, Thought
from ...core.vote import is_settled, tally
from . import tasks as life
from .execution import among, move_on
from .prompts import QUALITY
from .state import State, affordable, paid, question, with_tasks
from .tasks import Task


def ask_quality(state: State) -> tuple[Effect, ...]:
    """Ask whether results may be built upon; as few votes as can settle it."""
    due = _judging(state)
    return tuple(_judgement(state, task, sample, len(due)) for task, sample in due)


def _judging(state: State) -> list[tuple[Task, int]]:
    due = [
        (task, sample)
        for task in among(state, "judge")
        for sample in range(task.votes_drawn, task.votes_drawn + _votes_due(task, state.options.votes))
    ]
    return due[: affordable(state, len(due))]


def _votes_due(task: Task, votes: int) -> int:
    left, counted = votes - task.votes_drawn, tally(task.verdicts)
    if task.votes_drawn and (left <= 0 or is_settled(counted, left)):
        return 0
    lead = counted[0].count if counted else 0
    return min(left, max(1, votes // 2 + 1 - lead))


def _judgement(state: State, task: Task, sample: int, together: int) -> Ask:
    text = QUALITY.format(
        resource=task.resource_name, query=task.task_query, result=_shown(state, evidence_text(task.result))
    )
    facts = {"resource": task.resource_name, "task": task.task_query}
    return question(state, "quality", text, sample=sample, together=together, by="judge", facts=facts)


def keep_quality(state: State, answers: tuple[Any, ...]) -> Move:
    """Write accepted results into the history; of rejected ones only the reason is kept in mind."""
    votes, history, thoughts = state.options.votes, list(state.history), list[Thought]()
    judged: dict[int, Task] = {}
    for (task, _), answer in zip(_judging(state), answers, strict=True):
        judged[task.number] = _voted(judged.get(task.number, task), answer)
    for number, task in judged.items():
        if _votes_due(task, votes):
            continue
        task = judged[number] = _settled(task)
        data = {"quality": task.status, "resource_name": task.resource_name, "task": number}
        thoughts.append(Thought(f"{task.status}: {task.reason}", data=data))
        if task.status == "ACCEPTED":
            history.append(_entry(state, task))
    state = replace(with_tasks(paid(state, answers), *judged.values()), history=tuple(history))
    return move_on(state, "quality_evaluation", *thoughts)


def _voted(task: Task, answer: Reply | Failed) -> Task:
    if isinstance(answer, Failed):
        reason = f"there was no verdict: {answer.message}"
        return replace(task, votes_drawn=task.votes_drawn + 1, reason=reason)
    return replace(
        task,
        votes_drawn=task.votes_drawn + 1,
        verdicts=(*task.verdicts, answer.value.quality),
        reasons=(*task.reasons, answer.value.reason),
    )


def _settled(task: Task) -> Task:
    votes = tally(task.verdicts)
    if not votes:
        return life.judged(task, "REJECTED", task.reason)
    verdict: Literal["ACCEPTED", "REJECTED"] = "ACCEPTED" if votes[0].answer == "ACCEPTED" else "REJECTED"
    return life.judged(task, verdict, task.reasons[votes[0].voters[0]])


def _entry(state: State, task: Task) -> str:
    head = f"Accepted result, iteration {task.iteration}, task {task.number} ({task.resource_name}): {task.task_query}"
    return f"{head}\n{_shown(state, evidence_text(task.result))}"


def _shown(state: State, text: str) -> str:
    limit = state.options.max_result_chars
    return text if len(text) <= limit else f"{text[:limit]}… (cut after {limit} characters)"
