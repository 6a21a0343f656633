from typing import Any

import pytest

from reasonry.core.events import Verified
from reasonry.core.machine import begin, open_effects
from reasonry.strategies.linear import LINEAR

from ..playing import advance
from .walking import Walked, in_order, reply, walk

PROBLEM = "Use 4, 6, 1 and 1 to make 24"
PLAN = {"approach": "Look for factors of 24.", "totalThoughts": 2}
SOUND = {"sound": True, "reason": "Right."}
CONCLUDE = {"next": "hypothesis_generation", "reason": "That is enough."}
ON_TO_HYPOTHESIS = {"next": "hypothesis_generation"}
DONE = {**SOUND, **ON_TO_HYPOTHESIS}
STATEMENT = "4 * 6 * 1 * 1 makes 24."
HYPOTHESIS = f"{STATEMENT}\n<answer>4 * 6 * 1 * 1</answer>"
HOLDS = {"holds": True, "reason": "Each number once."}
FAILS = {"holds": False, "reason": "The 1s are not used."}


def think(text: str) -> str:
    return f"<answer>{text}</answer>"


def revised(text: str, **way_on: object) -> dict:
    return {"thought": text, **way_on}


def run(*events: Any, options: dict[str, Any] | None = None) -> Walked:
    return walk(LINEAR, PROBLEM, in_order(*events), options)


def test_a_revision_names_the_thought_it_replaces() -> None:
    earlier = {"sound": False, "reason": "That is wrong.", "revisesThought": 1}
    walked = run(PLAN, think("Add"), earlier, revised("Multiply."), CONCLUDE, HYPOTHESIS, HOLDS)
    (revision,) = [one for one in walked.thoughts if one.stage == "thought_revision"]
    assert (revision.text, walked.thoughts[revision.revises - 1].text) == ("Multiply.", "Add")
    assert "Thought 1 (replaced): Multiply." in walked.asks[-1].prompt


def test_a_branch_leaves_the_line_of_the_thought_it_names() -> None:
    def branch(number: int) -> dict:
        return {**SOUND, "next": "branch_creation", "branchFromThought": number}

    walked = run(
        *(PLAN, think("a"), branch(1), think("b"), branch(2), think("c"), DONE), *(HYPOTHESIS, HOLDS)
    )
    generated = [one for one in walked.thoughts if one.stage == "thought_generation"]
    assert [(one.text, one.branch, one.leaves) for one in generated] == [
        ("a", None, None),
        ("b", "branch-1", None),
        ("c", "branch-2", "branch-1"),
    ]
    opened = [one for one in walked.thoughts if one.stage == "branch_creation"]
    assert [one.data for one in opened] == [
        {"branchId": "branch-1", "branchFromThought": 2},
        {"branchId": "branch-2", "branchFromThought": 6},
    ]


def test_a_thought_that_does_not_exist_is_asked_about_again() -> None:
    nowhere = {"sound": False, "reason": "No.", "revisesThought": 9}
    branch = {"next": "branch_creation", "branchFromThought": 0}
    walked = run(
        *(PLAN, think("a"), nowhere, {"sound": False}, revised("b"), branch, CONCLUDE), *(HYPOTHESIS, HOLDS)
    )
    assert "There is no thought 9; there is thought 1." in walked.asks[3].turns[-1].objection
    assert "There is no thought 0; there is thought 1." in walked.asks[6].turns[-1].objection


def test_a_model_that_never_stops_thinking_is_led_to_a_solution_at_the_limit() -> None:
    def answer(one):
        replies = {
            "initial_thought_planning": PLAN,
            "thought_generation": think("and so on"),
            "thought_evaluation": {**SOUND, "next": "thought_adjustment", "thoughtsLeft": 10_000},
            "hypothesis_generation": HYPOTHESIS,
            "hypothesis_verification": FAILS,
        }
        return reply(replies[one.stage])

    walked = walk(LINEAR, PROBLEM, answer, {"max_thoughts": 4, "max_hypotheses": 2})
    assert [one.stage for one in walked.performed].count("thought_generation") == 4
    assert walked.snapshot.status == "done"
    assert (walked.conclusion.reason, walked.conclusion.document["hypotheses"]) == ("max_hypotheses", 2)
    assert walked.conclusion.document["holds"] is False


def test_a_hypothesis_proved_right_ends_the_run_without_another_call() -> None:
    start = (PLAN, think("a"), DONE, HYPOTHESIS)
    walked = run(*start, Verified("right", answer="4 * 6 * 1 * 1"), options={"verify": True})
    assert (walked.conclusion.answer, walked.conclusion.certainty) == ("4 * 6 * 1 * 1", "proved")
    assert len(walked.asks) == 4


def test_a_hypothesis_proved_wrong_is_not_tested_by_a_model() -> None:
    start = (PLAN, think("a"), DONE, "<answer>4 + 6</answer>", Verified("wrong", "10."))
    walked = run(*start, CONCLUDE, HYPOTHESIS, Verified("right"), options={"verify": True})
    assert ("hypothesis_verification", "continuation_decision") in walked.edges
    assert "test" not in [one.facts["kind"] for one in walked.asks]
    assert 'The answer "4 + 6" was checked and is wrong. 10.' in walked.asks[-1].prompt


