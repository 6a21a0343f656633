from typing import Any

import pytest

from reasonry.blocks.answers import MARKED
from reasonry.core.events import Closing
from reasonry.core.machine import begin
from reasonry.core.strategy import Strategy
from reasonry.strategies.chain_of_thought import CHAIN_OF_THOUGHT, REASON, SYSTEM, Options
from reasonry.strategies.step_back import STEP_BACK
from reasonry.strategies.step_back import Options as StepBack

from ..playing import advance
from .walking import in_order, reply, walk

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


@pytest.mark.parametrize("style", ["steps", "plan", "draft"])
def test_one_question_whose_last_words_are_the_task_of_its_style(style: str) -> None:
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(chain("11")), {"style": style})
    (asked,) = walked.asks
    put = asked.spelled_out()
    assert (put.system, put.form) == (SYSTEM, None)
    assert put.prompt == f"Problem: {TENNIS}\n\n{MARKED}\n\n{REASON[style]}"
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


def test_a_chain_that_never_marks_its_answer_is_the_answer_as_a_whole_unless_a_verifier_wants_a_value() -> (
    None
):
    prose = "So he has 11 of them."
    whole = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(prose, "Eleven, as I said.", "He has 11 balls."))
    assert (whole.conclusion.answer, len(whole.asks)) == ("He has 11 balls.", 3)
    refused = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(prose, prose), {"verify": True})
    assert (refused.snapshot.error, len(refused.asks)) == ("output_invalid", 2)


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


def test_steps_are_numbered_once_in_what_the_check_is_shown() -> None:
    said = chain("11", "Step 1: 2 cans are 6 balls.", "**Step 2:** 6 is even.", "3. 3.5 is not.")
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(said, HOLDS), {"check": True})
    assert "Step 1: 2 cans are 6 balls.\n\nStep 2: 6 is even.\n\nStep 3: 3.5 is not." in walked.asks[1].prompt


def test_a_false_equation_is_asked_for_again_once_with_what_is_true() -> None:
    slip = chain("12", "2 * 3 = 6.", "5 + 6 = 12.")
    walked = walk(CHAIN_OF_THOUGHT, TENNIS, in_order(slip, chain("11")))
    assert walked.asks[1].turns[0].objection.startswith("5 + 6 is 11, not 12. Answer the question again")
    assert walked.conclusion.answer == "11"


@pytest.mark.parametrize(
    ("strategy", "options", "before"),
    [
        (CHAIN_OF_THOUGHT, Options(check=True), []),
        (
            STEP_BACK,
            StepBack(check=True),
            [{"stepBackQuestion": "How are balls counted?", "generalPrinciple": "Add."}],
        ),
    ],
    ids=["chain_of_thought", "step_back"],
)
def test_an_answer_that_its_author_doubts_is_given_where_no_call_is_left_for_another(
    strategy: Strategy[Any, Any], options: Any, before: list[Any]
) -> None:
    step = begin(strategy, TENNIS, options)
    for said in (*before, chain("12"), wrong()):
        step = advance(strategy, step.snapshot, step.effects[0].id, reply(said))
    assert step.snapshot.status == "active", "another answer is asked for"
    end = advance(strategy, step.snapshot, None, Closing("max_calls", "limit")).snapshot.conclusion
    assert end is not None
    assert end.answer == "12"
    assert end.document["unchecked"] == "it did not pass its check, and no call was left for another"
