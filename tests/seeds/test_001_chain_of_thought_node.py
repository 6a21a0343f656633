"""Seed 001, "Chain of Thought Node Design": what it says, quoted, and that it is so."""

import json
from typing import Any

import pytest

from reasonry import solve_sync, thinking_tool
from reasonry.app.strategy_table import describe, diagram
from reasonry.blocks.plan import format_plan
from reasonry.core.registry import resolve
from reasonry.errors import UsageError
from reasonry.models.scripted import ScriptedModel
from reasonry.strategies import STRATEGIES

from ..strategies.walking import Walked, in_order, walk

NODE = resolve("planned_thinking", STRATEGIES)
PROBLEM = "A jug holds 3 litres, another 5. How do you measure 4 litres?"

FIRST = {
    "current_thinking": "I set up a plan. Understanding it: two jugs, 3 and 5 litres, no marks; 4 litres wanted.",
    "planning": [
        {"description": "Understand the problem", "status": "Done", "result": "Jugs of 3 and 5, wanted 4"},
        {
            "description": "Find the pourings",
            "status": "Done",
            "sub_steps": [
                {"description": "Leave 2 in the 5", "status": "Done", "result": "Fill 5, pour into 3"},
                {"description": "Top up from 5", "status": "Done", "result": "2 in the 3, fill 5, pour 1"},
            ],
            "result": "5 minus 3 is 2; 5 minus 1 is 4",
        },
        {"description": "Conclusion", "status": "Pending"},
    ],
    "next_thought_needed": True,
}
SECOND = {
    "current_thinking": (
        "Evaluation of Thought 1: Correct - every pouring is possible.\n"
        "Fill the 5, pour into the 3, empty the 3, move the 2 over, fill the 5, top up the 3: 4 litres are left."
    ),
    "planning": [
        *FIRST["planning"][:2],
        {"description": "Conclusion", "status": "Done", "result": "4 litres in the 5-litre jug"},
    ],
    "next_thought_needed": False,
}


def run(*replies: Any, **options: Any) -> Walked:
    return walk(NODE, PROBLEM, in_order(*replies), options)


def test_solve_a_problem_step_by_step_by_maintaining_and_executing_a_structured_plan() -> None:
    walked = run(FIRST, SECOND)
    assert walked.snapshot.status == "done"
    assert [one["thought_number"] for one in walked.conclusion.document["evolution"]] == [1, 2]


def test_critically_evaluate_the_previous_steps_reasoning_and_results_before_proceeding() -> None:
    blind = {**FIRST, "current_thinking": "So 4 litres are left."}
    walked = run(FIRST, blind, SECOND)
    assert "evaluation of the previous thought" in walked.asks[-1].text
    assert len(walked.conclusion.document["evolution"]) == 2
    # Nothing is built upon the thought that concludes, and its solution is not lost.
    concluding = {**SECOND, "current_thinking": "So 4 litres are left."}
    assert run(FIRST, concluding).conclusion.answer == SECOND["planning"][-1]["result"]


def test_refine_the_plan_by_breaking_down_complex_steps_into_nested_sub_steps() -> None:
    walked = run(FIRST, SECOND)
    (_, pouring, _) = walked.conclusion.document["evolution"][0]["planning"]
    assert [part["description"] for part in pouring["sub_steps"]] == ["Leave 2 in the 5", "Top up from 5"]


def test_update_the_status_of_plan_steps_and_record_concise_results() -> None:
    statuses = [
        [step["status"] for step in one["planning"]]
        for one in run(FIRST, SECOND).conclusion.document["evolution"]
    ]
    assert statuses == [["Done", "Done", "Pending"], ["Done", "Done", "Done"]]


def test_handle_potential_errors_identified_during_evaluation_by_adjusting_the_plan() -> None:
    adjusted = {
        "current_thinking": "Evaluation of Thought 1: Major Error - the last pouring was not checked.",
        "planning": [
            FIRST["planning"][0],
            {
                "description": "Find the pourings",
                "status": "Verification Needed",
                "mark": "Last pouring unchecked",
            },
            FIRST["planning"][2],
        ],
        "next_thought_needed": True,
    }
    walked = run(FIRST, adjusted, SECOND)
    assert walked.snapshot.status == "done"
    assert "- [Verification Needed] Find the pourings (Last pouring unchecked)" in walked.asks[-1].prompt


def test_provide_a_detailed_trace_of_the_thinking_process_and_plan_evolution() -> None:
    document = json.loads(json.dumps(run(FIRST, SECOND).conclusion.document))
    for given, kept in zip((FIRST, SECOND), document["evolution"], strict=True):
        assert kept["current_thinking"] == given["current_thinking"]
        assert kept["next_thought_needed"] is given["next_thought_needed"]
        assert set(kept) == {"thought_number", "current_thinking", "planning", "next_thought_needed"}
        for step in kept["planning"]:
            assert set(step) == {"description", "status", "result", "mark", "sub_steps"}


