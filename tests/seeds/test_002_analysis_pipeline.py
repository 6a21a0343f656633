"""Seed 002, "Pipeline Stage Overview" and on: what it says, quoted, and that it is so."""

import json
from typing import Any

import msgspec
import pytest

from reasonry import Result, solve_sync
from reasonry.blocks.toolcard import ToolCard
from reasonry.core.effects import CallTool
from reasonry.core.events import Failed, Usage
from reasonry.core.registry import resolve
from reasonry.models.scripted import ScriptedModel
from reasonry.strategies import STRATEGIES
from reasonry.strategies.analysis.forms import MAX_TASKS, TASKS
from reasonry.strategies.analysis.state import BUILT_IN
from reasonry.surfaces.run_report import markdown_page, outline

from ..engine.playing import CountingModel
from ..strategies.analysing import QUERY, USUAL, analyse, asked, plan, scores, statuses
from ..strategies.walking import in_order, walk

PIPELINE = resolve("pipeline", STRATEGIES)
REJECTED = {"quality": "REJECTED", "reason": "unsupported"}
ON = {
    "continue_iterations": True,
    "quality_summary": "speed was not addressed",
    "decision_rationale": "a gap",
    "recommendations_for_next_iteration": "measure speed",
}


WEB_SCRAPER: list[tuple[str, Any]] = [
    (
        "complexity_analysis",
        {
            "complexity_level": "moderate",
            "dimensions": ["Language features", "Library ecosystem", "Performance", "Ease of use"],
            "key_challenges": ["Both are good at it"],
            "sequential_dependencies": ["Knowledge before comparison"],
            "iteration_strategy": "One pass",
        },
    ),
    (
        "plan_generation",
        plan("Compare libraries", "Analyze syntax", ("logic_kernel", "Evaluate performance")),
    ),
    (
        "plan_generation",
        plan("Knowledge on Python", "Knowledge on JavaScript", ("logic_kernel", "Recommend")),
    ),
    ("plan_generation", plan("Deep dive Python", "Deep dive JavaScript", ("logic_kernel", "Side-by-side"))),
    ("plan_evaluation", scores(78, 85, 72)),
    ("task_execution", {"answer": "Requests, Scrapy, Playwright.", "confidence": 0.9}),
    ("quality_evaluation", {"quality": "ACCEPTED", "reason": "complete"}),
    ("task_execution", {"answer": "Puppeteer, Cheerio, Playwright.", "confidence": 0.9}),
    ("quality_evaluation", {"quality": "ACCEPTED", "reason": "complete"}),
    (
        "task_execution",
        {"steps": ["Both drive a browser.", "Python has more tools."], "conclusion": "Python"},
    ),
    ("quality_evaluation", {"quality": "ACCEPTED", "reason": "follows"}),
    (
        "iteration_decision",
        {
            "continue_iterations": False,
            "quality_summary": "Good coverage of both languages",
            "decision_rationale": "Proceed to synthesis",
            "recommendations_for_next_iteration": "",
        },
    ),
    (
        "synthesis",
        {
            "answer": "Both can do it; Python has more tools.",
            "key_findings": ["Python: Scrapy", "JavaScript: Puppeteer"],
            "final_answer": "Use Python.",
            "title": "Python or JavaScript",
            "headline": "Python leads",
            "image_caption": "Two spiders at one web",
        },
    ),
    ("focused_answer", "The answer recommends it.\n\n<answer>Python</answer>"),
]
"""The seed's own example, "Is Python or JavaScript better for building a web scraper?", reply by reply."""


def seed_example(**options: Any) -> Any:
    replies = in_order(*(said for _, said in WEB_SCRAPER))
    return walk(PIPELINE, QUERY, replies, {"focused_answer_type": "choice: Python | JavaScript", **options})


