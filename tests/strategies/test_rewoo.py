"""ReWOO: plan, evidence in dependency order, one solve."""

import json
from typing import Any

import pytest

from reasonry.blocks.toolcard import ToolCard
from reasonry.core.effects import Ask, CallTool
from reasonry.core.events import Failed, ToolReturned
from reasonry.core.machine import begin, open_effects
from reasonry.core.readings import Unreadable
from reasonry.strategies.rewoo import REWOO, Options, read_plan

from ..playing import advance
from .walking import in_order, reply, walk

QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
CALC = {
    "type": "object",
    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
    "required": ["a", "b"],
}
CARDS = (ToolCard("Wikipedia", "Searches for an article.", QUERY), ToolCard("add", "Adds.", CALC))
TOOLS = {"tools": CARDS}


def plan(*calls: tuple[str, str, Any]) -> dict:
    return {
        "calls": [{"id": id, "tool": tool, "input": given, "plan": f"for {id}"} for id, tool, given in calls]
    }


def test_independent_calls_go_out_together_and_dependent_ones_as_soon_as_they_can() -> None:
    inputs = ["a", "b", "c", "d", "#E1 #E2", "#E5"]
    given = plan(*((f"#E{number}", "Wikipedia", each) for number, each in enumerate(inputs, 1)))
    step = begin(REWOO, "p", Options(tools=CARDS))
    step = advance(REWOO, step.snapshot, "e1", reply(given))
    waves: list[int] = []
    while step.snapshot.stage == "working_phase":
        waves.append(len(step.effects))
        for one in open_effects(step.snapshot):
            step = advance(REWOO, step.snapshot, one.id, ToolReturned("x"))
    assert waves == [4, 1, 1]
    assert step.effects[0].round == 2, "tools wait for no model"