def test_generate_a_final_conclusion_summarizing_the_solution_when_the_plan_is_complete() -> None:
    early = {**FIRST, "next_thought_needed": False}
    walked = run(early, SECOND)
    assert "the last one there is room for: execute the conclusion" in walked.asks[1].text
    assert walked.conclusion.answer == "4 litres in the 5-litre jug"


def test_the_current_thinking_content_becomes_the_solution_where_the_conclusion_has_no_result() -> None:
    planning = [*SECOND["planning"][:-1], {"description": "Conclusion", "status": "Done"}]
    assert run(FIRST, {**SECOND, "planning": planning}).conclusion.answer == SECOND["current_thinking"]
    assert run(FIRST, SECOND).conclusion.answer == SECOND["planning"][-1]["result"]


def test_a_single_node_that_calls_itself_until_no_more_thinking_is_needed() -> None:
    walked = run(FIRST, SECOND)
    assert [one.stage for one in walked.performed] == ["think", "think"]
    assert walked.edges[1:3] == [("think", "think"), ("think", "conclude")], "the loop is in the path"


def test_cot_continue_cot_is_drawn() -> None:
    """`cot[ChainOfThoughtNode] -->|"continue"| cot`."""
    assert ("think", "think") in NODE.edges
    assert "    think --> think\n" in diagram(NODE)
    assert describe(NODE)["stages"][1]["to"] == ["conclude"]
    assert describe(NODE)["stages"][1]["repeats"]


DONE_CHILD = {"description": "Leave 2 in the 5", "status": "Done", "result": "2"}
PENDING_CHILD = {"description": "Top up from 5", "status": "Pending"}
END = {"description": "Conclusion", "status": "Pending"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("planning", "rule"),
    [
        (
            [
                {
                    "description": "Pour",
                    "status": "Done",
                    "result": "4",
                    "sub_steps": [DONE_CHILD, PENDING_CHILD],
                },
                END,
            ],
            'step 1 ("Pour") is Done, but its sub-steps 1.2 are not',
        ),
        ([PENDING_CHILD, {**END, "status": "Done"}], "the conclusion is Done, but these steps are not: 1"),
        ([{"description": "Pour", "status": "Halfway"}, END], 'the statuses are "Pending", "Done"'),
        (
            [{"description": "Pour", "status": "Pending", "sub_steps": ["x"]}, END],
            "Expected `object`, got `str`",
        ),
    ],
)
async def test_the_rules_of_a_plan_hold_for_an_agent_that_thinks_by_itself_too(
    planning: Any, rule: str
) -> None:
    tool = thinking_tool(store="memory")
    call = {"thoughtNumber": 1, "totalThoughts": 3, "nextThoughtNeeded": True, "strategy": "planned_thinking"}
    before = await tool(**{**call, "thought": "Two jugs."})
    here = {
        **call,
        "thoughtNumber": 2,
        "sessionId": before["sessionId"],
        "stage": "think",
        "thought": "Pour.",
    }
    with pytest.raises(UsageError) as error:
        await tool(**{**here, "data": {"planning": planning}})
    assert rule in error.value.message
    assert error.value.details["field"] == "data.planning"
    kept = [DONE_CHILD | {"status": "done"}, END]
    assert (await tool(**{**here, "data": {"planning": kept}}))["stage"] == "think"
    after = await tool(**{**here, "thoughtNumber": 3, "data": {"planning": kept}})
    assert after["thoughtHistoryLength"] == 3


@pytest.mark.parametrize(
    "fence", ["```yaml\n{}```", "```\n{}```", "{}", "Here is my thought:\n```yaml\n{}```\n"]
)
def test_required_yaml_output_format(fence: str) -> None:
    """The seed's own layout: current_thinking as a block, planning as a list, next_thought_needed."""
    yaml = """current_thinking: |
  Evaluation of Thought 1: Correct - every pouring: possible.
  Fill the 5, pour into the 3.
planning:
  - description: "Understand the problem"
    status: "Done"
    result: "Jugs of 3 and 5: wanted 4"
  - description: "Find the pourings"
    status: "Verification Needed"
    mark: "units?"
    sub_steps:
      - description: "Leave 2"
        status: "Pending"
  - description: "Conclusion"
    status: "Pending"
next_thought_needed: true
"""
    walked = run(fence.format(yaml), SECOND)
    assert walked.snapshot.status == "done"
    assert len(walked.asks) == 2, "read at first sight"
    (first, _) = walked.conclusion.document["evolution"]
    assert first["current_thinking"].endswith("Fill the 5, pour into the 3.")
    assert first["planning"][1]["mark"] == "units?"
    assert first["planning"][1]["sub_steps"][0]["status"] == "Pending"