def test_the_stages_come_in_the_order_of_the_overview() -> None:
    walked = seed_example()
    order = list(dict.fromkeys(stage for edge in walked.edges for stage in edge))
    overview = """problem_reception complexity_analysis plan_generation plan_evaluation task_execution
        quality_evaluation iteration_decision synthesis focused_answer final_response"""
    assert order == overview.split()


@pytest.mark.parametrize(
    ("level", "tasks"),
    [("straightforward", (2, 3)), ("moderate", (3, 4)), ("complex", (4, 5)), ("highly_complex", (5, 6))],
)
def test_level_and_typical_tasks(level: str, tasks: tuple[int, int]) -> None:
    assert TASKS[level] == tasks
    walked = analyse({"complexity_analysis": {**USUAL["complexity_analysis"], "complexity_level": level}})
    assert f"{tasks[0]} to {tasks[1]} tasks" in asked(walked, "plan_generation")[0].text


def test_what_gets_analyzed() -> None:
    walked = analyse()
    prompt = asked(walked, "complexity_analysis")[0].text
    for field in ("dimensions", "key_challenges", "sequential_dependencies", "iteration_strategy"):
        assert field in prompt
        assert walked.conclusion.document["complexity"][field]


def test_errors_from_previous_iterations_what_went_wrong_before() -> None:
    walked = analyse({"quality_evaluation": [REJECTED], "iteration_decision": [ON]})
    first, second = asked(walked, "complexity_analysis")
    assert "unsupported" not in first.text
    assert "unsupported" in second.text


def test_generate_multiple_candidate_plans_1_to_5_default_3() -> None:
    assert len(asked(seed_example(), "plan_generation")) == 3
    schema = {one.name: one for one in msgspec.structs.fields(PIPELINE.options)}
    assert schema["candidate_plans"].default == 3


def test_maximum_tasks_24_per_plan_safety_limit() -> None:
    assert MAX_TASKS == 24
    most = [f"task {n}" for n in range(24)]
    walked = analyse({"plan_generation": plan(*most)})
    assert len(statuses(walked)) == 24
    walked = analyse({"plan_generation": [plan(*most, "one more")]})
    assert len(asked(walked, "plan_generation")) == 2


def test_when_multiple_plans_exist_evaluate_and_select_the_best_one() -> None:
    (together,) = asked(seed_example(), "plan_evaluation")
    assert all(f"Plan {letter}:" in together.text for letter in "ABC")
    assert not asked(analyse(candidate_plans=1), "plan_evaluation")


def test_max_of_the_evaluations_takes_the_first_of_equals() -> None:
    script = {
        "plan_generation": [plan("a"), plan("b"), plan("c")],
        "plan_evaluation": scores(80, 80, 80),
    }
    assert analyse(script, candidate_plans=3).conclusion.document["selected_plan"] == "A"


def test_the_evaluation_criteria() -> None:
    prompt = asked(seed_example(), "plan_evaluation")[0].text
    for criterion in ("right resource", "order", "covered", "carried out"):
        assert criterion in prompt


def test_execute_tasks_sequentially_with_immediate_quality_evaluation() -> None:
    walked = seed_example()
    stages = [one.stage for one in walked.performed]
    start = stages.index("task_execution")
    assert stages[start : start + 6] == ["task_execution", "quality_evaluation"] * 3
    passed = [to for _, to in walked.edges]
    start = passed.index("task_execution")
    assert passed[start : start + 6] == ["task_execution", "quality_evaluation"] * 3


def test_convert_query_to_tool_format_stands_on_the_path_where_a_query_was_converted() -> None:
    tasks = plan("Python", ("search", "scrapers"), ("logic_kernel", "Compare"))
    takes = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    walked = analyse(
        {"plan_generation": tasks}, {"search": [["Scrapy"]]}, tools=(ToolCard("search", "Searches.", takes),)
    )
    done = ["task_execution", "quality_evaluation"]
    passed = [to for _, to in walked.edges]
    start = passed.index("task_execution")
    assert passed[start : start + 7] == [*done, "query_conversion", *done, *done]
    assert statuses(walked) == ["ACCEPTED"] * 3