def test_order_in_the_plan_need_not_be_order_of_dependence() -> None:
    given = plan(("#E1", "Wikipedia", "#E2"), ("#E2", "Wikipedia", "b"))
    walked = walk(REWOO, "p", in_order(given, ToolReturned("B"), ToolReturned("A"), {"answer": "x"}), TOOLS)
    assert walked.conclusion.document["evidence"] == {"#E2": "B", "#E1": "A"}


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (plan(("#E1", "Wikipedia", "#E2"), ("#E2", "Wikipedia", "#E1")), "in a circle: #E1, #E2"),
        (plan(("#E1", "Wikipedia", "#E1")), "in a circle: #E1"),
        (plan(("#E1", "Wikipedia", "#E7")), "#E1 refers to #E7, which is not in the plan"),
        (plan(("#E1", "Wikipedia", "a"), ("E01", "Wikipedia", "b")), "an id of its own"),
        (plan(("#E1", "Google", "a")), "there is no tool 'Google'; the tools are: Wikipedia, add, LLM"),
        (plan(("first", "Wikipedia", "a")), "ids are #E1, #E2"),
        (plan(("#E1", "add", "1 and 2")), "write them as a JSON object"),
        (plan(*[(f"#E{n}", "Wikipedia", "a") for n in range(1, 30)]), "lan at most 20 calls"),
        (plan(("#E1", "Wikipedia", "<tool_call>a</tool_call>")), "its input has markup of a call"),
        ("#E1 = Wikipedia[a]", "o JSON object"),
        (plan(("#E1", "Wikipedia", "")), "#E1: Wikipedia needs query"),
        (plan(("#E1", "Wikipedia", {"query": "a", "size": 3})), "Wikipedia has no argument size"),
        ("I would search Wikipedia.", "o JSON object"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_asked_again_with_the_reason(broken: Any, reason: str) -> None:
    good = plan(("#E1", "Wikipedia", "a"))
    walked = walk(REWOO, "p", in_order(broken, good, ToolReturned("x"), {"answer": "y"}), TOOLS)
    assert reason in walked.asks[1].text
    assert walked.conclusion.answer == "y"


def test_the_planner_is_held_to_the_tools_there_are() -> None:
    (planning,) = walk(REWOO, "p", in_order("no", "no", "no"), TOOLS).asks[:1]
    assert planning.form is not None
    call = planning.form["properties"]["calls"]["items"]
    assert call["properties"]["tool"]["enum"] == ["Wikipedia", "add", "LLM"]
    assert set(call["required"]) == set(call["properties"])
    assert '"tool": "Wikipedia"' in planning.text


@pytest.mark.parametrize("ids", [("#E1", "#E2"), ("E1", "e02"), (1, 2), (None, None)])
def test_ids_are_read_however_they_are_written(ids: tuple[Any, Any]) -> None:
    calls = [{"tool": "wikipedia", "input": {"query": "a"}}, {"tool": "LLM", "input": "sum of #E1"}]
    named = [call if id is None else {"id": id, **call} for id, call in zip(ids, calls, strict=True)]
    replies = in_order({"calls": named}, ToolReturned("A"), "<answer>B</answer>", {"answer": "x"})
    walked = walk(REWOO, "p", replies, TOOLS)
    assert walked.performed[1].effect == CallTool("Wikipedia", {"query": "a"})
    assert walked.asks[1].prompt == "sum of A"
    assert walked.conclusion.answer == "x"


def test_failed_evidence_is_recorded_and_the_rest_is_solved_with() -> None:
    given = plan(("#E1", "Wikipedia", "a"), ("#E2", "Wikipedia", "b"), ("#E3", "Wikipedia", "about #E1"))
    gone = Failed("tool_error", "page is gone")
    walked = walk(REWOO, "p", in_order(given, gone, ToolReturned("B"), {"answer": "from B"}), TOOLS)
    assert walked.conclusion.answer == "from B"
    assert "Evidence #E1: none (page is gone)" in walked.asks[-1].text
    assert "Evidence #E3: none (not run: there is no #E1)" in walked.asks[-1].text
    failed = [call["failed"] for call in walked.conclusion.document["plan"]]
    assert failed == ["page is gone", None, "not run: there is no #E1"]


def test_evidence_is_not_looked_into_for_further_references() -> None:
    given = plan(("#E1", "Wikipedia", "a"), ("#E2", "Wikipedia", "b"), ("#E3", "Wikipedia", "on #E1"))
    returned = map(ToolReturned, ("see #E2", "B", "C"))
    walked = walk(REWOO, "p", in_order(given, *returned, {"answer": "x"}), TOOLS)
    assert walked.performed[3].effect == CallTool("Wikipedia", {"query": "on see #E2"})


def test_a_tool_of_the_catalog_named_llm_goes_before_the_models_own() -> None:
    card = ToolCard("LLM", "Another model.", QUERY)
    given = plan(("#E1", "LLM", "a"))
    walked = walk(REWOO, "p", in_order(given, ToolReturned("x"), {"answer": "y"}), {"tools": (card,)})
    assert walked.performed[1].effect == CallTool("LLM", {"query": "a"})
    assert not any(isinstance(one.effect, Ask) and one.stage == "working_phase" for one in walked.performed)


def test_a_plan_loses_at_the_last_try_the_calls_that_cannot_be_carried_out_and_those_that_build_on_them() -> (
    None
):
    lost, kept = [("#E1", "Google", "a"), ("#E2", "Wikipedia", "#E1")], [("#E3", "Wikipedia", "b")]
    broken = plan(*lost, *kept, ("#E4", "LLM", "of #E3"))
    found = in_order(broken, broken, ToolReturned("B"), "<answer>b</answer>", {"answer": "y"})
    walked = walk(REWOO, "p", found, TOOLS)
    assert walked.performed[2].effect == CallTool("Wikipedia", {"query": "b"})
    assert walked.conclusion.answer == "y"
    refused = read_plan(walked.snapshot.state, walked.asks[0], [json.dumps(broken)])
    assert isinstance(refused, Unreadable)
    assert refused.reason == (
        "#E1: there is no tool 'Google'; the tools are: Wikipedia, add, LLM; nor can be carried out: #E2"
    )
