from __future__ import annotations

import pytest

from reasonry.blocks.answers import MARKED
from reasonry.core.effects import Ask, Verify
from reasonry.core.events import Failed, Verified
from reasonry.core.readings import EXTRACT
from reasonry.strategies.chain_of_thought import CHAIN_OF_THOUGHT, CHECK, REASON, REPAIR, SYSTEM

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


def chain(answer: str, *steps: str) -> str:
    return "\n\n".join([*(steps or STEPS), f"<answer>{answer}</answer>"])


def wrong(answer: str | None = None) -> dict:
    return {"correct": False, "reason": "Put back in, it does not fit.", "answer": answer}


def test_the_papers_example_walks_every_edge_of_the_table() -> None:
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(PLAN, chain("11"), HOLDS), ALL)
    assert walked.snapshot.status == "done"
    assert (walked.conclusion.answer, walked.conclusion.reason) == ("11", "success")
    assert walked.conclusion.document == {"steps": STEPS, "verification": "reviewed", "objections": []}
    assert tuple(walked.edges) == CHAIN_OF_THOUGHT.edges
    assert [(one.stage, one.text) for one in walked.thoughts[1:3]] == [
        ("sequential_reasoning", "\n\n".join(STEPS)),
        ("solution_formulation", "11"),
    ]
    assert len(walked.asks) == 3


@pytest.mark.parametrize("style", ["steps", "plan", "draft"])
def test_one_question_whose_last_words_are_the_task_of_its_style(style: str) -> None:
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(chain("11")), {"style": style})
    (asked,) = walked.asks
    put = asked.spelled_out()
    assert (put.system, put.prompt, put.form) == (
        SYSTEM,
        f"Problem: {TENNIS}\n\n{MARKED}\n\n{REASON[style]}",
        None,
    )
    assert tuple(walked.edges) == CHAIN_OF_THOUGHT.edges
    assert (walked.conclusion.answer, walked.conclusion.document["verification"]) == ("11", "open")


@pytest.mark.parametrize(
    ("said", "steps"),
    [
        (chain("11"), STEPS),
        ({"reasoning": "\n\n".join(STEPS), "answer": 11}, STEPS),
        ("5 + 6 = 11.\nAnswer: 11", ["5 + 6 = 11."]),
        (r"5 + 6 = 11, so it is \boxed{11}.", ["5 + 6 = 11, so it is"]),
        ("<answer>11</answer>", []),
    ],
)
def test_one_reply_brings_the_steps_and_the_answer(said: object, steps: list[str]) -> None:
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(said))
    assert (walked.conclusion.answer, walked.conclusion.reason, len(walked.asks)) == ("11", "success", 1)
    assert walked.conclusion.document["steps"] == steps


def test_the_answer_of_a_chain_without_a_mark_is_asked_for_alone() -> None:
    prose = "2 cans of 3 balls are 6.\n\n5 + 6 = 11. So he has 11 of them."
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(prose, "<answer>11</answer>"))
    (turn,) = walked.asks[1].turns
    assert (turn.reply, turn.objection) == (prose, EXTRACT)
    assert walked.asks[1].question == walked.asks[0].question
    assert walked.conclusion.answer == "11"
    assert walked.conclusion.document["steps"] == prose.split("\n\n")


def test_a_chain_that_never_marks_its_answer_is_the_answer_as_a_whole_unless_a_verifier_wants_a_value() -> (
    None
):
    prose = "So he has 11 of them."
    whole = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(prose, "Eleven, as I said.", "He has 11 balls."))
    assert (whole.conclusion.answer, len(whole.asks)) == ("He has 11 balls.", 3)
    refused = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(prose, prose), {"verify": True})
    assert (refused.snapshot.status, refused.snapshot.error, len(refused.asks)) == (
        "failed",
        "output_invalid",
        2,
    )


@pytest.mark.parametrize("again", ["11", 11, "11.0"])
def test_a_check_that_holds_may_repeat_the_answer(again: object) -> None:
    replies = in_order(PLAN, chain("11"), HOLDS | {"answer": again})
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, replies, ALL)
    assert (walked.conclusion.answer, walked.conclusion.document["verification"]) == ("11", "reviewed")


def test_a_check_that_holds_and_gives_another_answer_is_asked_for_again() -> None:
    torn = HOLDS | {"answer": "42"}
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(PLAN, chain("41"), torn, wrong("42"), HOLDS), ALL)
    (turn,) = walked.asks[3].turns
    assert "`correct` is true, but `answer` is not the answer that was checked" in turn.objection
    assert walked.conclusion.answer == "42"