def test_the_prompt_holds_the_problem_the_history_and_the_last_known_plan() -> None:
    first, second = run(FIRST, SECOND).asks
    assert first.prompt.startswith(f"Problem: {PROBLEM}")
    assert first.task.startswith("Now write thought 1: plan in short steps")
    assert FIRST["current_thinking"] in second.prompt
    assert "  - [Done] Leave 2 in the 5: Fill 5, pour into 3" in second.prompt


def test_the_plan_is_printed_as_an_indented_list() -> None:
    walked = run(FIRST, SECOND)
    assert walked.conclusion.document["plan_text"] == format_plan(walked.snapshot.state.plan)
    assert (
        walked.conclusion.document["plan_text"].splitlines()[2]
        == "  - [Done] Leave 2 in the 5: Fill 5, pour into 3"
    )


def test_a_missing_key_is_asked_for_again_instead_of_asserted() -> None:
    for key in FIRST:
        broken = {name: value for name, value in FIRST.items() if name != key}
        walked = run(broken, FIRST, SECOND)
        assert key in walked.asks[1].turns[0].objection
        assert walked.snapshot.status == "done"


def layout(thinking: str, computing: str, end: str = 'status: "Pending"', more: str = "true") -> str:
    """Return a thought in the design's own layout."""
    return f"""current_thinking: |
  {thinking}
planning:
  - description: "Understand the problem"
    status: "Done"
    result: "P(at least one six) with two dice"
  - description: "Compute the probability"
    {computing}
  - description: "Conclusion"
    {end}
next_thought_needed: {more}
"""


PARTS = """status: "Verification Needed"
    mark: "Two sixes were counted twice"
    sub_steps:
      - description: "P(no six)"
        status: "Pending"
      - description: "Subtract from 1"
        status: "Pending\""""
MENDED = """status: "Done"
    result: "11/36, not 1/3"
    sub_steps:
      - description: "P(no six)"
        status: "Done"
        result: "25/36"
      - description: "Subtract from 1"
        status: "Done"
        result: "11/36\""""
FOUND = (
    "Evaluation of Thought 2: Major Error - two sixes are counted twice; the events are not exclusive.\n"
    "  The probability has to be computed by the complement."
)
MISTAKEN = [
    layout("Two dice are thrown; at least one six is wanted. I set up a plan.", 'status: "Pending"'),
    layout(
        "Evaluation of Thought 1: Correct - the plan covers the question.\n"
        "  Each die shows a six with 1/6, so 1/6 + 1/6 = 1/3.",
        'status: "Done"\n    result: "1/3"',
    ),
    layout(FOUND, PARTS),
    layout(
        "Evaluation of Thought 3: Correct - the complement avoids the double count.\n"
        "  No six: 5/6 * 5/6 = 25/36, so 1 - 25/36 = 11/36.",
        MENDED,
    ),
    layout(
        "At least one six comes with probability 11/36.",
        MENDED,
        'status: "Done"\n    result: "11/36"',
        "false",
    ),
]
"""Thought by thought: a wrong sum, found at the next evaluation and put right."""


def test_a_plan_with_a_mistake_that_the_next_evaluation_finds_as_a_program() -> None:
    script = [{"stage": "think", "reply": reply} for reply in MISTAKEN]
    model = ScriptedModel.of(*script)
    result = solve_sync("P(a six) with two dice?", strategy="planned_thinking", model=model, store="memory")
    shared = json.loads(json.dumps(result.document()))
    assert (result.answer, result.outcome, result.warnings) == ("11/36", "answered", ())
    assert result.usage.calls == len(MISTAKEN), "each reply was read at first sight"
    thoughts = shared["evolution"]
    assert [thought["thought_number"] for thought in thoughts] == [1, 2, 3, 4, 5]
    assert [thought["next_thought_needed"] for thought in thoughts] == [True] * 4 + [False]
    computing = [thought["planning"][1] for thought in thoughts]
    assert [(step["status"], step["result"], step["mark"]) for step in computing] == [
        ("Pending", None, None),
        ("Done", "1/3", None),
        ("Verification Needed", None, "Two sixes were counted twice"),
        ("Done", "11/36, not 1/3", None),
        ("Done", "11/36, not 1/3", None),
    ]
    found, mended = thoughts[2], thoughts[3]
    assert found["current_thinking"].startswith("Evaluation of Thought 2: Major Error")
    assert [step["status"] for step in found["planning"][1]["sub_steps"]] == ["Pending", "Pending"]
    assert [step["result"] for step in mended["planning"][1]["sub_steps"]] == ["25/36", "11/36"]
    assert "- [Done] Conclusion: 11/36" in shared["plan_text"]
