from __future__ import annotations

from reasonry.core.events import Failed, Verified
from reasonry.strategies import resolve
from reasonry.strategies.linear import LINEAR

from .walking import in_order, reply, walk

PROBLEM = "Use 4, 6, 1 and 1 to make 24"
PLAN = {"approach": "Look for factors of 24.", "totalThoughts": 2}
SOUND = {"sound": True, "reason": "Right."}
CONCLUDE = {"next": "hypothesis_generation", "reason": "That is enough."}
HYPOTHESIS = {"hypothesis": "4 * 6 * 1 * 1 = 24"}
HOLDS = {"holds": True, "reason": "Each number once."}
FAILS = {"holds": False, "reason": "The 1s are not used."}
ANSWER = {"answer": "4 * 6 * 1 * 1"}


def think(text: str) -> dict:
    return {"thought": text}


def test_a_straight_run_is_thought_evaluation_hypothesis_test_and_solution() -> None:
    sound = {**SOUND, "then": CONCLUDE}
    walked = walk(LINEAR, PROBLEM, in_order(PLAN, think("4 * 6 is 24."), sound, HYPOTHESIS, HOLDS, ANSWER))
    assert (walked.outcome.answer, walked.outcome.reason) == ("4 * 6 * 1 * 1", "success")
    assert len(walked.asks) == 6
    assert [one.stage for one in walked.thoughts] == [
        "initial_thought_planning",
        "thought_generation",
        "thought_evaluation",
        "continuation_decision",
        "hypothesis_generation",
        "hypothesis_verification",
        "solution_finalization",
    ]


def test_one_run_with_revision_branch_and_a_refuted_hypothesis_walks_every_edge() -> None:
    branch = {"next": "branch_creation", "reason": "Try sums.", "branchFromThought": 2}
    walked = walk(
        LINEAR,
        PROBLEM,
        in_order(
            *(PLAN, think("4 * 6 is 25."), {"sound": False, "reason": "It is 24."}, think("4 * 6 is 24.")),
            *({"next": "thought_adjustment", "totalThoughts": 5}, think("The 1s are left."), SOUND, branch),
            *(
                think("4 + 6 is 10."),
                {**SOUND, "then": CONCLUDE},
                HYPOTHESIS,
                FAILS,
                CONCLUDE,
                HYPOTHESIS,
                HOLDS,
                ANSWER,
            ),
        ),
    )
    assert set(walked.edges) == set(LINEAR.edges)
    assert walked.outcome.answer == "4 * 6 * 1 * 1"
    assert walked.outcome.document["branches"] == 1
    assert walked.outcome.document["hypotheses"] == 2


def test_a_revision_names_the_thought_it_replaces() -> None:
    earlier = {"sound": False, "reason": "The approach is wrong.", "revisesThought": 1}
    walked = walk(
        LINEAR,
        PROBLEM,
        in_order(PLAN, think("Add."), earlier, think("Multiply."), CONCLUDE, HYPOTHESIS, HOLDS, ANSWER),
    )
    (revision,) = [one for one in walked.thoughts if one.stage == "thought_revision"]
    assert (revision.text, revision.revises) == ("Multiply.", 1)
    assert "Thought 4 (replaces thought 1): Multiply." in walked.asks[-1].prompt


def test_an_unsound_thought_is_the_one_revised_where_none_is_named() -> None:
    unsound = {"sound": False, "reason": "No."}
    walked = walk(
        LINEAR,
        PROBLEM,
        in_order(PLAN, think("Add."), unsound, think("Multiply."), CONCLUDE, HYPOTHESIS, HOLDS, ANSWER),
    )
    (revision,) = [one for one in walked.thoughts if one.stage == "thought_revision"]
    assert walked.thoughts[revision.revises - 1].text == "Add."


