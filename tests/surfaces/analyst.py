"""Plays the model of an analysis over HTTP: tells the stage by its form or its words, and draws on what it is shown.

What it finds goes from tool to tool: days with rain from the MCP server into the program, the program's value into the
answer. So a right answer says that each of them has really run. `play` is what a server process takes as its brain.
"""

import re
from typing import Any

from tests.servers import ChatRequest

QUERY = "Do I need an umbrella in Bergen in October?"
NOTES = """# Packing

## Rain

An umbrella is worth its weight where it rains on more than half of the days.

## Sun

Take a hat to Cairo.
"""
STAGES = {
    "complexity_analysis",
    "plan_generation",
    "plan_evaluation",
    "query_conversion",
    "task_execution",
    "quality_evaluation",
    "iteration_decision",
    "synthesis",
    "focused_answer",
}
FOCUS = "choice: Umbrella | Hat"
SYNTHESIZE = "Now bring all accepted results together"
"""What is said where the synthesis is asked for, which goes without a schema, as the focused value does."""

_KEYS = {
    "complexity_level": "complexity",
    "tasks": "plan",
    "evaluations": "score",
    "tool_input": "convert",
    "code": "code",
    "confidence": "know",
    "steps": "deduce",
    "quality": "judge",
    "continue_iterations": "decide",
    "final_answer": "synthesize",
    "value": "focus",
}
"""The field of a reply that only its stage has."""


def play(request: ChatRequest) -> Any:
    """Answer a question of an analysis."""
    if request.form is None:
        is_synthesis = SYNTHESIZE in request.prompt
        return _synthesis(request.prompt) if is_synthesis else _marked(_focus(request.prompt, True)["value"])
    properties = request.form["properties"]
    kind = next(kind for key, kind in _KEYS.items() if key in properties)
    has_climate = "climate" in request.prompt
    reply = globals()[f"_{kind}"](request.prompt, has_climate)
    is_judged = kind in ("know", "deduce") and "quality" in properties
    return {**reply, **_judge(request.prompt, has_climate)} if is_judged else reply


def _complexity(prompt: str, _: bool) -> Any:
    return {
        "complexity_level": "straightforward",
        "dimensions": ["rain"],
        "iteration_strategy": "facts, then figures",
    }


def _plan(prompt: str, has_climate: bool) -> Any:
    """Facts first, figures in the second iteration; the first of several plans is the poor one."""
    facts = [("knowledge", "When is an umbrella worth its weight?"), ("climate", "Bergen in October")]
    figures = [
        ("py_executor", "The share of days with rain"),
        ("logic_kernel", "Compare the share with the rule"),
    ]
    tasks = figures if "Iteration 1" in prompt else facts if has_climate else facts[:1] + figures[:1]
    if "You draft plan 1 of" in prompt:
        tasks = [("logic_kernel", "Guess"), ("logic_kernel", "Guess again")]
    return {"tasks": [{"resource_name": name, "task_query": query} for name, query in tasks]}


def _score(prompt: str, _: bool) -> Any:
    plans = re.findall(r"Plan ([A-E]):\n((?:\d+\. .*\n)+)", prompt)
    scores = [{"plan": name, "overall_score": 10 if "Guess" in tasks else 90} for name, tasks in plans]
    return {"evaluations": scores}


def _convert(prompt: str, _: bool) -> Any:
    if "The next task is for `climate`" in prompt:
        return {"tool_input": {"city": "Bergen", "month": "October"}}
    return {"tool_input": {"query": "umbrella worth its weight"}}


def _know(prompt: str, _: bool) -> Any:
    shown = "worth its weight where it rains on more than half" in prompt.rpartition("Passages:")[2]
    return {"answer": "More than half of the days [1]." if shown else "More than half.", "confidence": 0.9}


def _code(prompt: str, _: bool) -> Any:
    found = re.findall(r'rain_days"?: ?(\d+)', prompt)
    return {"code": f"days = {found[-1] if found else 20}\nround(days / 31, 4)"}


def _deduce(prompt: str, _: bool) -> Any:
    return {"steps": ["the share is over the half"], "conclusion": "it is worth its weight"}


def _judge(prompt: str, _: bool) -> Any:
    return {"quality": "ACCEPTED", "reason": "it says what was asked"}


def _decide(prompt: str, has_climate: bool) -> Any:
    again = has_climate and "Iteration 1 of at most" in prompt
    return {
        "continue_iterations": again,
        "quality_summary": "Iteration 1 brought facts" if again else "complete",
    }


def _synthesize(prompt: str, _: bool) -> Any:
    share = re.findall(r'value"?: ?([\d.]+)', prompt)[-1]
    return {
        "answer": f"It rains on {share} of the days.",
        "final_answer": f"Share: {share}",
        "title": "Rain",
    }


def _synthesis(prompt: str) -> str:
    made = _synthesize(prompt, True)
    return f"{made['answer']}\n<title>{made['title']}</title>\n{_marked(made['final_answer'])}"


def _marked(answer: str) -> str:
    return f"<answer>{answer}</answer>"


def _focus(prompt: str, _: bool) -> Any:
    share = float(re.findall(r"Share: (\d\.\d+)", prompt)[-1])
    return {"value": "umbrella" if share > 0.5 else "hat"}