def test_a_failed_check_is_recorded_and_the_correction_is_checked_again() -> None:
    replies = in_order(PLAN, chain("12"), wrong("11"), HOLDS)
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, replies, ALL)
    assert (walked.conclusion.answer, walked.conclusion.reason) == ("11", "success")
    (objection,) = walked.conclusion.document["objections"]
    assert objection == 'The answer "12" did not pass the check: Put back in, it does not fit.'
    checks = [one for one in walked.thoughts if one.stage == "answer_verification"]
    assert [one.data["correct"] for one in checks] == [False, True]
    assert objection in walked.asks[-1].prompt


def test_a_failed_check_without_a_correction_is_reasoned_about_again() -> None:
    repaired = "The sum was off.\n<answer>11</answer>"
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(PLAN, chain("12"), wrong(), repaired, HOLDS), ALL)
    assert (walked.conclusion.answer, walked.conclusion.reason) == ("11", "success")
    repair = walked.asks[-2]
    assert (repair.facts["kind"], repair.mark, repair.task) == ("repair", MARKED, REPAIR)
    assert "does not fit" in repair.prompt


@pytest.mark.parametrize("repairs", [0, 1, 3])
@pytest.mark.parametrize("has_correction", [True, False])
def test_with_no_repair_left_the_last_correction_is_given_and_never_what_was_just_refuted(
    repairs: int, has_correction: bool
) -> None:
    answers = [wrong(str(number)) for number in range(repairs)]
    last = wrong("99" if has_correction else None)
    replies = in_order(PLAN, chain("12"), *answers, last)
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
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(PLAN, chain("11"), closed), ALL | {"verify": True})
    assert walked.performed[-1].effect == Verify(TENNIS, (*STEPS, "11"), final=True)
    assert walked.conclusion.answer == "11 balls"
    assert walked.conclusion.document["verification"] == "proved"


def test_an_answer_proved_wrong_is_never_given() -> None:
    replies = in_order(
        PLAN,
        chain("12"),
        Verified("wrong", "12 is not 11."),
        "Added wrongly.\n<answer>13</answer>",
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
    replies = in_order(PLAN, chain("11"), Verified("unknown"), HOLDS)
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, replies, ALL | {"verify": True})
    assert walked.conclusion.document["verification"] == "reviewed"


def test_steps_are_numbered_once_in_what_the_check_is_shown() -> None:
    said = chain("11", "Step 1: 2 cans are 6 balls.", "**Step 2:** 6 is even.", "3. 3.5 is not.")
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(said, HOLDS), {"check": True})
    assert "Step 1: 2 cans are 6 balls.\n\nStep 2: 6 is even.\n\nStep 3: 3.5 is not." in walked.asks[1].prompt


def test_a_false_equation_is_asked_for_again_once_with_what_is_true() -> None:
    slip = chain("12", "2 * 3 = 6.", "5 + 6 = 12.")
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(slip, chain("11")))
    assert walked.asks[1].turns[0].objection.startswith("5 + 6 is 11, not 12. Answer the question again")
    assert walked.conclusion.answer == "11"
    stubborn = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(slip, slip))
    assert (stubborn.conclusion.answer, len(stubborn.asks)) == ("12", 2)
    late = walk(CHAIN_OF_THOUGHT, TENNIS, in_order("Hm?", "Hm!", slip))
    assert late.conclusion.answer == "12", "the last reply that is allowed is better than none"


def test_a_check_that_cannot_be_read_leaves_the_answer_unchecked() -> None:
    replies = in_order(chain("11"), "Hm.", "Hm!", "Hm?")
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, replies, {"check": True})
    assert (walked.snapshot.status, walked.conclusion.answer) == ("done", "11")
    assert walked.conclusion.document["verification"] == "unchecked"
    assert "could be read" in walked.conclusion.document["unchecked"]


def test_the_reason_stands_before_the_verdict_in_every_prompt_and_form() -> None:
    assert CHECK.index('"reason"') < CHECK.index('"correct"')
    properties = list(CHAIN_OF_THOUGHT.by_name["answer_verification"].form["properties"])
    assert properties == ["reason", "correct", "answer"]
    assert list(CHAIN_OF_THOUGHT.by_name["sequential_reasoning"].form["properties"]) == [
        "reasoning",
        "answer",
    ]


def test_a_model_that_fails_ends_the_run_with_its_code() -> None:
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(PLAN, Failed("provider_error", "down")), ALL)
    assert (walked.snapshot.status, walked.snapshot.error) == ("failed", "provider_error")


def test_every_prompt_shares_what_was_worked_out_before_with_the_next() -> None:
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(PLAN, chain("11"), HOLDS), ALL)
    assert len({one.system for one in walked.asks}) == 1
    for before, after in zip(walked.asks, walked.asks[1:], strict=False):
        assert after.prompt.startswith(before.prompt)


def test_a_question_carries_its_facts_as_data() -> None:
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(PLAN, chain("11"), HOLDS), ALL)
    assert all(isinstance(one, Ask) and one.facts["problem"] == TENNIS for one in walked.asks)
    assert [one.facts["kind"] for one in walked.asks] == ["decompose", "reason", "check"]