def test_where_the_test_of_a_hypothesis_cannot_be_read_it_is_the_answer_unchecked() -> None:
    start = (PLAN, think("a"), DONE, HYPOTHESIS)
    walked = run(*start, "Hm.", "Hm!", "Hm?")
    assert (walked.snapshot.status, walked.conclusion.reason) == ("done", "success")
    assert (walked.conclusion.answer, walked.conclusion.document["verification"]) == (
        "4 * 6 * 1 * 1",
        "unchecked",
    )
    assert "could be read" in walked.conclusion.document["unchecked"]
    assert walked.conclusion.document["holds"] is None


ON = {**SOUND, "next": "thought_adjustment", "thoughtsLeft": 9}


@pytest.mark.parametrize("thoughts", [1, 2, 5])
def test_n_thoughts_cost_three_calls_and_two_for_each(thoughts: int) -> None:
    more = [reply for n in range(thoughts - 1) for reply in (think(f"step {n}"), ON)]
    last = (think("done"), DONE, HYPOTHESIS, HOLDS)
    walked = run(PLAN, *more, *last)
    assert (walked.conclusion.answer, len(walked.asks)) == ("4 * 6 * 1 * 1", 3 + 2 * thoughts)
    assert walked.edges[-1] == ("solution_finalization", "final_response")


def test_what_a_revision_and_a_failed_test_say_of_how_to_go_on_is_not_asked_again() -> None:
    wrong = {"reason": "No.", "sound": False}
    walked = run(
        *(PLAN, think("a"), wrong, revised("b", **ON_TO_HYPOTHESIS), HYPOTHESIS),
        *({**FAILS, "next": "branch_creation", "branchFromThought": 1}, think("c")),
        *(DONE, HYPOTHESIS, HOLDS),
    )
    assert walked.conclusion.answer == "4 * 6 * 1 * 1"
    assert "decide" not in [one.facts["kind"] for one in walked.asks]
    assert {"branch_creation", "continuation_decision"} <= {stage for edge in walked.edges for stage in edge}


def test_only_thoughts_are_numbered_and_no_bookkeeping_is_shown() -> None:
    unsound = {"sound": False, "reason": "No."}
    sound = {**SOUND, "next": "branch_creation", "branchFromThought": 1}
    start = (PLAN, think("a"), unsound, revised("b", next="thought_adjustment"))
    walked = run(*start, think("c"), sound, think("d"), DONE, HYPOTHESIS, HOLDS)
    asked = [one.task for one in walked.asks if one.facts["kind"] == "think"]
    for number, task in enumerate(asked, 1):
        assert f"Now think the next thought, number {number}:" in task
    assert walked.asks[-1].prompt.split("\n\n")[1:] == [
        "Approach: Look for factors of 24.",
        "Thought 1: a",
        "Evaluation: No.",
        "Thought 1 (replaced): b",
        "Thought 2: c",
        "Evaluation: Right.",
        "Thought 3 (branch-1): d",
        "Evaluation: Right.",
        f"Hypothesis: {STATEMENT}\nAnswer: 4 * 6 * 1 * 1",
    ]


@pytest.mark.parametrize(
    ("changed", "to"),
    [
        ({"revisesThought": 0}, "hypothesis_generation"),
        ({"revisesThought": None}, "hypothesis_generation"),
        ({"revisesThought": ""}, "hypothesis_generation"),
        ({"next": "Hypothesis Generation"}, "hypothesis_generation"),
        ({"sound": False, "revisesThought": 0}, "thought_revision"),
        ({"sound": False, "revisesThought": "thought 1"}, "thought_revision"),
        ({"next": "thought_adjustment", "thoughtsLeft": "2-3"}, "thought_adjustment"),
        ({"next": "branch_creation", "branchFromThought": "Thought 1"}, "branch_creation"),
    ],
)
def test_a_flat_evaluation_is_taken_as_models_write_it(changed: dict, to: str) -> None:
    given = {**SOUND, **ON_TO_HYPOTHESIS, **changed}
    step = begin(LINEAR, PROBLEM)
    edges = []
    for one in ({**PLAN, "totalThoughts": "3-4"}, think("a"), given):
        (question,) = open_effects(step.snapshot)
        step = advance(LINEAR, step.snapshot, question.id, reply(one))
        edges += step.edges
    assert to in {stage for edge in edges for stage in edge}
    assert step.snapshot.state.expected == 4


def test_a_way_on_in_an_object_of_its_own_is_asked_about_again() -> None:
    nested = {**SOUND, "next": {"next": "branch_creation", "branchFromThought": 1}}
    walked = run(PLAN, think("a"), nested, DONE, HYPOTHESIS, HOLDS)
    assert "is none of: branch_creation, hypothesis_generation, thought_adjustment" in walked.asks[3].text
    assert "branch_creation" not in {stage for edge in walked.edges for stage in edge}


def test_a_range_of_thoughts_that_a_revision_names_is_asked_about_again() -> None:
    both = {"reason": "Both.", "sound": False, "revisesThought": "1 and 2"}
    walked = run(PLAN, think("a"), both, DONE, HYPOTHESIS, HOLDS)
    assert "names several thoughts; name one" in walked.asks[3].text


def test_the_expected_number_of_thoughts_never_falls_behind_the_thoughts() -> None:
    on = {**SOUND, "next": "thought_adjustment"}
    walked = run(*({**PLAN, "totalThoughts": 1}, think("a"), on, think("b"), DONE), *(HYPOTHESIS, HOLDS))
    (adjusted,) = [one for one in walked.thoughts if one.stage == "thought_adjustment"]
    assert adjusted.data == {"totalThoughts": 2}