def test_a_branch_leaves_the_line_of_the_thought_it_names() -> None:
    def branch(number: int) -> dict:
        return {
            **SOUND,
            "then": {"next": "branch_creation", "reason": "Another way.", "branchFromThought": number},
        }

    walked = walk(
        LINEAR,
        PROBLEM,
        in_order(
            *(PLAN, think("a"), branch(2), think("b"), branch(6), think("c"), {**SOUND, "then": CONCLUDE}),
            *(HYPOTHESIS, HOLDS, ANSWER),
        ),
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
    walked = walk(
        LINEAR,
        PROBLEM,
        in_order(
            *(PLAN, think("a"), nowhere, {"sound": False}, think("b"), branch, CONCLUDE),
            *(HYPOTHESIS, HOLDS, ANSWER),
        ),
    )
    assert "there is no thought 9; there are thoughts 1 to 2" in walked.asks[3].prompt
    assert "there is no thought 0; there are thoughts 1 to 4" in walked.asks[6].prompt


def test_a_model_that_never_stops_thinking_is_led_to_a_solution_at_the_limit() -> None:
    def answer(one):
        replies = {
            "initial_thought_planning": PLAN,
            "thought_generation": think("and so on"),
            "thought_evaluation": {**SOUND, "then": {"next": "thought_adjustment", "totalThoughts": 10_000}},
            "hypothesis_generation": HYPOTHESIS,
            "hypothesis_verification": FAILS,
            "solution_finalization": ANSWER,
        }
        return reply(replies[one.stage])

    walked = walk(LINEAR, PROBLEM, answer, {"max_thoughts": 4, "max_hypotheses": 2})
    assert [one.stage for one in walked.performed].count("thought_generation") == 4
    assert walked.snapshot.status == "done"
    assert (walked.outcome.reason, walked.outcome.document["hypotheses"]) == ("max_hypotheses", 2)
    assert walked.outcome.document["holds"] is False


def test_the_expected_number_of_thoughts_never_falls_behind_the_thoughts() -> None:
    on = {**SOUND, "then": {"next": "thought_adjustment", "totalThoughts": 1}}
    walked = walk(
        LINEAR,
        PROBLEM,
        in_order(
            *({**PLAN, "totalThoughts": 1}, think("a"), on, think("b"), {**SOUND, "then": CONCLUDE}),
            *(HYPOTHESIS, HOLDS, ANSWER),
        ),
    )
    (adjusted,) = [one for one in walked.thoughts if one.stage == "thought_adjustment"]
    assert adjusted.data == {"totalThoughts": 2}


def test_an_answer_proved_wrong_is_asked_for_again_or_not_given() -> None:
    unknown, wrong = Verified("unknown"), Verified("wrong", "It makes 10.")
    start = (PLAN, think("a"), {**SOUND, "then": CONCLUDE}, HYPOTHESIS, unknown, HOLDS, {"answer": "4 + 6"})
    walked = walk(LINEAR, PROBLEM, in_order(*start, wrong, ANSWER, Verified("right")), {"verify": True})
    assert (walked.outcome.answer, walked.outcome.document["verification"]) == ("4 * 6 * 1 * 1", "proved")
    lost = walk(LINEAR, PROBLEM, in_order(*start, wrong), {"verify": True, "max_repairs": 0})
    assert (lost.snapshot.status, lost.outcome.reason) == ("failed", "verification_failed")


def test_a_hypothesis_proved_right_ends_the_run_without_another_call() -> None:
    start = (PLAN, think("a"), {**SOUND, "then": CONCLUDE}, HYPOTHESIS)
    walked = walk(
        LINEAR, PROBLEM, in_order(*start, Verified("right", answer="4 * 6 * 1 * 1")), {"verify": True}
    )
    assert (walked.outcome.answer, walked.outcome.document["verification"]) == ("4 * 6 * 1 * 1", "proved")
    assert len(walked.asks) == 4


def test_a_hypothesis_proved_wrong_is_not_tested_by_a_model() -> None:
    start = (PLAN, think("a"), {**SOUND, "then": CONCLUDE}, {"hypothesis": "4 + 6"}, Verified("wrong", "10."))
    events = in_order(*start, CONCLUDE, HYPOTHESIS, Verified("right"))
    walked = walk(LINEAR, PROBLEM, events, {"verify": True})
    assert ("hypothesis_verification", "continuation_decision") in walked.edges
    assert "test" not in [one.facts["kind"] for one in walked.asks]
    assert "The answer '4 + 6' was checked and is wrong. 10." in walked.asks[-1].prompt


def test_a_model_that_fails_ends_the_run() -> None:
    walked = walk(LINEAR, PROBLEM, in_order(PLAN, think("a"), Failed("provider_error", "down")))
    assert (walked.snapshot.status, walked.snapshot.error) == ("failed", "provider_error")


def test_each_prompt_begins_with_the_thoughts_before() -> None:
    walked = walk(LINEAR, PROBLEM, in_order(PLAN, think("a"), SOUND, CONCLUDE, HYPOTHESIS, HOLDS, ANSWER))
    assert len({one.system for one in walked.asks}) == 1
    for before, after in zip(walked.asks, walked.asks[1:], strict=False):
        assert after.prompt.startswith(before.prompt.rpartition("\n\n")[0])


def test_it_goes_by_the_names_of_the_seed() -> None:
    assert resolve("base-sequential") is resolve("Sequential") is LINEAR
