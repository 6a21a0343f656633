"""Playing the model, and the tools, of an analysis."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from reasonry.core.effects import Ask, CallTool
from reasonry.core.events import Event, Failed, ToolReturned
from reasonry.core.machine import Pending
from reasonry.strategies.analysis import ANALYSIS

from .walking import Walked, reply, walk

QUERY = "Is Python or JavaScript better for building a web scraper?"


def plan(*tasks: str | tuple[str, str] | tuple[str, str, list[int]]) -> dict[str, Any]:
    """Return a plan; a task is a query for `knowledge`, or (resource, query), or with what it depends on."""
    listed = [("knowledge", task) if isinstance(task, str) else task for task in tasks]
    return {
        "tasks": [
            {"resource_name": task[0], "task_query": task[1], "depends_on": task[2] if len(task) > 2 else []}
            for task in listed
        ]
    }


def scores(*each: float) -> dict[str, Any]:
    """Return what judges say of the plans A, B, … side by side."""
    return {
        "evaluations": [
            {"plan": "ABCDE"[place], "reason": f"worth {score}", "overall_score": score}
            for place, score in enumerate(each)
        ]
    }


USUAL: dict[str, Any] = {
    "complexity_analysis": {
        "complexity_level": "straightforward",
        "dimensions": ["libraries", "speed"],
        "key_challenges": ["it depends"],
        "sequential_dependencies": ["facts before comparison"],
        "iteration_strategy": "one pass",
    },
    "plan_generation": plan("What can Python do?", "What can JavaScript do?"),
    "knowledge": {"answer": "It can do much.", "confidence": 0.9},
    "logic_kernel": {"steps": ["A holds", "so B holds"], "conclusion": "B"},
    "py_executor": {"code": "6 * 7"},
    "quality_evaluation": {"quality": "ACCEPTED", "reason": "sound"},
    "iteration_decision": {
        "continue_iterations": False,
        "quality_summary": "good coverage",
        "decision_rationale": "nothing is missing",
        "recommendations_for_next_iteration": "none",
    },
    "synthesis": {
        "answer": "All in all, Python.",
        "key_findings": ["Python has Scrapy"],
        "final_answer": "Python.",
        "title": "Scrapers",
        "headline": "Python leads",
    },
    "focused_answer": {"value": "Python"},
}


class Desk:
    """Answers by stage (by resource in `task_execution`): what was scripted first, the usual after that.

    Args:
        script: Replies in order; a list holds several, None stands for the usual one.
        tools: What each tool returns, in order; `overview` is what there is to say of the documents.
    """

    def __init__(
        self,
        script: Mapping[str, Any],
        tools: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        self.script = {
            name: list(given) if isinstance(given, list) else [given] for name, given in script.items()
        }
        self.tools = {name: list(given) for name, given in (tools or {}).items()}
        waiting = self.tools.pop("overview", None)
        self.overview = ToolReturned(waiting[0]) if waiting else Failed("tool_error", "there is none")

    def answer(self, one: Pending) -> Event:
        if isinstance(one.effect, CallTool):
            if one.effect.arguments.get("overview"):
                return self.overview
            waiting = self.tools.get(one.effect.tool)
            value = (
                waiting.pop(0) if waiting else Failed("tool_error", f"there is no tool {one.effect.tool!r}")
            )
            return value if isinstance(value, Failed) else ToolReturned(value)
        assert isinstance(one.effect, Ask)
        name = one.effect.facts["resource"] if one.stage == "task_execution" else one.stage
        if one.stage == "plan_evaluation":
            usual = scores(*[70] * one.effect.facts["candidates"])
        else:
            usual = USUAL.get(name) or {"tool_input": {"query": f"converted: {one.effect.facts['task']}"}}
        given = self.script[name].pop(0) if self.script.get(name) else None
        return given if isinstance(given, msgspec.Struct) else reply(usual if given is None else given)


def analyse(
    script: Mapping[str, Any] | None = None,
    returns: Mapping[str, Sequence[Any]] | None = None,
    **options: Any,
) -> Walked:
    """Walk an analysis of the usual query to its end; one candidate plan of any size, unless more is asked for."""
    desk = Desk(script or {}, returns)
    return walk(ANALYSIS, QUERY, desk.answer, {"candidate_plans": 1, "enforce_task_counts": False, **options})


def asked(walked: Walked, stage: str) -> list[Ask]:
    """Return the questions of a stage, in order."""
    return [one.effect for one in walked.performed if one.stage == stage and isinstance(one.effect, Ask)]


def statuses(walked: Walked) -> list[str]:
    """Return what became of each task."""
    return [task["status"] for task in walked.conclusion.document["tasks"]]
