from typing import Any

from reasonry.core.events import Stopped, Verified
from reasonry.core.machine import begin
from reasonry.core.readings import EXTRACT
from reasonry.strategies.planned_thinking import (
    BEGIN,
    CONCLUDE,
    FORM,
    LAST,
    PLANNED_THINKING,
    THINK,
)

from ..playing import advance
from .walking import in_order, reply, walk

PROBLEM = "What is (17 + 25) * 2?"
OK = "Evaluation of the previous thought: correct. "


def plan(*statuses: str, **changes: Any) -> list[dict[str, Any]]:
    names = ["Add", "Double", "Conclusion"]
    results = ["42", "84", "84"]
    rows = []
    for name, status, result in zip(names, statuses, results, strict=True):
        rows.append({"description": name, "status": status, "result": result if status == "Done" else None})
    rows[0] |= changes
    return rows


def thought(text: str, planning: list[dict[str, Any]], needed: bool = True) -> dict[str, Any]:
    return {"current_thinking": text, "planning": planning, "next_thought_needed": needed}


FIRST = thought("17 + 25 = 42.", plan("Done", "Pending", "Pending"))
SECOND = thought(OK + "42 * 2 = 84.", plan("Done", "Done", "Pending"))
THIRD = thought(OK + "The result is 84.", plan("Done", "Done", "Done"), False)


def test_a_plan_is_worked_off_and_every_edge_walked() -> None:
    walked = walk(PLANNED_THINKING, PROBLEM, in_order(FIRST, SECOND, THIRD))
    assert (walked.snapshot.status, walked.conclusion.reason) == ("done", "success")
    assert walked.conclusion.answer == "84"
    think, stay = ("problem_reception", "think"), ("think", "think")
    assert walked.edges == [think, stay, stay, ("think", "conclude"), ("conclude", "final_response")]
    assert set(walked.edges) == set(PLANNED_THINKING.edges)
    for recorded, given in zip(walked.thoughts, (FIRST, SECOND, THIRD), strict=True):
        assert recorded.text.startswith(given["current_thinking"])
    assert walked.thoughts[0].text.endswith(
        "Plan:\n- [Done] Add: 42\n- [Pending] Double\n- [Pending] Conclusion"
    )


ESSAY = "# Why bridges fail\n\nA bridge is a promise.\n\n## Rust\n\nSteel remembers."


def test_a_solution_that_is_written_whole_instead_stands_in_its_mark() -> None:
    written = f"I checked it.\n<answer>\n{ESSAY}\n</answer>"
    walked = walk(PLANNED_THINKING, PROBLEM, in_order(FIRST, SECOND, written))
    assert (walked.conclusion.answer, walked.conclusion.reason) == (ESSAY, "success")
    last = walked.conclusion.document["evolution"][-1]
    assert (last["current_thinking"], last["next_thought_needed"]) == ("I checked it.", False)
    assert [step["status"] for step in last["planning"]] == ["Done", "Done", "Done"]


def test_a_text_without_a_mark_is_asked_for_it_where_the_conclusion_is_to_be_written() -> None:
    walked = walk(PLANNED_THINKING, PROBLEM, in_order(FIRST, SECOND, ESSAY, f"<answer>{ESSAY}</answer>"))
    assert walked.asks[3].turns[0].objection == EXTRACT
    assert walked.conclusion.answer == ESSAY
    whole = walk(PLANNED_THINKING, PROBLEM, in_order(FIRST, SECOND, ESSAY, ESSAY))
    assert (whole.conclusion.answer, len(whole.asks)) == (ESSAY, 4)
    too_early = walk(PLANNED_THINKING, PROBLEM, in_order(FIRST, ESSAY, SECOND, THIRD))
    assert "No JSON object was found in it" in too_early.asks[2].turns[0].objection
    assert too_early.conclusion.answer == "84"


def test_each_question_shows_all_thoughts_before_it_and_the_plan_as_it_stands() -> None:
    walked = walk(PLANNED_THINKING, PROBLEM, in_order(FIRST, SECOND, THIRD))
    assert f"Thought 1\n17 + 25 = 42.\n\nThought 2\n{SECOND['current_thinking']}" in walked.asks[2].prompt
    shown = "\n\nThe plan as it stands:\n- [Done] Add: 42\n- [Done] Double: 84\n- [Pending] Conclusion"
    assert walked.asks[2].prompt.endswith(shown)
    assert walked.asks[2].prompt.count("[Done] Add") == 1
    tasks = (BEGIN, THINK.format(number=2, before=1), CONCLUDE.format(number=3, before=2))
    assert tuple(one.task for one in walked.asks) == tuple(f"{task} {FORM}" for task in tasks)
    assert len({one.system for one in walked.asks}) == 1
    for before, after in zip(walked.asks, walked.asks[1:], strict=False):
        assert after.prompt.startswith(before.prompt.rpartition("\n\n")[0])


