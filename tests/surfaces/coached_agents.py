"""Agents that answer coached runs in brief replies, and what the replies cost them."""

import json
import re
from collections.abc import Callable
from typing import Any

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.app.runs import coach_answer, coach_start
from reasonry.core.budget import Budget

from ..engine.answering import spelled_out

Question = dict[str, Any]
Agent = Callable[[Question], Any]

PUZZLES = {
    "Use 3, 3, 8 and 8 to make 24": (
        ["8 / 3 = 8/3 (left: 3 8 8/3)", "3 - 8/3 = 1/3 (left: 8 1/3)", "8 / (1/3) = 24 (left: 24)"],
        ["8 + 8 = 16 (left: 3 3 16)", "3 + 3 = 6 (left: 6 8 8)", "8 - 3 = 5 (left: 3 5 8)"],
        "8 / (3 - 8 / 3)",
    ),
    "Use 4, 9, 10 and 13 to make 24": (
        ["10 - 4 = 6 (left: 6 9 13)", "13 - 9 = 4 (left: 4 6)", "6 * 4 = 24 (left: 24)"],
        ["13 - 10 = 3 (left: 3 4 9)", "9 + 4 = 13 (left: 10 13 13)", "13 + 10 = 23 (left: 4 9 23)"],
        "(10 - 4) * (13 - 9)",
    ),
}
"""For each puzzle the steps that solve it, steps that do not, and the answer."""


def solver(puzzle: str) -> Agent:
    """Return an agent that knows the way, but proposes others as well, and explores them where it is asked to."""
    way, others, answer = PUZZLES[puzzle]

    def reply(question: Question) -> Any:
        if question["stage"] == "continuation_decision":
            return {"reason": "The steps arrive at 24.", "answer": answer}
        steps = re.findall(r"^\d+\. (.*)$", question["prompt"], re.MULTILINE)
        on_way = steps == way[: len(steps)] and len(steps) < len(way)
        wanted = [way[len(steps)]] if on_way else []
        proposed = [*wanted, *(other for other in others if other not in steps)][:3]
        scores = [0.9 if thought in wanted else 0.2 for thought in proposed]
        return {
            "thoughts": [
                {"thought": thought, "score": score} for thought, score in zip(proposed, scores, strict=True)
            ]
        }

    return reply


QUERY = "Should a small web shop move from PostgreSQL 12 to 16 this quarter? Answer yes or no."
ANALYSIS = {
    "complexity_analysis": {
        "complexity_level": "straightforward",
        "dimensions": ["support until the end of the quarter", "effort and risk of the move"],
        "key_challenges": ["the shop cannot be down for long"],
        "sequential_dependencies": ["what the move takes before the recommendation"],
        "iteration_strategy": "one pass",
    },
    "plan_generation": {
        "tasks": [
            {"resource_name": "knowledge", "task_query": "Support dates of 12, and what an upgrade to 16 takes"},
            {"resource_name": "logic_kernel", "task_query": "Weigh the risk of staying against that of moving"},
        ]
    },
    "plan_evaluation": {
        "evaluations": [
            {"plan": "A", "reason": "Facts first, then the decision.", "overall_score": 85},
            {"plan": "B", "reason": "The same in other words.", "overall_score": 70},
        ]
    },
    "quality_evaluation": {"reason": "Sound.", "quality": "ACCEPTED"},
    "iteration_decision": {
        "quality_summary": "Both aspects are covered.",
        "decision_rationale": "Nothing is open that would change the answer.",
        "continue_iterations": False,
    },
    "synthesis": {
        "answer": "Version 12 gets no more fixes since November 2024, so each new hole stays open. The upgrade with "
        "pg_upgrade takes an evening, most of which is a rehearsal on a copy.",
        "key_findings": ["12 is out of support", "pg_upgrade needs minutes of downtime"],
        "final_answer": "Yes: move this quarter, after a rehearsal on a copy of the database.",
        "title": "PostgreSQL 12 to 16",
        "headline": "Move now, rehearse first",
    },
    "focused_answer": {"reason": "The answer recommends the move.", "value": "yes"},
}  # fmt: skip


def analyst(question: Question) -> Any:
    """Answer each question of an analysis of two tasks with a few sentences."""
    if question["stage"] != "task_execution":
        return ANALYSIS[question["stage"]]
    verdict = {"reason": "Checked against the release notes.", "quality": "ACCEPTED"}
    if "logic_kernel" in question["prompt"].rpartition("The next task is for")[2][:20]:
        steps = ["12 gets no fixes any more.", "A rehearsed pg_upgrade is a small risk."]
        return {"steps": steps, "conclusion": "Moving is the smaller risk.", **verdict}
    known = "PostgreSQL 12 went out of support in November 2024. pg_upgrade with links takes minutes."
    return {"answer": known, "confidence": 0.9, **verdict}


async def play(
    agent: Agent,
    problem: str,
    strategy: str,
    options: dict[str, Any] | None = None,
    verifier: str | None = None,
) -> tuple[dict[str, Any], list[int]]:
    """Answer a coached run to its end; return the last reply, and how many characters each reply had."""
    named = Participants(verifier=verifier)
    async with App("memory") as app:
        shown = await coach_start(
            app,
            RunRequest(
                problem=problem, strategy=strategy, options=options or {}, budget=Budget(), participants=named
            ),
            brief=True,
        )
        sizes, shared = list[int](), dict[str, Any]()
        while True:
            sizes.append(len(json.dumps(shown, ensure_ascii=False, separators=(",", ":"))))
            if shown["status"] != "active":
                return shown, sizes
            shared |= shown.get("shared", {})
            answers = {each["id"]: agent(each) for each in spelled_out(shown["questions"], shared)}
            shown = await coach_answer(app, shown["run_id"], answers, named, brief=True)
