from __future__ import annotations

import pytest

from reasonry.core.effects import Ask, Verify
from reasonry.core.events import Failed, Verified
from reasonry.strategies.chain_of_thought import CHAIN_OF_THOUGHT, CHECK, GO_ON, REASON, REPAIR

from .walking import in_order, walk

# The paper's first example (figure 1).
TENNIS = (
    "Roger has 5 tennis balls. He buys 2 more cans of tennis balls. Each can has 3 tennis balls. "
    "How many tennis balls does he have now?"
)
PLAN = {"steps": ["How many balls he bought.", "How many he has in all."]}
STEPS = ["2 cans of 3 tennis balls each is 6 tennis balls.", "5 + 6 = 11."]
HOLDS = {"correct": True, "reason": "11 - 6 = 5, what he started with."}


ALL = {"decompose": True, "check": True}


def wrong(answer: str | None = None) -> dict:
    return {"correct": False, "reason": "Put back in, it does not fit.", "answer": answer}


def test_the_papers_example_walks_every_edge_of_the_table() -> None:
    replies = in_order(PLAN, {"steps": STEPS, "done": True}, {"answer": "11"}, HOLDS)
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, replies, ALL)
    assert walked.snapshot.status == "done"
    assert (walked.conclusion.answer, walked.conclusion.reason) == ("11", "success")
    assert walked.conclusion.document == {"steps": STEPS, "verification": "reviewed", "objections": []}
    assert tuple(walked.edges) == CHAIN_OF_THOUGHT.edges
    assert [one.stage for one in walked.thoughts] == [
        "step_decomposition",
        "sequential_reasoning",
        "solution_formulation",
        "answer_verification",
    ]


def test_reasoning_stays_in_its_stage_as_long_as_needed_and_staying_is_no_transition() -> None:
    steps = [{"steps": [one], "done": one == "c"} for one in "abc"]
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(PLAN, *steps, {"answer": "11"}, HOLDS), ALL)
    stages = [one.stage for one in walked.performed]
    assert stages.count("sequential_reasoning") == 3
    assert tuple(walked.edges) == CHAIN_OF_THOUGHT.edges
    assert "Step 1: a\n\nStep 2: b" in walked.asks[3].prompt


def test_an_answer_that_comes_with_the_last_steps_is_not_asked_for_again() -> None:
    replies = in_order(PLAN, {"steps": STEPS, "done": True, "answer": 11}, HOLDS)
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, replies, ALL)
    assert walked.conclusion.answer == "11"
    assert len(walked.asks) == 3
    assert ("solution_formulation", "11") in [(one.stage, one.text) for one in walked.thoughts]


def test_the_papers_prose_form_is_read_too() -> None:
    prose = "Roger started with 5 balls.\n2 cans of 3 tennis balls each is 6. 5 + 6 = 11.\nThe answer is 11."
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(PLAN, prose, HOLDS), ALL)
    assert walked.conclusion.answer == "11"
    assert len(walked.conclusion.document["steps"]) == 2


def test_prose_that_only_mentions_the_answer_is_no_answer() -> None:
    prose = "First I note that the answer is not yet known, and the answer is what step 2 must find."
    replies = in_order(PLAN, prose, {"steps": STEPS, "done": True, "answer": "11"}, HOLDS)
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, replies, ALL)
    assert "no JSON object was found" in walked.asks[2].prompt
    assert walked.conclusion.answer == "11"


@pytest.mark.parametrize("again", ["11", 11, "11.0", "The answer is 11 balls"])
def test_a_check_that_holds_may_repeat_the_answer(again: object) -> None:
    replies = in_order(PLAN, {"steps": STEPS, "done": True}, {"answer": "11"}, HOLDS | {"answer": again})
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, replies, ALL)
    assert (walked.conclusion.answer, walked.conclusion.document["verification"]) == ("11", "reviewed")


def test_a_check_that_holds_and_gives_another_answer_is_asked_for_again() -> None:
    torn = HOLDS | {"answer": "42"}
    walked = walk(
        CHAIN_OF_THOUGHT,
        TENNIS,
        in_order(PLAN, {"steps": STEPS, "done": True}, {"answer": "41"}, torn, wrong("42"), HOLDS),
        ALL,
    )
    assert "`correct` is true, but `answer` is not the answer that was checked" in walked.asks[4].prompt
    assert walked.conclusion.answer == "42"


