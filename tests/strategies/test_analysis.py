"""The analysis pipeline: every rule of every stage, played through."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.blocks.programs import WHERE_IT_RUNS
from reasonry.blocks.toolcard import ToolCard
from reasonry.core.effects import CallTool, Verify
from reasonry.core.events import UNREADABLE, Failed, Verified
from reasonry.core.machine import begin, open_effects
from reasonry.core.options import read_options
from reasonry.core.readings import Unreadable
from reasonry.errors import UsageError
from reasonry.reading.form import read_form
from reasonry.strategies.analysis import ANALYSIS
from reasonry.strategies.analysis.focus import WORDS, focus_of
from reasonry.strategies.analysis.forms import TASKS
from reasonry.strategies.analysis.tasks import REPLIES

from ..playing import advance
from .analysing import QUERY, USUAL, Desk, analyse, asked, plan, scores, statuses
from .walking import walk

REJECTED = {"quality": "REJECTED", "reason": "made up"}
ACCEPTED = {"quality": "ACCEPTED", "reason": "sound"}
ON = {**USUAL["iteration_decision"], "continue_iterations": True, "quality_summary": "speed is still open"}
OFF = USUAL["iteration_decision"]
CODE_TOOL = ToolCard("py_executor", "Monty, no imports.")
CHECKER = ToolCard(
    "check_claim", "Checks a claim.", {"type": "object", "properties": {"claim": {"type": "string"}}}
)
SEARCH = ToolCard(
    "search",
    "Searches.",
    {"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}, "required": ["q"]},
)


# -- stage 1


def test_without_a_readable_complexity_the_run_goes_on_as_without_the_stage() -> None:
    walked = analyse({"complexity_analysis": [Failed(UNREADABLE, "no JSON object was found in it")]})
    assert walked.snapshot.status == "done"
    assert walked.conclusion.document["complexity"] is None
    assert walked.thoughts[0].text == "The complexity is unknown: no JSON object was found in it"
    down = analyse({"complexity_analysis": [Failed("provider_error", "down")]})
    assert (down.snapshot.status, down.snapshot.error) == ("failed", "provider_error")


# -- stage 2


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (
            plan(("web", "look")),
            "there is no tool 'web'; the tools are: knowledge, logic_kernel",
        ),
        (plan(), "tasks"),
        (plan("  "), "task_query is empty"),
        (plan(("knowledge", "x", [1])), "earlier tasks only"),
        ("no JSON at all", "No JSON object"),
    ],
)
def test_a_plan_that_cannot_be_used_is_asked_for_again_with_the_reason_and_then_dropped(
    broken: Any, reason: str
) -> None:
    walked = analyse({"plan_generation": [broken]})
    assert reason in asked(walked, "plan_generation")[1].text
    assert walked.snapshot.status == "done"

    good = plan("only this one")
    walked = analyse({"plan_generation": [broken, broken, broken, good]}, candidate_plans=2)
    assert walked.snapshot.status == "done"
    document = walked.conclusion.document
    assert [task["task_query"] for task in document["tasks"]] == ["only this one"]
    assert len(document["diagnostics"]["dropped_plans"]) == 1
    assert not asked(walked, "plan_evaluation"), "one plan is left: nothing to choose from"


def test_tasks_after_one_that_a_plan_has_lost_still_depend_on_the_same_tasks() -> None:
    broken = plan(
        "a",
        ("web", "b", [1]),
        ("logic_kernel", "c", [1, 2]),
        ("knowledge", "d", [3]),
        ("knowledge", "e", [9]),
    )
    walked = analyse({"plan_generation": [broken, broken]}, candidate_plans=1, concurrent_tasks=True)
    tasks = [(task.task_query, task.depends_on) for task in walked.snapshot.state.tasks]
    assert tasks == [("a", ()), ("c", (1,)), ("d", (2,))]


@pytest.mark.parametrize("malformed", [{"resource_name": "web"}, "Search the web."])
@pytest.mark.parametrize("name", ["tasks", "Tasks"])
def test_tasks_after_a_malformed_one_still_depend_on_the_same_tasks(name: str, malformed: Any) -> None:
    first, *rest = plan("a", ("knowledge", "c", [1, 2]), ("web", "d", [3]), ("knowledge", "e", [3]))["tasks"]
    broken = {name: [first, malformed, *rest]}
    walked = analyse({"plan_generation": [broken, broken]}, candidate_plans=1, concurrent_tasks=True)
    tasks = [(task.task_query, task.depends_on) for task in walked.snapshot.state.tasks]
    assert tasks == [("a", ()), ("c", (1,)), ("e", (2,))]


@pytest.mark.parametrize(("level", "least", "most"), [(level, *counts) for level, counts in TASKS.items()])
def test_a_plan_has_as_many_tasks_as_its_level_says(level: str, least: int, most: int) -> None:
    complexity = {**USUAL["complexity_analysis"], "complexity_level": level}
    for count in range(1, 8):
        told = plan(*(f"task {n}" for n in range(count)))
        good = plan(*(f"task {n}" for n in range(least)))
        script = {"complexity_analysis": complexity, "plan_generation": [told, good]}
        walked = analyse(script, enforce_task_counts=True)
        first, *again = asked(walked, "plan_generation")
        assert bool(again) is not (least <= count <= most)
        assert len(statuses(walked)) == (least if again else count)
        if again:
            tasks = "1 task" if count == 1 else f"{count} tasks"
            assert f"The plan has {tasks}; a {level} query has {least} to {most}" in again[0].text
        assert f"{least} to {most} tasks" in first.text


def test_a_plan_that_keeps_its_number_of_tasks_is_carried_out_at_the_last_try() -> None:
    complexity = {**USUAL["complexity_analysis"], "complexity_level": "highly_complex"}
    script = {
        "complexity_analysis": complexity,
        "plan_generation": [plan("one"), plan("alone"), plan("alone")],
    }
    walked = analyse(script, enforce_task_counts=True)
    assert walked.snapshot.status == "done"
    assert len(asked(walked, "plan_generation")) == 3
    assert [task["task_query"] for task in walked.conclusion.document["tasks"]] == ["alone"]


def test_without_any_plan_the_run_fails_and_says_so() -> None:
    walked = analyse({"plan_generation": [plan(("web", "x"))] * 9}, candidate_plans=3)
    assert (walked.snapshot.status, walked.conclusion.reason) == ("failed", "no_plan")
    assert walked.snapshot.error == "output_invalid"
    assert "there is no tool 'web'" in walked.conclusion.detail


def test_without_a_plan_in_a_later_iteration_what_was_accepted_is_brought_together() -> None:
    broken = [plan(("web", "x"))] * 3
    walked = analyse({"plan_generation": [None, *broken], "iteration_decision": [ON]})
    assert (walked.snapshot.status, walked.conclusion.reason) == ("done", "no_plan")
    assert walked.conclusion.answer == "Python."


# -- stage 3


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (scores(50), "Give each of the plans A, B one score"),
        ({"evaluations": scores(50)["evaluations"] * 2}, "Give each of the plans A, B one score"),
        ({"evaluations": [{"plan": "Z", "overall_score": 1}]}, "Give each of the plans A, B one score"),
        (scores(50, 101), "101"),
    ],
)
def test_an_evaluation_that_leaves_a_plan_out_is_asked_for_again_with_the_reason(
    said: Any, reason: str
) -> None:
    script = {"plan_generation": [plan("a"), plan("b")], "plan_evaluation": [said, scores(1, 2)]}
    walked = analyse(script, candidate_plans=2)
    assert reason in asked(walked, "plan_evaluation")[1].text
    assert walked.conclusion.document["selected_plan"] == "B"


def test_a_plan_keeps_its_letter_where_another_could_not_be_used() -> None:
    unusable = plan(("nobody", "x"))
    script = {
        "plan_generation": [unusable, unusable, plan("b"), plan("c")],
        "plan_evaluation": {"evaluations": [{"plan": name, "overall_score": 9} for name in "BC"]},
    }
    walked = analyse(script, candidate_plans=3)
    document = walked.conclusion.document
    assert [(one["plan"], one["id"]) for one in document["plans"]] == [
        ("B", "iteration-1/plan-B"),
        ("C", "iteration-1/plan-C"),
    ]
    assert (document["selected_plan"], document["iterations"][0]["selected_plan"]) == ("B", "B")
    told = {thought.branch: thought.text for thought in walked.thoughts}
    assert told["plan-1.B"].startswith("Plan B: 9/100")
    (question,) = asked(walked, "plan_evaluation")
    assert "Plan B:" in question.text
    assert "Plan A" not in question.text


# -- stage 4


def test_a_rejected_result_appears_in_no_later_prompt_and_not_in_the_answer() -> None:
    secret = "Scrapy was written by Grace Hopper"
    walked = analyse(
        {
            "knowledge": [{"answer": secret, "confidence": 1}],
            "quality_evaluation": [
                {"quality": "REJECTED", "reason": "It is made up."},
                None,
            ],
            "iteration_decision": [ON],
        }
    )
    assert statuses(walked) == ["REJECTED", "ACCEPTED", "ACCEPTED", "ACCEPTED"]
    judged = next(n for n, one in enumerate(walked.asks) if secret in one.text)
    assert [n for n, one in enumerate(walked.asks) if secret in one.text] == [judged]
    assert secret not in json.dumps([one.facts for one in walked.asks[judged + 1 :]])
    assert "It is made up." in asked(walked, "complexity_analysis")[1].text
    assert "made up" not in asked(walked, "synthesis")[0].text
    assert walked.conclusion.document["tasks"][0]["result"]["answer"] == secret, (
        "kept for people, in the document"
    )


@pytest.mark.parametrize(
    "crash",
    [
        Failed("tool_error", "NameError: name 'x' is not defined"),
        {"status": "error", "value": None, "stdout": "", "error": "NameError: name 'x' is not defined"},
    ],
)
def test_code_that_fails_is_shown_to_the_model_which_may_correct_it(crash: Any) -> None:
    script = {
        "plan_generation": plan(("py_executor", "compute")),
        "py_executor": [{"code": "x"}, {"code": "x = 1\nx"}],
    }
    walked = analyse(script, {"py_executor": [crash, {"status": "ok", "value": 1}]}, tools=(CODE_TOOL,))
    _, second = asked(walked, "task_execution")
    assert "The last program was:\nx\n" in second.text
    assert "NameError: name 'x' is not defined" in second.text
    assert statuses(walked) == ["ACCEPTED"]

    walked = analyse(script, {"py_executor": [crash]}, tools=(CODE_TOOL,), execution_retry_limit=0)
    assert statuses(walked) == ["FAILED"]


def test_a_tool_gets_an_input_that_fits_it_and_the_error_when_it_fails() -> None:
    walked = analyse(
        {
            "plan_generation": plan(("search", "find Scrapy")),
            "query_conversion": [
                {"tool_input": {"n": 3}},
                {"tool_input": {"q": "Scrapy", "n": "3"}},
                {"tool_input": "Scrapy docs"},
            ],
        },
        {"search": [Failed("tool_error", "quota"), ["a hit"]]},
        tools=(SEARCH,),
    )
    asks = asked(walked, "query_conversion")
    assert "Tool_input.q is missing" in asks[1].text
    assert "- quota" in asks[2].text
    calls = [one.effect for one in walked.performed if isinstance(one.effect, CallTool)]
    assert [call.arguments for call in calls] == [{"q": "Scrapy", "n": 3}, {"q": "Scrapy docs"}]
    assert {(call.tool, call.about) for call in calls} == {("search", "iteration-1/task-1")}
    assert ("task_execution", "query_conversion") in walked.edges
    assert walked.conclusion.document["tasks"][0]["result"] == ["a hit"]


def test_an_unreadable_conversion_or_reply_is_a_failed_attempt_and_the_next_task_runs() -> None:
    nonsense = [{"nonsense": 1}] * 3
    walked = analyse(
        {"plan_generation": plan(("search", "a"), "b"), "query_conversion": nonsense},
        tools=(SEARCH,),
        execution_retry_limit=0,
    )
    assert statuses(walked) == ["FAILED", "ACCEPTED"]
    walked = analyse({"knowledge": nonsense}, execution_retry_limit=0)
    assert statuses(walked) == ["FAILED", "ACCEPTED"]


def test_no_verdict_is_no_acceptance() -> None:
    walked = analyse({"quality_evaluation": [{"quality": "FINE"}] * 3})
    assert statuses(walked) == ["REJECTED", "ACCEPTED"]
    assert "no verdict" in walked.conclusion.document["tasks"][0]["reason"]


def test_a_formal_claim_is_checked_where_there_is_a_checker() -> None:
    claimed = {**USUAL["logic_kernel"], "formal_claim": "x > 1 -> x > 0"}
    script = {"plan_generation": plan(("logic_kernel", "deduce")), "logic_kernel": [claimed]}
    walked = analyse(script, {"check_claim": [{"verdict": "proved"}]}, tools=(CHECKER,))
    assert CallTool("check_claim", {"claim": "x > 1 -> x > 0"}, "iteration-1/task-1") in [
        one.effect for one in walked.performed
    ]
    assert '"claim": "(> (* x x) 4)"' in asked(walked, "task_execution")[0].text, "an example, no schema"
    assert walked.conclusion.document["tasks"][0]["result"] == {**claimed, "check": {"verdict": "proved"}}

    script = {"plan_generation": plan(("logic_kernel", "deduce")), "logic_kernel": [claimed]}
    walked = analyse(script, {"check_claim": [Failed("tool_timeout", "took too long")]}, tools=(CHECKER,))
    check = walked.conclusion.document["tasks"][0]["result"]["check"]
    assert check == {"verdict": "unknown", "detail": "took too long"}
    judged = asked(walked, "quality_evaluation")[0].text
    assert "took too long" not in judged, "a check that failed says nothing of the deduction"

    walked = analyse({"plan_generation": plan(("logic_kernel", "deduce")), "logic_kernel": [claimed]})
    assert not [one for one in walked.performed if isinstance(one.effect, CallTool)]


SMALL = {
    "documents": [{"source": "notes.md", "characters": 15, "begins": "Scrapy is fast."}],
    "passages": [{"source": "notes.md", "text": "Scrapy is fast.", "line": 3}],
}


def test_small_documents_are_shown_instead_of_searched_and_planners_see_them() -> None:
    walked = analyse(
        {"plan_generation": plan("What is in the files?", ("logic_kernel", "So what?"))},
        {"overview": [SMALL]},
        tools=(ToolCard("search_documents"),),
    )
    calls = [one.effect for one in walked.performed if isinstance(one.effect, CallTool)]
    assert calls == [CallTool("search_documents", {"query": QUERY, "overview": True})]
    shown = "[1] (notes.md, line 3) Scrapy is fast."
    seen = [one.facts["kind"] for one in walked.asks if shown in one.text]
    assert seen == ["complexity", "plan", "perform", "quality"], "not the deduction, and not the history"
    assert walked.conclusion.document["tasks"][0]["result"]["passages"] == SMALL["passages"]


def test_planners_see_how_large_documents_begin_and_those_are_searched() -> None:
    found = {"passages": [{"source": "long.md", "text": "Deep inside.", "line": 900, "score": 8e-06}]}
    overview = {"documents": [{"source": "long.md", "characters": 90_000, "begins": "# All about scrapers"}]}
    walked = analyse(
        {"plan_generation": plan("What is in the files?")},
        {"overview": [overview], "search_documents": [found]},
        tools=(ToolCard("search_documents"),),
    )
    for stage in ("complexity_analysis", "plan_generation"):
        assert "long.md (90000 characters): # All about scrapers" in asked(walked, stage)[0].text
    assert "[1] (long.md, line 900) Deep inside." in asked(walked, "task_execution")[0].text


def test_questions_show_results_as_text_and_not_as_json() -> None:
    walked = analyse(
        {
            "plan_generation": plan("a", ("logic_kernel", "b"), ("py_executor", "c"), ("search", "d")),
            "logic_kernel": {"steps": ["A holds", "so B holds"], "conclusion": "B", "formal_claim": "(p)"},
            "query_conversion": [{"tool_input": {"q": "x"}}],
        },
        {
            "py_executor": [{"status": "ok", "value": 42}],
            "search": [{"hits": [{"title": "one\ntwo", "n": 1}, "three"], "more": None}],
            "check_claim": [{"verdict": "proved"}],
        },
        tools=(CODE_TOOL, SEARCH, CHECKER),
    )
    prompt = asked(walked, "synthesis")[0].text
    for text in (
        "It can do much.\nConfidence: 0.9",
        "A holds\nso B holds\nConclusion: B\nFormal claim: (p)\nCheck of the claim: verdict: proved",
        "Program:\n6 * 7\nOutput: status: ok\nvalue: 42",
        "hits: \n  - title: one\ntwo\n    n: 1\n  - three\nmore: null",
    ):
        assert text in prompt
    assert '{"' not in prompt.rpartition("Now bring all")[0]


def test_a_result_of_ten_megabytes_is_cut() -> None:
    walked = analyse(
        {"plan_generation": plan(("search", "a"), "b"), "query_conversion": [{"tool_input": {"q": "x"}}]},
        {"search": ["x" * 10_000_000]},
        tools=(SEARCH,),
    )
    assert max(len(one.text) for one in walked.asks) < 30_000


def test_programs_are_planned_only_where_they_can_be_run() -> None:
    walked = analyse({"plan_generation": [plan(("py_executor", "x"))]})
    assert "there is no tool 'py_executor'" in asked(walked, "plan_generation")[1].text
    assert WHERE_IT_RUNS in asked(analyse(tools=(CODE_TOOL,)), "plan_generation")[0].text
    gone = Failed("sandbox_unavailable", "no sandbox can be used here")
    walked = analyse(
        {"plan_generation": plan(("py_executor", "x"), "y")},
        {"py_executor": [gone]},
        tools=(CODE_TOOL,),
        execution_retry_limit=3,
    )
    assert statuses(walked) == ["FAILED", "ACCEPTED"]
    assert walked.conclusion.document["tasks"][0]["errors"] == [gone.message]


# -- tasks side by side


def waves(walked_plan: dict[str, Any], **options: Any) -> list[tuple[str, int]]:
    desk = Desk({"plan_generation": walked_plan})
    given = {"candidate_plans": 1, "complexity_analysis": False, **options}
    step = begin(ANALYSIS, QUERY, read_options(ANALYSIS, given))
    rounds: list[tuple[str, int]] = []
    while waiting := open_effects(step.snapshot):
        rounds.append((waiting[0].stage, len(waiting)))
        for one in waiting:
            step = advance(ANALYSIS, step.snapshot, one.id, desk.answer(one))
    return rounds


def test_concurrent_tasks_run_side_by_side_unless_one_needs_another() -> None:
    given = plan("a", "b", ("logic_kernel", "compare", [1, 2]))
    two = ["task_execution", "quality_evaluation"]
    together = waves(given, concurrent_tasks=True)[1:5]
    assert together == [*((stage, 2) for stage in two), *((stage, 1) for stage in two)]
    alone = waves(given)[1:7]
    assert alone == [(stage, 1) for stage in two] * 3


# -- stage 5


@pytest.mark.parametrize(
    ("mode", "fewest", "most"), [("quick", 1, 2), ("balanced", 2, 3), ("thorough", 3, 4), ("research", 4, 5)]
)
def test_a_mode_presets_the_iterations(mode: str, fewest: int, most: int) -> None:
    walked = analyse(mode=mode, enforce_iterations=True)
    assert len(walked.conclusion.document["iterations"]) == fewest
    walked = analyse({"iteration_decision": [ON] * 9}, mode=mode)
    assert len(walked.conclusion.document["iterations"]) == most
    walked = analyse({"iteration_decision": [ON] * 9}, mode=mode, max_iterations=1)
    assert len(walked.conclusion.document["iterations"]) == 1, "what is given goes before the preset"


def test_with_all_tasks_rejected_nothing_is_answered() -> None:
    walked = analyse({"quality_evaluation": [REJECTED] * 9})
    assert (walked.snapshot.status, walked.conclusion.reason) == ("failed", "nothing_accepted")
    assert walked.conclusion.answer is None
    assert not asked(walked, "synthesis")

    walked = analyse({"quality_evaluation": [REJECTED] * 2, "iteration_decision": [ON]})
    assert (walked.snapshot.status, statuses(walked)) == ("done", ["REJECTED"] * 2 + ["ACCEPTED"] * 2)


# -- stage 6


def test_an_unreadable_synthesis_is_never_passed_on_the_accepted_results_stand_in_unchecked() -> None:
    walked = analyse({"synthesis": [""] * 3})
    assert walked.snapshot.status == "done"
    assert "What can Python do?\nIt can do much." in walked.conclusion.answer
    assert walked.conclusion.document["verification"] == "unchecked"
    assert "could not be read" in walked.conclusion.document["unchecked"]
    down = analyse({"synthesis": [Failed("provider_error", "down")]})
    assert (down.snapshot.status, down.snapshot.error) == ("failed", "provider_error")


def test_a_synthesis_is_reasoning_with_its_answer_and_what_stands_beside_it_in_marks() -> None:
    text = """Python has more tools, and they are older.