def test_sequential_execution_sends_requests_one_at_a_time_with_a_prefix_to_be_cached() -> None:
    walked = seed_example()
    assert len({one.system for one in walked.asks}) == 1
    prompts = [one.text for one in asked(walked, "quality_evaluation")]
    history = prompts[0].partition("A task was carried out")[0]
    assert all(prompt.startswith(history) for prompt in prompts)


def test_accepted_write_to_analysis_history_rejected_log_reason_skip_writing_next_task() -> None:
    walked = analyse(
        {
            "plan_generation": plan("first", "second", "third"),
            "knowledge": [
                {"answer": "an accepted finding", "confidence": 1},
                {"answer": "a rejected finding", "confidence": 1},
            ],
            "quality_evaluation": [None, REJECTED],
        }
    )
    assert statuses(walked) == ["ACCEPTED", "REJECTED", "ACCEPTED"]
    third = asked(walked, "task_execution")[2].text
    assert "an accepted finding" in third
    assert "a rejected finding" not in third
    synthesis = asked(walked, "synthesis")[0].text
    assert "an accepted finding" in synthesis
    assert "a rejected finding" not in synthesis
    assert walked.conclusion.document["tasks"][1]["reason"] == "unsupported"


def test_passthrough_tools_receive_task_queries_directly() -> None:
    assert "py_executor" in BUILT_IN
    walked = analyse(
        {"plan_generation": plan(("py_executor", "sum the primes below 100"))},
        {"py_executor": [{"status": "ok", "value": 1060}]},
        tools=(ToolCard("py_executor"),),
    )
    assert not asked(walked, "query_conversion")
    assert "sum the primes below 100" in asked(walked, "task_execution")[0].text


def test_decision_factors() -> None:
    walked = seed_example()
    prompt = asked(walked, "iteration_decision")[0].text
    fields = [
        "continue_iterations",
        "quality_summary",
        "decision_rationale",
        "recommendations_for_next_iteration",
    ]
    for field in fields:
        assert field in prompt
    assert list(walked.conclusion.document["iterations"][0]["decision"]) == fields


def test_max_iterations_is_a_hard_limit_never_exceeded() -> None:
    for most in range(1, 6):
        walked = analyse({"iteration_decision": [ON] * 9}, max_iterations=most)
        assert len(walked.conclusion.document["iterations"]) == most
        assert walked.conclusion.reason == "max_iterations"


def test_min_iterations_before_termination_allowed_if_enforced() -> None:
    given = {"min_iterations": 3, "max_iterations": 4}
    assert len(analyse(**given, enforce_iterations=True).conclusion.document["iterations"]) == 3
    assert len(analyse(**given, enforce_iterations=False).conclusion.document["iterations"]) == 1


def test_execution_retry_limit_max_retries_after_failures_before_giving_up() -> None:
    card = ToolCard("py_executor")
    for limit in (0, 2):
        walked = analyse(
            {"plan_generation": plan(("py_executor", "x"), "y")},
            {"py_executor": [Failed("tool_error", "crashed")] * 9},
            tools=(card,),
            execution_retry_limit=limit,
        )
        assert len([one for one in walked.performed if isinstance(one.effect, CallTool)]) == limit + 1
        assert statuses(walked) == ["FAILED", "ACCEPTED"]


def test_in_iteration_2_the_system_sees_accepted_results_feedback_and_errors() -> None:
    walked = analyse(
        {
            "knowledge": [{"answer": "an accepted finding", "confidence": 1}],
            "quality_evaluation": [None, REJECTED],
            "iteration_decision": [ON],
        }
    )
    for stage in ("complexity_analysis", "plan_generation"):
        prompt = asked(walked, stage)[1].text
        assert "an accepted finding" in prompt
        assert "speed was not addressed" in prompt
        assert "measure speed" in prompt
        assert "unsupported" in prompt


