"""Analysis: rate the complexity of a query, plan, execute, judge, synthesize, and reduce the answer to one value.

The design is seed 002, "Pipeline Stage Overview", an earlier design of this project.

Algorithm, for a query q, with the analysis history H:

    level, dimensions, order ← Complexity(q, H, setbacks)              complexity_analysis
    P_1 … P_k ← Plan(q, H), in parallel                                plan_generation
    P ← argmax_i score(P_i), in one question; the first wins a tie     plan_evaluation
    for each task t of P, in order:
        x ← t, written as the input of a tool (only for tools)         query_conversion
        r ← resource(x); after an error, retry up to the limit         task_execution
        H ← H + r if r is ACCEPTED; otherwise r is dropped             quality_evaluation
    repeat from the first line, or stop                                iteration_decision
    findings, answer ← Synthesis(q, H)                                 synthesis
    one allowed value ← Focus(answer)                                  focused_answer

*Differences from the seed, and answers to its open points.* If a plan has too many or too few tasks for the complexity,
the model plans again. If the complexity is unknown, a plan has 2 to 6 tasks. A task of a built-in resource needs no
conversion. Small documents are shown in full and not searched; planners see only the beginnings of large documents.
Questions show results as text. A new iteration begins with the first stage, not with planning. A focused answer may
also be a `choice: A | B | …`, which the seed's own example needs. Tasks run one after another, as in the seed. With
`concurrent_tasks`, independent tasks run in parallel, and a failed tool call gets a new input after the other tasks. A
task fails after its last retry. If no plan is usable, the run ends with the results of earlier iterations. If no result
is accepted, the run fails. A run always passes the iteration decision before it ends, but a settled decision needs no
question. A verifier checks the focused value, or the answer if there is no value. If it refutes a value or an answer,
the model sees the reason and answers again. If no reply is readable, the run continues with unknown complexity, without
more iterations, with the accepted results as synthesis, or with the final answer (if legal) as unchecked focused value.
"""

from typing import Any

from ...blocks.programs import SANDBOX_TOOL
from ...core.strategy import SHORT_REPLY, Field, Stage, Strategy, final_response, problem_reception
from . import finishing, forms, planning, tasks
from .state import CHECKER, RETRIEVER, Options, State

__all__ = ["ANALYSIS"]

_QUALITY = {"enum": ["ACCEPTED", "REJECTED"], "description": "Whether later work may build on it."}