<key_findings>
- Python has Scrapy
- both can drive a browser
</key_findings>
<title>Scrapers</title>
<headline>Python leads</headline>
<image_caption>A spider</image_caption>
<answer>
<title>Kept</title> Python!
</answer>"""
    walked = analyse({"synthesis": [text]}, image=True)
    document = walked.conclusion.document
    assert walked.conclusion.answer == document["final_answer"] == "<title>Kept</title> Python!"
    assert document["synthesis"] == {
        "answer": "Python has more tools, and they are older.",
        "key_findings": ["Python has Scrapy", "both can drive a browser"],
    }
    assert (document["title"], document["headline"], document["image_caption"]) == (
        "Scrapers",
        "Python leads",
        "A spider",
    )


def test_a_result_judged_by_whoever_brought_it_is_not_judged_again() -> None:
    known = {"answer": "It can do much.", "confidence": 0.9, "quality": "rejected", "reason": "a guess"}
    walked = analyse({"knowledge": [known, {**known, "quality": "ACCEPTED"}]}, judge_own_results=True)
    rejected, accepted, *_ = walked.conclusion.document["tasks"]
    assert (rejected["status"], rejected["reason"], accepted["status"]) == ("REJECTED", "a guess", "ACCEPTED")
    assert accepted["result"] == {"answer": "It can do much.", "confidence": 0.9}
    assert not asked(walked, "quality_evaluation")


def test_an_unreadable_decision_ends_the_work_unchecked() -> None:
    walked = analyse({"iteration_decision": ["Hm."] * 3})
    assert (walked.snapshot.status, walked.conclusion.reason, walked.conclusion.answer) == (
        "done",
        "success",
        "Python.",
    )
    assert "whether to go on" in walked.conclusion.document["unchecked"]
    nothing = analyse({"iteration_decision": ["Hm."] * 3, "quality_evaluation": [REJECTED] * 9})
    assert (nothing.snapshot.status, nothing.snapshot.error) == ("failed", "output_invalid")
    down = analyse({"iteration_decision": [Failed("provider_error", "down")]})
    assert (down.snapshot.status, down.snapshot.error) == ("failed", "provider_error")


# -- stage 7


@pytest.mark.parametrize("kind", [*WORDS, "choice: Python | JavaScript", "number"])
def test_anything_else_is_asked_for_again_and_then_a_typed_failure(kind: str) -> None:
    wrong, usual = {"value": "it depends, but perhaps yes"}, USUAL["synthesis"]
    open_end = {**usual, "final_answer": "It depends."}
    good = {"value": 7 if kind == "number" else focus_of(kind).words[0]}  # type: ignore[union-attr]
    walked = analyse({"focused_answer": [wrong, good]}, focused_answer_type=kind)
    assert walked.snapshot.status == "done"
    assert "Value must be" in asked(walked, "focused_answer")[1].text
    walked = analyse({"focused_answer": [wrong] * 9, "synthesis": open_end}, focused_answer_type=kind)
    assert (walked.snapshot.status, walked.conclusion.reason) == ("failed", "focused_answer_failed")
    assert walked.conclusion.answer is None
    assert walked.conclusion.document["focused_answer"] is None
    assert walked.conclusion.document["final_answer"] == "It depends.", "kept, for people"


@pytest.mark.parametrize(
    ("kind", "final", "value"),
    [
        ("yes/no", "**No**", "No"),
        ("high/medium/low", "high.", "High"),
        ("number", "1,250.50", 1250.5),
        ("accepted/rejected", "Accepted, unless it was rejected.", None),
        ("number", "It is not 42.", None),
        ("number", "19,90", None),
    ],
)
def test_an_unreadable_value_is_taken_from_a_final_answer_that_is_one(
    kind: str, final: str, value: Any
) -> None:
    script = {"focused_answer": ["Hm."] * 3, "synthesis": {**USUAL["synthesis"], "final_answer": final}}
    walked = analyse(script, focused_answer_type=kind)
    if value is None:
        assert (walked.snapshot.status, walked.conclusion.reason) == ("failed", "focused_answer_failed")
        return
    assert (walked.snapshot.status, walked.conclusion.answer) == ("done", str(value))
    assert walked.conclusion.document["focused_answer"] == {"type": kind, "value": value}
    assert walked.conclusion.document["verification"] == "unchecked"
    twice = analyse({**script, "iteration_decision": ["Hm."] * 3}, focused_answer_type=kind)
    assert twice.conclusion.reason == "focused_answer_failed", "not from an answer that is itself unchecked"


@pytest.mark.parametrize(
    "said", [True, "about 42", "$42", "42%", "1,2,3", "NaN", "inf", "1e999", "", "9" * 200]
)
def test_what_is_not_a_number_is_not_passed_on(said: Any) -> None:
    walked = analyse({"focused_answer": [{"value": said}] * 3}, focused_answer_type="number")
    assert walked.conclusion.reason == "focused_answer_failed"


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(st.text(), st.floats(allow_nan=False), st.integers(), st.booleans()),
    st.sampled_from([*WORDS, "number"]),
)
def test_no_value_gets_through_that_is_not_allowed(said: Any, kind: str) -> None:
    focus = focus_of(kind)
    assert focus is not None
    value = focus.value(said)
    assert value is None or (value in focus.words if focus.words else isinstance(value, int | float))


# -- options


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"min_iterations": 3, "max_iterations": 2}, "min_iterations (3) is over max_iterations (2)"),
        ({"focused_answer_type": "maybe"}, "focused_answer_type is one of: none; number; yes/no"),
        ({"focused_answer_type": "choice: Python"}, "at least two choices"),
        ({"focused_answer_type": "choice: a | A"}, "two choices are the same"),
    ],
)
def test_bad_options_are_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as error:
        read_options(ANALYSIS, given)
    assert said in error.value.message


# -- prompts


@pytest.mark.parametrize(
    ("stage", "first", "then"),
    [
        ("complexity_analysis", "key_challenges", "complexity_level"),
        ("quality_evaluation", "reason", "quality"),
        ("iteration_decision", "decision_rationale", "continue_iterations"),
        ("synthesis", "answer", "final_answer"),
        ("focused_answer", "reason", "value"),
    ],
)
def test_a_reason_stands_before_its_verdict_in_a_form(stage: str, first: str, then: str) -> None:
    form = ANALYSIS.by_name[stage].form
    assert form is not None
    fields = list(form["properties"])
    assert fields.index(first) < fields.index(then)


@pytest.mark.parametrize("resource", REPLIES)
def test_the_example_of_a_task_is_a_legal_reply_for_each_resource(resource: str) -> None:
    example = json.dumps(ANALYSIS.by_name["task_execution"].example)
    assert not isinstance(read_form(example, REPLIES[resource][0]), Unreadable)


def test_a_budget_stop_gives_what_was_accepted_but_never_in_place_of_a_focused_answer() -> None:
    from ..playing import stop

    for focus, kept in (("none", True), ("yes/no", False)):
        desk = Desk({})
        step = begin(
            ANALYSIS, QUERY, read_options(ANALYSIS, {"candidate_plans": 1, "focused_answer_type": focus})
        )
        while (waiting := open_effects(step.snapshot))[0].stage != "iteration_decision":
            step = advance(ANALYSIS, step.snapshot, waiting[0].id, desk.answer(waiting[0]))
        ended = stop(ANALYSIS, step.snapshot, {})
        assert ended.conclusion is not None
        assert ("It can do much." in str(ended.conclusion.answer)) == kept
        assert ended.status == ("done" if kept else "failed")


# -- with a verifier


def judged(*verdicts: Verified, script: Any = None, **options: Any):
    desk, waiting, claims = Desk(script or {}), list(verdicts), list[Verify]()

    def answer(one: Any):
        if not isinstance(one.effect, Verify):
            return desk.answer(one)
        claims.append(one.effect)
        return waiting.pop(0)

    return walk(ANALYSIS, QUERY, answer, {"candidate_plans": 1, "verify": True, **options}), claims


def test_an_answer_proved_wrong_is_asked_for_again_with_the_reason_and_one_proved_right_is_given() -> None:
    again = USUAL["synthesis"] | {"final_answer": "JavaScript."}
    walked, claims = judged(
        Verified("wrong", "too slow"), Verified("right"), script={"synthesis": [USUAL["synthesis"], again]}
    )
    assert (walked.snapshot.status, walked.conclusion.answer) == ("done", "JavaScript.")
    assert walked.conclusion.reason == "quality_sufficient"
    assert [(one.path[-1], one.final) for one in claims] == [("Python.", True), ("JavaScript.", True)]
    assert "too slow" in asked(walked, "synthesis")[1].text
    document = walked.conclusion.document
    assert document["verification"] == "proved"
    assert document["objections"] == ['The answer "Python." was checked and is wrong. too slow']