def test_a_thought_that_ends_the_thinking_without_a_conclusion_is_followed_by_it() -> None:
    over = thought(OK + "It is 84.", SECOND["planning"][:2], False)
    walked = walk(PLANNED_THINKING, PROBLEM, in_order(over, THIRD))
    assert walked.asks[1].task == f"{LAST.format(number=2)} {FORM}"
    assert walked.asks[1].prompt.endswith("- [Done] Double: 84\n- [Pending] Conclusion")
    assert (walked.conclusion.answer, walked.conclusion.reason) == ("84", "success")


def test_an_open_step_that_vanishes_is_pending_and_is_executed_before_the_conclusion() -> None:
    without = thought(OK + "42 it is.", [FIRST["planning"][0], FIRST["planning"][2]])
    walked = walk(PLANNED_THINKING, PROBLEM, in_order(FIRST, without, SECOND, THIRD))
    assert "- [Pending] Double" in walked.asks[2].prompt
    assert walked.asks[2].task.startswith(THINK.format(number=3, before=2))
    assert walked.conclusion.reason == "success"


def test_a_run_in_another_language_keeps_the_rules_with_the_field() -> None:
    judged = [{"evaluation": "Bewertung von Gedanke 1: richtig.", **thought("84.", SECOND["planning"])}]
    judged += [{"evaluation": "Stimmt.", **thought("Es sind 84.", THIRD["planning"], False)}]
    walked = walk(PLANNED_THINKING, "Was ist (17 + 25) * 2?", in_order(FIRST, *judged))
    assert (walked.snapshot.status, walked.conclusion.answer) == ("done", "84")
    assert [one.get("evaluation") for one in walked.conclusion.document["evolution"]] == [
        None,
        "Bewertung von Gedanke 1: richtig.",
        "Stimmt.",
    ]
    assert walked.thoughts[1].text.startswith("Evaluation: Bewertung von Gedanke 1: richtig.\n84.")
    assert "Thought 2\nEvaluation: Bewertung von Gedanke 1: richtig.\n84." in walked.asks[2].prompt


def test_a_model_that_keeps_breaking_a_rule_leaves_the_latest_thought_unchecked_and_says_which() -> None:
    bad = thought(OK + "It is 84.", plan("Done", "Pending", "Done"), False)
    walked = walk(PLANNED_THINKING, PROBLEM, in_order(FIRST, bad, bad, bad))
    assert (walked.snapshot.status, walked.conclusion.answer) == ("done", FIRST["current_thinking"])
    assert walked.conclusion.document["verification"] == "unchecked"
    assert "these steps are not: 2" in walked.conclusion.document["unchecked"]


def test_without_a_result_to_give_an_unreadable_thought_fails_the_run() -> None:
    unread = ["{[", "[{", "{{"]
    idle = thought("Set up.", plan("Pending", "Pending", "Pending"))
    refuted = (FIRST, SECOND, THIRD, Verified("wrong", "Doubled twice."))
    for before, options in (((), {}), ((idle,), {}), (refuted, {"verify": True})):
        walked = walk(PLANNED_THINKING, PROBLEM, in_order(*before, *unread), options)
        assert (walked.snapshot.status, walked.snapshot.error) == ("failed", "output_invalid")


def test_a_model_that_never_ends_stops_at_its_limit_with_the_best_so_far() -> None:
    def answer(_):
        return reply(thought(OK + "Still adding.", plan("Done", "Pending", "Pending")))

    walked = walk(PLANNED_THINKING, PROBLEM, answer, {"max_thoughts": 4})
    assert len(walked.asks) == 4
    assert (walked.snapshot.status, walked.conclusion.reason) == ("done", "max_thoughts")
    assert walked.conclusion.answer == OK + "Still adding."
    assert walked.asks[3].task == f"{LAST.format(number=4)} {FORM}"
    think, stay = ("problem_reception", "think"), ("think", "think")
    assert walked.edges == [think, stay, stay, stay, ("think", "conclude"), ("conclude", "final_response")]
    assert set(walked.edges) == set(PLANNED_THINKING.edges)


def test_the_last_thought_there_is_room_for_may_conclude_with_steps_left_open() -> None:
    early = thought(OK + "Probably 84.", plan("Done", "Pending", "Pending"), False)
    walked = walk(PLANNED_THINKING, PROBLEM, in_order(FIRST, early), {"max_thoughts": 2})
    assert (walked.conclusion.answer, walked.conclusion.reason) == (OK + "Probably 84.", "max_thoughts")


def test_a_stop_gives_no_thought_as_the_answer() -> None:
    step = begin(PLANNED_THINKING, PROBLEM)
    step = advance(PLANNED_THINKING, step.snapshot, "e1", reply(FIRST))
    ended = advance(PLANNED_THINKING, step.snapshot, None, Stopped("max_calls", "1 call")).snapshot
    assert (ended.status, ended.conclusion.answer, ended.conclusion.reason) == (
        "failed",
        None,
        "max_calls",
    )