ANALYSIS: Strategy[State, Options] = Strategy(
    name="analysis",
    title="Analysis pipeline",
    source="this project",
    summary="Plans, executes and judges tasks, then answers in one word if you want: for decisions in programs.",
    aliases=("pipeline",),
    resources=(SANDBOX_TOOL, CHECKER, RETRIEVER),
    suits=("focused_reading",),
    version=4,
    options=Options,
    calls=12,
    least_calls=5,
    state=State,
    conclude=finishing.conclude,
    close=finishing.close,
    details=finishing.AnalysisDetails,
    stages=(
        problem_reception(
            ("complexity_analysis", "plan_generation"),
            "Say what is asked, for whom, and which form of answer is wanted.",
            description="Take in the query.",
            body=planning.receive,
        ),
        Stage(
            "complexity_analysis",
            ("plan_generation",),
            description="Size up the query.",
            guidance="Name its aspects, what is difficult, and what must come before what. In a later iteration "
            "say what was accepted and what went wrong. Answer nothing yet.",
            fields=(
                Field.optional("complexity_level", "any", "How demanding the query is.", enum=[*forms.TASKS]),
            ),
            body=planning.size_up,
            reply=forms.Complexity,
            max_output_tokens=SHORT_REPLY,
            example={
                "complexity_level": "moderate",
                "dimensions": ["language features", "libraries", "speed", "ease of use"],
                "key_challenges": ["it depends on the sites to be read"],
                "sequential_dependencies": ["both languages before the comparison"],
                "iteration_strategy": "one pass, a second one if a language was covered badly",
            },
        ),
        Stage(
            "plan_generation",
            ("plan_evaluation", "query_conversion", "task_execution", "iteration_decision"),
            description="Draft candidate plans.",
            guidance="Draft plans that differ in kind; each task names one resource and what it is to accomplish. "
            "Go on to the evaluation with several plans, to the first task with one.",
            fields=(
                Field.optional(
                    "tasks", "array", "`resource_name` and `task_query` of each.", items={"type": "object"}
                ),
            ),
            body=planning.draft_plans,
            reply=forms.PlanReply,
            example={
                "tasks": [
                    {"resource_name": "knowledge", "task_query": "What Python offers for web scraping"},
                    {"resource_name": "knowledge", "task_query": "What JavaScript offers for web scraping"},
                    {"resource_name": "logic_kernel", "task_query": "Compare the two and recommend one"},
                ]
            },
            read=planning.read_plan,
        ),
        Stage(
            "plan_evaluation",
            ("query_conversion", "task_execution"),
            description="Score the plans and select the best.",
            guidance="Score each from 0 to 100 by resources, order, coverage and feasibility. "
            "Select the highest, the first of equals.",
            fields=(
                Field.optional(
                    "overall_score", "number", "0 is useless, 100 perfect.", minimum=0, maximum=100
                ),
            ),
            body=planning.choose_plan,
            reply=forms.EvaluationReply,
            max_output_tokens=SHORT_REPLY,
            example={
                "evaluations": [
                    {"plan": "A", "reason": "Compares before it knows either side.", "overall_score": 78},
                    {"plan": "B", "reason": "Covers both sides, then compares them.", "overall_score": 85},
                    {"plan": "C", "reason": "Goes deep, but recommends nothing.", "overall_score": 72},
                ]
            },
            read=planning.read_scores,
            value=tuple[forms.PlanScore, ...],
        ),
        Stage(
            "query_conversion",
            ("task_execution", "iteration_decision"),
            description="Write the next task as the input of its resource.",
            guidance="Put in all that the resource needs from accepted results. Only tasks of tools need this stage.",
            fields=(Field.optional("tool_input", "object", "The resource's arguments, by name."),),
            body=tasks.convert,
            reply=forms.ConversionReply,
            max_output_tokens=SHORT_REPLY,
            example={
                "tool_input": {"query": "Python's libraries and habits for web scraping, with their limits"}
            },
            read=tasks.read_input,
            value=dict[str, Any],
        ),
        Stage(
            "task_execution",
            ("quality_evaluation", "query_conversion", "iteration_decision"),
            description="Carry the task out.",
            guidance="Do what the task asks and no more, from accepted results alone. After an error try "
            "another way, within the limit; then leave the task.",
            fields=(Field.optional("result", "any", "What the resource brought, or the error."),),
            body=tasks.execute,
            example={
                "answer": "Requests, Beautiful Soup, Scrapy, Playwright.",
                "confidence": 0.9,
                "steps": ["Both can drive a browser.", "Python has more tools for the rest."],
                "conclusion": "Python",
                "code": "sum(range(10))",
            },
            read=tasks.read_work,
            value=dict[str, Any],
        ),
        Stage(
            "quality_evaluation",
            ("query_conversion", "task_execution", "iteration_decision"),
            description="Decide whether the result may be built upon.",
            guidance="Accept what does the task soundly, reject the rest and say why. What is rejected is not "
            "used again. Go on to the next task, or to the decision after the last.",
            fields=(Field("quality", _QUALITY),),
            body=tasks.judge,
            reply=forms.QualityReply,
            max_output_tokens=SHORT_REPLY,
            example={"reason": "Complete, and what is uncertain is marked.", "quality": "ACCEPTED"},
        ),
        Stage(
            "iteration_decision",
            ("complexity_analysis", "plan_generation", "synthesis"),
            description="Decide whether to continue.",
            guidance="Go on if aspects are open, results raised new questions, or errors need correction; "
            "say what to focus on.",
            fields=(Field.optional("continue_iterations", "boolean", "Whether more work is needed."),),
            body=finishing.decide,
            reply=forms.DecisionReply,
            max_output_tokens=SHORT_REPLY,
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
            fields=(Field.optional("key_findings", "texts", "What was found, one finding each."),),
            body=finishing.synthesize,
            reply=forms.SynthesisReply,
            example={
                "answer": "Both can do it; Python has more tools, JavaScript is the browser's own language.",
                "key_findings": ["Python: Scrapy and Playwright", "JavaScript: Puppeteer and Playwright"],
                "final_answer": "Python, unless the rest of the project is JavaScript.",
                "title": "Python or JavaScript for web scraping",
                "headline": "Python is the safer choice",
                "image_caption": "Two spiders at work on one web",
            },
            read=finishing.read_synthesis,
        ),
        Stage(
            "focused_answer",
            ("final_response",),
            description="Put the answer into one value.",
            guidance="Give exactly one of the allowed words, or a number, and nothing else.",
            fields=(Field("value", {"description": "One of the allowed words, or a number."}),),
            body=finishing.focus,
            reply=forms.FocusReply,
            example={"reason": "The answer recommends Python.", "value": "Python"},
            read=finishing.read_focus,
            value=str | int | float,
        ),
        final_response("State the focused value alone if there is one, else the final answer."),
    ),
)
