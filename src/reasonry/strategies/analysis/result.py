"""The result of an analysis, and where it stands."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import asdict

from ...core.bodies import Conclusion
from ...core.details import AnswerDetails
from .plain_text import result_text
from .questions import texts
from .state import Iteration, Plan, State, is_broke, iteration_id, plan_id


def accepted_text(state: State) -> str | None:
    """Return the accepted results as they are: the best there is before a synthesis."""
    results = (
        f"{task.task_query}\n{result_text(task.resource_name, task.result)}" for task in state.accepted
    )
    return "\n\n".join(results) or None


def conclude(state: State) -> Conclusion:
    """Return the focused value, else the final answer; before there is one, the accepted results."""
    if state.focus is not None:
        answer = None if state.focused is None else str(state.focused)
    else:
        answer = accepted_text(state) if state.synthesis is None else state.final.text
    reason, detail = state.ended or ("success", "")
    proved = "proved" if state.final.verification == "proved" else "given"
    is_cut = reason == "cost_limit" or (answer is None and is_broke(state))
    certainty = "best_so_far" if is_cut else proved
    return Conclusion(answer, reason, detail, document(state), certainty=certainty)


class AnalysisDetails(AnswerDetails):
    """What the details of a result have."""

    complexity: Annotated[dict[str, Any] | None, Meta(description="How complex the query is, and why.")]
    plans: Annotated[list[dict[str, Any]], Meta(description="The last plans, with their scores.")]
    selected_plan: Annotated[dict[str, Any] | None, Meta(description="The chosen plan.")]
    tasks: Annotated[list[dict[str, Any]], Meta(description="All tasks, with their results.")]
    iterations: Annotated[list[dict[str, Any]], Meta(description="Plans and decision of each iteration.")]
    synthesis: Annotated[dict[str, Any] | None, Meta(description="The `answer` and its `key_findings`.")]
    final_answer: Annotated[str | None, Meta(description="The answer written from the synthesis.")]
    focused_answer: Annotated[dict[str, Any] | None, Meta(description="Its `type` and `value`.")]
    title: Annotated[str | None, Meta(description="A title for the answer.")]
    headline: Annotated[str | None, Meta(description="A headline for the answer.")]
    image_caption: Annotated[str | None, Meta(description="A caption, if an image is wanted.")]


def document(state: State) -> dict[str, Any]:
    """Return the analysis as the result document has it."""
    made, focus, focused, now = state.synthesis, state.focus, state.focused, state.now
    plans = [_plan(state.number, n, plan) for n, plan in enumerate(now.plans, 1)]
    found = (each.complexity for each in reversed(state.iterations) if each.complexity)
    return {
        "complexity": _data(next(found, None)),
        "plans": plans,
        "selected_plan": None if now.selected is None else plans[now.selected],
        "tasks": [task.document for task in state.tasks],
        "iterations": [_iteration(n, iteration) for n, iteration in enumerate(state.iterations, 1)],
        "synthesis": made and {"answer": str(made.answer), "key_findings": list(texts(made.key_findings))},
        "final_answer": made and str(made.final_answer),
        "title": made and made.title,
        "headline": made and made.headline,
        "image_caption": made.image_caption if made and state.options.image else None,
        "focused_answer": {"type": focus.kind, "value": focused} if focus and focused is not None else None,
        **state.final.document,
        "diagnostics": {
            "dropped_plans": [why for iteration in state.iterations for why in iteration.dropped]
        },
    }


def _iteration(number: int, iteration: Iteration) -> dict[str, Any]:
    decision = iteration.decision
    return {
        "id": iteration_id(number),
        "iteration": number,
        "complexity": _data(iteration.complexity),
        "plans": [_plan(number, n, plan) for n, plan in enumerate(iteration.plans, 1)],
        "selected_plan": None if iteration.selected is None else iteration.selected + 1,
        "decision": decision
        and {"continue_iterations": decision.continue_iterations, **(_data(decision) or {})},
    }


def _plan(iteration: int, number: int, plan: Plan) -> dict[str, Any]:
    tasks = [{"resource_name": task.resource_name, "task_query": task.task_query} for task in plan.tasks]
    reason = " ".join(dict.fromkeys(plan.reasons))
    return {
        "id": plan_id(iteration, plan.draft or number),
        "number": number,
        "tasks": tasks,
        "overall_score": plan.score,
        "reason": reason,
    }


def _data(reply: Any) -> dict[str, Any] | None:
    if reply is None:
        return None
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(reply).items()}
