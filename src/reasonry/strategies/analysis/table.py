"""The table of the analysis: its stages, its edges, and what a guided thinker is told at each."""

from __future__ import annotations

from typing import Any

from ...core.strategy import Field, Stage, Strategy
from . import execution, finishing, planning, quality
from .forms import (
    Complexity,
    ConversionReply,
    DecisionReply,
    ExecutionReply,
    FocusReply,
    PlanReply,
    QualityReply,
    ScoreReply,
    SynthesisReply,
)
from .options import Options
from .state import State
from .tasks import CHECKER, RETRIEVER

_LEVEL = {
    "enum": ["straightforward", "moderate", "complex", "highly_complex"],
    "description": "How demanding the query is.",
}
_TASKS = {
    "type": "array",
    "items": {"type": "object"},
    "description": "`resource_name` and `task_query` of each.",
}
_SCORE = {"type": "number", "minimum": 0, "maximum": 100, "description": "0 is useless, 100 perfect."}
_INPUT = {"type": "object", "description": "The resource's arguments, by name."}
_RESULT = {"description": "What the resource brought, or the error."}
_QUALITY = {"enum": ["ACCEPTED", "REJECTED"], "description": "Whether later work may build on it."}
_CONTINUE = {"type": "boolean", "description": "Whether more work is needed."}
_FINDINGS = {"type": "array", "items": {"type": "string"}, "description": "What was found, one finding each."}
_VALUE = {"description": "One of the allowed words, or a number."}