def test_new_plan_generation_in_each_iteration() -> None:
    walked = analyse({"iteration_decision": [ON], "plan_generation": [plan("first"), plan("second")]})
    assert [task["task_query"] for task in walked.conclusion.document["tasks"]] == ["first", "second"]


def test_synthesis_has_query_context_all_accepted_results_complexity_and_feedback() -> None:
    walked = analyse(
        {
            "knowledge": [{"answer": f"finding {n}", "confidence": 1} for n in range(4)],
            "iteration_decision": [ON],
        },
        context="for a small team",
    )
    prompt = asked(walked, "synthesis")[0].text
    expected = [
        QUERY,
        "for a small team",
        "Complexity, iteration 1: straightforward",
        "speed was not addressed",
    ]
    for part in [*expected, *(f"finding {n}" for n in range(4))]:
        assert part in prompt


def test_image_caption_if_image_generation_is_enabled() -> None:
    script = {"synthesis": {**USUAL["synthesis"], "image_caption": "a spider"}}
    assert analyse(script).conclusion.document["image_caption"] is None
    assert analyse(script, image=True).conclusion.document["image_caption"] == "a spider"


def test_the_last_stage_only_runs_if_the_type_is_something_other_than_none() -> None:
    assert not asked(analyse(focused_answer_type="none"), "focused_answer")
    assert asked(seed_example(), "focused_answer")


KINDS = (
    """yes/no true/false good/bad high/low accepted/rejected yes/maybe/no good/neutral/bad high/medium/low"""
)


@pytest.mark.parametrize("kind", KINDS.split())
def test_supported_answer_types(kind: str) -> None:
    for word in kind.split("/"):
        walked = analyse({"focused_answer": {"value": word}}, focused_answer_type=kind)
        assert walked.conclusion.answer == word.capitalize()
        assert walked.conclusion.document["focused_answer"] == {"type": kind, "value": word.capitalize()}


def test_number_is_a_numeric_value() -> None:
    walked = analyse({"focused_answer": {"value": 49.9}}, focused_answer_type="number")
    assert json.loads(json.dumps(walked.conclusion.document["focused_answer"]))["value"] == 49.9
    assert walked.conclusion.answer == "49.9"


def test_use_max_iterations_and_cost_limit_to_control_the_trade_off() -> None:
    script = {"iteration_decision": [ON] * 9}
    calls = [len(analyse(script, max_iterations=most).asks) for most in (1, 2, 3)]
    assert calls == sorted(set(calls))
    said = {**USUAL, "task_execution": USUAL["knowledge"], "iteration_decision": ON}
    model = CountingModel(usage=Usage(usd=0.01), reply=lambda question: json.dumps(said[question.stage]))
    options = {"cost_limit": 0.12, "max_iterations": 5, "candidate_plans": 1}
    limited = solve_sync(QUERY, strategy="analysis", model=model, options=options, store="memory")
    assert limited.usage.calls <= 12
    assert limited.termination.reason == "max_usd"
    assert limited.answer == "Python."


def solved(script: list[tuple[str, Any]], **options: Any) -> Result:
    lines = [{"stage": stage, "reply": reply} for stage, reply in script]
    return solve_sync(
        QUERY, strategy="analysis", model=ScriptedModel.of(*lines), options=options, store="memory"
    )