def test_a_model_that_never_gets_done_is_cut_at_max_steps() -> None:
    def answer(one):
        replies = {
            "step_decomposition": PLAN,
            "sequential_reasoning": {"steps": ["on and on"], "done": False},
            "solution_formulation": {"answer": "as far as I got"},
            "answer_verification": HOLDS,
        }
        return in_order(replies[one.stage])(one)

    walked = walk(CHAIN_OF_THOUGHT, TENNIS, answer, ALL | {"max_steps": 4})
    assert [one.stage for one in walked.performed].count("sequential_reasoning") == 4
    assert walked.snapshot.status == "done"
    assert (walked.conclusion.answer, walked.conclusion.reason) == ("as far as I got", "max_steps")


def test_a_failed_check_is_recorded_and_the_correction_is_checked_again() -> None:
    replies = in_order(PLAN, {"steps": STEPS, "done": True}, {"answer": "12"}, wrong("11"), HOLDS)
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, replies, ALL)
    assert (walked.conclusion.answer, walked.conclusion.reason) == ("11", "success")
    (objection,) = walked.conclusion.document["objections"]
    assert objection == 'The answer "12" did not pass the check: Put back in, it does not fit.'
    checks = [one for one in walked.thoughts if one.stage == "answer_verification"]
    assert [one.data["correct"] for one in checks] == [False, True]
    assert objection in walked.asks[-1].prompt


def test_a_failed_check_without_a_correction_is_reasoned_about_again() -> None:
    repaired = {"reasoning": "The sum was off.", "answer": "11"}
    replies = in_order(PLAN, {"steps": STEPS, "done": True}, {"answer": "12"}, wrong(), repaired, HOLDS)
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, replies, ALL)
    assert (walked.conclusion.answer, walked.conclusion.reason) == ("11", "success")
    assert walked.asks[-2].facts["kind"] == "repair"
    assert "does not fit" in walked.asks[-2].prompt


def test_a_correction_without_an_answer_is_asked_for_again() -> None:
    repaired = {"reasoning": "The sum was off.", "answer": "11"}
    replies = in_order(
        PLAN, {"steps": STEPS, "done": True}, {"answer": "12"}, wrong(), HOLDS, repaired, HOLDS
    )
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, replies, ALL)
    assert walked.conclusion.answer == "11"
    assert "`answer`" in walked.asks[-2].prompt.rpartition("It cannot be used")[2]


@pytest.mark.parametrize("repairs", [0, 1, 3])
@pytest.mark.parametrize("has_correction", [True, False])
def test_with_no_repair_left_the_last_correction_is_given_and_never_what_was_just_refuted(
    repairs: int, has_correction: bool
) -> None:
    answers = [wrong(str(number)) for number in range(repairs)]
    last = wrong("99" if has_correction else None)
    replies = in_order(PLAN, {"steps": STEPS, "done": True}, {"answer": "12"}, *answers, last)
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, replies, ALL | {"max_repairs": repairs})
    assert walked.snapshot.status == "done"
    if has_correction:
        assert (walked.conclusion.answer, walked.conclusion.document["verification"]) == ("99", "unchecked")
        assert "did not pass the last check" in walked.conclusion.document["unchecked"]
    else:
        assert walked.conclusion.answer == (str(repairs - 1) if repairs else "12")
        assert walked.conclusion.reason == "max_repairs"
        assert walked.conclusion.document["verification"] == "doubted"


def test_an_answer_proved_right_needs_no_review_and_is_closed() -> None:
    closed = Verified("right", answer="11 balls")
    replies = in_order(PLAN, {"steps": STEPS, "done": True}, {"answer": "11"}, closed)
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, replies, ALL | {"verify": True})
    assert walked.performed[-1].effect == Verify(TENNIS, (*STEPS, "11"), final=True)
    assert walked.conclusion.answer == "11 balls"
    assert walked.conclusion.document["verification"] == "proved"


def test_an_answer_proved_wrong_is_never_given() -> None:
    replies = in_order(
        PLAN,
        {"steps": STEPS, "done": True},
        {"answer": "12"},
        Verified("wrong", "12 is not 11."),
        {"reasoning": "Added wrongly.", "answer": "13"},
        Verified("wrong", "13 is not 11."),
    )
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, replies, ALL | {"verify": True})
    assert walked.snapshot.status == "failed"
    assert (walked.conclusion.answer, walked.conclusion.reason) == (None, "verification_failed")
    assert walked.conclusion.document["objections"] == [
        'The answer "12" was checked and is wrong. 12 is not 11.',
        'The answer "13" was checked and is wrong. 13 is not 11.',
    ]


def test_an_answer_that_cannot_be_proved_is_reviewed() -> None:
    replies = in_order(PLAN, {"steps": STEPS, "done": True}, {"answer": "11"}, Verified("unknown"), HOLDS)
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, replies, ALL | {"verify": True})
    assert walked.conclusion.document["verification"] == "reviewed"