ANALYSIS: Strategy[State, Options] = Strategy(
    name="analysis",
    title="Analysis pipeline",
    source="seed 002",
    summary="Plans, carries out and judges tasks, then answers, in one word if wanted: for decisions in programs.",
    aliases=("pipeline",),
    resources=("py_executor", CHECKER, RETRIEVER),
    options=Options,
    state=State,
    begin=lambda problem, options: State(problem, options),
    outcome=finishing.outcome,
    progress=finishing.progress,
    stages=(
        Stage(
            "problem_reception",
            ("complexity_analysis", "plan_generation"),
            description="Take in the query.",
            guidance="Say what is asked, for whom, and which form of answer is wanted.",
            absorb=planning.receive,
        ),
        Stage(
            "complexity_analysis",
            ("plan_generation", "iteration_decision"),
            description="Size up the query.",
            guidance="Name its aspects, what is difficult, and what must come before what. In a later iteration "
            "say what was accepted and what went wrong. Answer nothing yet.",
            fields=(Field("complexity_level", _LEVEL, required=False),),
            ask=planning.ask_complexity,
            absorb=planning.keep_complexity,
            reply=Complexity,
            example={
                "complexity_level": "moderate",
                "dimensions": ["language features", "libraries", "speed", "ease of use"],
                "key_challenges": ["it depends on the sites to be read"],
                "sequential_dependencies": ["both languages before the comparison"],
                "iteration_strategy": "one pass, a second one if a language was covered badly",
            },
            hears_failures=True,
        ),
        Stage(
            "plan_generation",
            ("plan_evaluation", "query_conversion", "task_execution", "iteration_decision"),
            description="Draft candidate plans.",
            guidance="Draft plans that differ in kind; each task names one resource and what it is to accomplish. "
            "Go on to the evaluation with several plans, to the first task with one.",
            fields=(Field("tasks", _TASKS, required=False),),
            ask=planning.ask_plans,
            absorb=planning.keep_plans,
            reply=PlanReply,
            example={
                "tasks": [
                    {"resource_name": "knowledge", "task_query": "What Python offers for web scraping"},
                    {"resource_name": "knowledge", "task_query": "What JavaScript offers for web scraping"},
                    {"resource_name": "logic_kernel", "task_query": "Compare the two and recommend one"},
                ]
            },
            read=planning.read_plan,
            hears_failures=True,
        ),
        Stage(
            "plan_evaluation",
            ("query_conversion", "task_execution", "iteration_decision"),
            description="Score the plans and select the best.",
            guidance="Score each from 0 to 100 by resources, order, coverage and feasibility. "
            "Select the highest, the first of equals.",
            fields=(Field("overall_score", _SCORE, required=False),),
            ask=planning.ask_scores,
            absorb=planning.keep_scores,
            reply=ScoreReply,
            example={"overall_score": 85, "reason": "Covers both sides before it compares them."},
            hears_failures=True,
        ),
        Stage(
            "query_conversion",
            ("task_execution", "iteration_decision"),
            description="Write the next task as the input of its resource.",
            guidance="Put in all that the resource needs from accepted results. Code tasks skip this stage.",
            fields=(Field("tool_input", _INPUT, required=False),),
            ask=execution.ask_inputs,
            absorb=execution.keep_inputs,
            reply=ConversionReply,
            example={
                "tool_input": {"query": "Python's libraries and habits for web scraping, with their limits"}
            },
            read=execution.read_input,
            value=dict[str, Any],
            hears_failures=True,
        ),
        Stage(
            "task_execution",
            ("quality_evaluation", "query_conversion", "iteration_decision"),
            description="Carry the task out.",
            guidance="Do what the task asks and no more, from accepted results alone. After an error try "
            "another way, within the limit; then leave the task.",
            fields=(Field("result", _RESULT, required=False),),
            ask=execution.carry_out,
            absorb=execution.keep_work,
            reply=ExecutionReply,
            example={
                "answer": "Requests, Beautiful Soup, Scrapy, Playwright.",
                "confidence": 0.9,
                "steps": ["Both can drive a browser.", "Python has more tools for the rest."],
                "conclusion": "Python",
                "code": "sum(range(10))",
            },
            read=execution.read_work,
            value=dict[str, Any],
            hears_failures=True,
        ),
        Stage(
            "quality_evaluation",
            ("query_conversion", "task_execution", "iteration_decision"),
            description="Decide whether the result may be built upon.",
            guidance="Accept what does the task soundly, reject the rest and say why. What is rejected is not "
            "used again. Go on to the next task, or to the decision after the last.",
            fields=(Field("quality", _QUALITY),),
            ask=quality.ask_quality,
            absorb=quality.keep_quality,
            reply=QualityReply,
            example={"quality": "ACCEPTED", "reason": "Complete, and what is uncertain is marked."},
            hears_failures=True,
        ),
        Stage(
            "iteration_decision",
            ("complexity_analysis", "plan_generation", "synthesis"),
            description="Decide whether to go on.",
            guidance="Go on if aspects are open, results raised new questions, or errors need correction; "
            "say what to focus on.",
            fields=(Field("continue_iterations", _CONTINUE, required=False),),
            ask=finishing.ask_decision,
            absorb=finishing.decide,
            reply=DecisionReply,
            example={
                "continue_iterations": False,
                "quality_summary": "Both languages are covered.",
                "decision_rationale": "The comparison rests on accepted results.",
                "recommendations_for_next_iteration": "",
            },
        ),
        Stage(
            "synthesis",
            ("focused_answer", "final_response"),
            description="Bring all accepted results together.",
            guidance="Answer from accepted results of all iterations and nothing else; name the key findings.",
            fields=(Field("key_findings", _FINDINGS, required=False),),
            ask=finishing.ask_synthesis,
            absorb=finishing.synthesize,
            reply=SynthesisReply,
            example={
                "answer": "Both can do it; Python has more tools, JavaScript is the browser's own language.",
                "key_findings": ["Python: Scrapy and Playwright", "JavaScript: Puppeteer and Playwright"],
                "final_answer": "Python, unless the rest of the project is JavaScript.",
                "title": "Python or JavaScript for web scraping",
                "headline": "Python is the safer choice",
                "image_caption": "Two spiders at work on one web",
            },
            read=finishing.read_synthesis,
            hears_failures=True,
        ),
        Stage(
            "focused_answer",
            ("final_response",),
            description="Put the answer into one value.",
            guidance="Give exactly one of the allowed words, or a number, and nothing else.",
            fields=(Field("value", _VALUE),),
            ask=finishing.ask_focus,
            absorb=finishing.focus,
            reply=FocusReply,
            example={"value": "Python"},
            read=finishing.read_focus,
            value=str | int | float,
            hears_failures=True,
        ),
        Stage(
            "final_response",
            description="Give the answer.",
            guidance="State the focused value alone if there is one, else the final answer.",
        ),
    ),
)