def test_the_web_scraper_as_a_program_with_every_field_that_the_design_names() -> None:
    result = solved(WEB_SCRAPER, focused_answer_type="choice: Python | JavaScript", image=True)
    document = json.loads(json.dumps(result.document()))
    assert (result.answer, result.outcome, result.warnings) == ("Python", "answered", ())
    assert document["complexity"] == {**WEB_SCRAPER[0][1], "suggested_tasks": "3-4"}
    assert [(one["plan"], one["overall_score"]) for one in document["plans"]] == [
        ("A", 78),
        ("B", 85),
        ("C", 72),
    ]
    assert document["plans"][1]["tasks"] == [
        {"resource_name": "knowledge", "task_query": "Knowledge on Python"},
        {"resource_name": "knowledge", "task_query": "Knowledge on JavaScript"},
        {"resource_name": "logic_kernel", "task_query": "Recommend"},
    ]
    assert document["selected_plan"] == document["iterations"][0]["selected_plan"] == "B"
    given = [(task["resource_name"], task["task_query"], task["status"]) for task in document["tasks"]]
    chosen = [(*task.values(), "ACCEPTED") for task in document["plans"][1]["tasks"]]
    assert given == chosen
    assert document["iterations"][0]["decision"] == WEB_SCRAPER[11][1]
    made = WEB_SCRAPER[12][1]
    assert document["synthesis"] == {name: made[name] for name in ("answer", "key_findings")}
    for name in ("final_answer", "title", "headline", "image_caption"):
        assert document[name] == made[name]
    assert document["focused_answer"] == {"type": "choice: Python | JavaScript", "value": "Python"}
    report = markdown_page(outline(result.document()))
    assert "Complexity: moderate" in report
    assert "Suggested tasks: 3-4" in report
    assert "Plan B · 85/100 · selected" in report


@pytest.mark.parametrize(
    "evaluations",
    [[{"plan": name, "overall_score": 101} for name in "ABC"], [], {"nothing": "of the kind"}],
    ids=["all out of range", "none", "no list"],
)
def test_scores_that_are_all_lost_are_in_the_warnings(evaluations: object) -> None:
    said = [("plan_evaluation", {"evaluations": evaluations})] * 2
    result = solved([*WEB_SCRAPER[:4], *said, *WEB_SCRAPER[5:13]])
    assert [one["overall_score"] for one in result.document()["plans"]] == [None, None, None]
    (warning,) = result.warnings
    assert warning.startswith("no plan has a score, so plan A was selected: ")
    assert warning == result.document()["diagnostics"]["warnings"][0]


def test_a_score_that_is_missing_is_lost_alone_and_the_warnings_say_so() -> None:
    """`best_eval = max(evaluation.evaluations, key=lambda e: e.overall_score)`."""
    evaluations = [{"plan": "A", "overall_score": 50}, {"plan": "B", "overall_score": 101}]
    evaluations.append({"plan": "C", "overall_score": 90})
    said = [("plan_evaluation", {"evaluations": evaluations})] * 2
    result = solved([*WEB_SCRAPER[:4], *said, *WEB_SCRAPER[5:13]])
    assert [one["overall_score"] for one in result.document()["plans"]] == [50, None, 90]
    assert result.document()["selected_plan"] == "C"
    assert result.warnings == (
        "a reply was taken in part: plan_evaluation: evaluations[2] was left out: `overall_score`: 101 is not from 0 "
        "to 100; give each of the plans A, B, C one score, not A, C",
    )


def test_a_task_that_cannot_be_carried_out_is_lost_alone_and_the_warnings_say_so() -> None:
    given = [("knowledge", "Compare libraries"), ("web_search", "Look it up"), ("knowledge", " ")]
    broken = plan(*given, ("logic_kernel", "Recommend"), ("knowledge", "Phrase it"))
    script = [WEB_SCRAPER[0], ("plan_generation", broken), ("plan_generation", broken), *WEB_SCRAPER[5:7]]
    script += [*WEB_SCRAPER[9:11], *WEB_SCRAPER[5:7], *WEB_SCRAPER[11:13]]
    result = solved(script, candidate_plans=1)
    tasks = [task["task_query"] for task in result.document()["tasks"]]
    assert tasks == ["Compare libraries", "Recommend", "Phrase it"]
    (warning,) = result.warnings
    assert warning.startswith(
        "a reply was taken in part: plan_generation: task 2: there is no tool 'web_search'; the tools are: knowledge"
    )
    assert "; task 3: its task_query is empty" in warning