@pytest.mark.parametrize(
    "said",
    [
        {"steps": STEPS, "answer": "11"},
        {"steps": STEPS, "done": True, "answer": 11},
        "Roger started with 5 balls.\n2 cans of 3 tennis balls each is 6. 5 + 6 = 11.\nThe answer is 11.",
        "1. 2 cans of 3 balls are 6 balls.\n2. 5 + 6 = 11.\n\nThe answer is 11.",
    ],
)
def test_as_in_the_paper_one_reply_brings_the_steps_and_the_answer(said: object) -> None:
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(said))
    assert (walked.conclusion.answer, walked.conclusion.reason) == ("11", "success")
    assert len(walked.asks) == 1
    assert REASON in walked.asks[0].prompt
    assert tuple(walked.edges) == CHAIN_OF_THOUGHT.edges
    assert walked.conclusion.document["verification"] == "open"


def test_a_chain_that_is_not_at_its_end_is_gone_on_with() -> None:
    walked = walk(
        CHAIN_OF_THOUGHT, TENNIS, in_order({"steps": STEPS[:1]}, {"steps": STEPS[1:], "answer": 11})
    )
    assert GO_ON in walked.asks[1].prompt
    assert walked.conclusion.document["steps"] == STEPS


def test_steps_are_numbered_once_in_the_transcript() -> None:
    first = {"steps": ["Step 1: 2 cans are 6 balls.", "**Step 2:** 6 is even.", "3. 3.5 is not."]}
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(first, {"steps": ["5 + 6 = 11"], "answer": "11"}))
    assert "Step 1: 2 cans are 6 balls.\n\nStep 2: 6 is even.\n\nStep 3: 3.5 is not." in walked.asks[1].prompt


def test_a_false_equation_is_asked_for_again_once_with_what_is_true() -> None:
    slip = {"steps": ["2 * 3 = 6.", "5 + 6 = 12."], "answer": "12"}
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(slip, {"steps": STEPS, "answer": "11"}))
    assert "It cannot be used: 5 + 6 is 11, not 12." in walked.asks[1].prompt
    assert walked.conclusion.answer == "11"
    stubborn = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(slip, slip))
    assert (stubborn.conclusion.answer, len(stubborn.asks)) == ("12", 2)
    late = walk(CHAIN_OF_THOUGHT, TENNIS, in_order("Hm?", "Hm?", slip))
    assert late.conclusion.answer == "12", "the last reply that is allowed is better than none"


def test_a_check_that_cannot_be_read_leaves_the_answer_unchecked() -> None:
    replies = in_order({"steps": STEPS, "answer": "11"}, "Hm.", "Hm.", "Hm.")
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, replies, {"check": True})
    assert (walked.snapshot.status, walked.conclusion.answer) == ("done", "11")
    assert walked.conclusion.document["verification"] == "unchecked"
    assert "could be read" in walked.conclusion.document["unchecked"]


def test_the_reason_stands_before_the_verdict_in_every_prompt_and_form() -> None:
    assert CHECK.index('"reason"') < CHECK.index('"correct"')
    assert REPAIR.index('"reasoning"') < REPAIR.index('"answer"')
    properties = list(CHAIN_OF_THOUGHT.by_name["answer_verification"].form["properties"])
    assert properties == ["reason", "correct", "answer"]
    assert list(CHAIN_OF_THOUGHT.by_name["sequential_reasoning"].form["properties"])[:2] == [
        "steps",
        "answer",
    ]


def test_a_model_that_fails_ends_the_run_with_its_code() -> None:
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(PLAN, Failed("provider_error", "down")), ALL)
    assert (walked.snapshot.status, walked.snapshot.error) == ("failed", "provider_error")


def test_every_prompt_shares_what_was_worked_out_before_with_the_next() -> None:
    steps = [{"steps": [one], "done": one == "c"} for one in "abc"]
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(PLAN, *steps, {"answer": "11"}, HOLDS), ALL)
    assert len({one.system for one in walked.asks}) == 1
    for before, after in zip(walked.asks, walked.asks[1:], strict=False):
        stable = before.prompt.rpartition("\n\n")[0]
        assert after.prompt.startswith(stable)


def test_a_question_carries_its_facts_as_data() -> None:
    walked = walk(
        CHAIN_OF_THOUGHT, TENNIS, in_order(PLAN, {"steps": STEPS, "done": True, "answer": "11"}, HOLDS), ALL
    )
    assert all(isinstance(one, Ask) and one.facts["problem"] == TENNIS for one in walked.asks)
    assert [one.facts["kind"] for one in walked.asks] == ["decompose", "reason", "check"]
