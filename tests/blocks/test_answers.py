"""Answers: how one is asked for, verified, reviewed, repaired and settled."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reasonry.blocks.answers import (
    MARKED,
    AnswerOptions,
    AnswerReply,
    AnswerState,
    CheckReply,
    FinalAnswer,
    ReasonedAnswer,
    answer_text,
    read_check,
    read_reasoning,
)
from reasonry.core.bodies import EffectFailed, Move, Request
from reasonry.core.effects import Ask, Verify
from reasonry.core.events import Failed, Reply, Verified
from reasonry.core.readings import Unreadable


class Small(AnswerState, frozen=True, kw_only=True):
    """The least that an answer can be settled in."""

    options: AnswerOptions
    problem: str = "6 * 7"


QUESTION, REVIEW = Ask("And?"), Ask("Sure?")


def test_a_question_is_the_problem_what_is_known_and_the_faults_before_its_mark_and_its_task() -> None:
    final = FinalAnswer(objections=("The answer 41 is wrong.",))
    state = Small(options=AnswerOptions(verify=True), final=final)
    ask = state.build_question("You calculate.", "sum", ["7 is odd.", ""], "Now add.", mark=MARKED)
    assert ask.text == (
        f"You calculate.\n\nProblem: 6 * 7\n\n7 is odd.\n\nThe answer 41 is wrong.\n\n{MARKED}\n\nNow add."
    )
    assert (ask.wants_value, ask.facts) == (True, {"kind": "sum", "problem": "6 * 7"})
    assert not Small(options=AnswerOptions()).build_question("", "sum", []).wants_value


def test_the_steps_of_an_answer_are_the_paragraphs_of_its_reasoning() -> None:
    reply = ReasonedAnswer(reasoning="1. 6 * 7\nis a product.\n\n\n\nStep 2: it is 42.\n", answer=42)
    assert (reply.steps, reply.text) == (("6 * 7\nis a product.", "it is 42."), "42")
    assert ReasonedAnswer(answer="42").steps == ()


def calculated(*texts: str, retries: int = 2) -> tuple[ReasonedAnswer, str] | Unreadable:
    return read_reasoning(Small(options=AnswerOptions()), Ask("6 * 7", retries=retries), texts)


def test_a_false_equation_is_doubted_once() -> None:
    slip, right = "6 * 7 = 44.\n<answer>44</answer>", "6 * 7 = 42.\n<answer>42</answer>"
    assert calculated(slip) == Unreadable("6 × 7 is 42, not 44", is_doubt=True)
    for texts in ((right,), (slip, right), ("Hm.", right)):
        assert calculated(*texts) == (ReasonedAnswer(reasoning="6 * 7 = 42.", answer="42"), "marked")
    for texts, retries in (((slip, slip), 2), ((slip,), 0), (("Hm.", "Hm!", slip), 2)):
        assert calculated(*texts, retries=retries) == (
            ReasonedAnswer(reasoning="6 * 7 = 44.", answer="44"),
            "marked",
        )


def test_where_the_answer_is_missing_a_review_reads_the_corrected_one_in_its_mark() -> None:
    state = Small(options=AnswerOptions(), final=FinalAnswer(objections=("It is odd.",)))
    reading = read_check(state, QUESTION, ["I forgot a carry.\n<answer>42</answer>"])
    assert reading == (CheckReply(reason="I forgot a carry.", correct=False, answer="42"), "marked")
    unmarked = read_check(state, QUESTION, ["I forgot a carry."])
    assert isinstance(unmarked, Unreadable)
    assert unmarked.is_unmarked


def settle(state: Small, *answers: Any, review: bool = True) -> tuple[list[Any], Move | Request]:
    """Settle an answer over what is answered; return what was asked, and the move or request it comes to."""
    script = state.settle_answer(
        QUESTION, ("It is a product.",), review=(lambda _: REVIEW) if review else None
    )
    asked: list[Any] = []
    try:
        requested = next(script)
        for answer in answers:
            asked += requested.effects
            requested = script.send((answer,))
    except StopIteration as end:
        return asked, end.value
    return asked, requested


def answered(text: str) -> Reply:
    return Reply(AnswerReply(answer=text), text, "native")


def reviewed(correct: bool, correction: str | None = None) -> Reply:
    return Reply(CheckReply(reason="no", correct=correct, answer=correction), "", "native")


def test_an_answer_is_looked_at_by_the_verifier_first_and_then_by_its_author() -> None:
    state = Small(options=AnswerOptions(verify=True))
    asked, move = settle(state, answered("42"), Verified("unknown"), reviewed(True))
    assert asked == [QUESTION, Verify("6 * 7", ("It is a product.", "42"), final=True), REVIEW]
    assert isinstance(move, Move)
    assert (move.to, move.state.final) == ("final_response", FinalAnswer("42", "reviewed"))
    assert move.state.final.document == {"verification": "reviewed", "objections": []}


def test_nobody_is_asked_where_nobody_is_wanted() -> None:
    asked, move = settle(Small(options=AnswerOptions()), answered("42"), review=False)
    assert asked == [QUESTION]
    assert isinstance(move, Move)
    assert move.state.final == FinalAnswer("42")
    assert [(thought.text, thought.data) for thought in move.thoughts] == [("42", {"answer": "42"})]


@pytest.mark.parametrize("said", [None, "42"])
def test_a_proof_settles_an_answer_and_may_write_it_down(said: str | None) -> None:
    asked, move = settle(
        Small(options=AnswerOptions(verify=True)), answered("about 42"), Verified("right", answer=said)
    )
    assert len(asked) == 2, "a proved answer is not reviewed"
    assert isinstance(move, Move)
    assert move.state.final == FinalAnswer(said or "about 42", "proved")


def test_an_answer_that_is_there_is_not_asked_for() -> None:
    asked, _ = settle(
        Small(options=AnswerOptions(verify=True), final=FinalAnswer("42")), Verified("unknown"), review=False
    )
    assert [type(effect) for effect in asked] == [Verify]


def test_what_is_proved_wrong_is_gone_and_its_successor_is_looked_at_anew() -> None:
    state = Small(options=AnswerOptions(verify=True))
    _, move = settle(state, answered("41"), Verified("wrong", "Odd."))
    objection = 'The answer "41" was checked and is wrong. Odd.'
    assert isinstance(move, Move)
    assert (move.to, move.failure, move.state.final) == (
        None,
        None,
        FinalAnswer(objections=(objection,), refuted=("41",)),
    )
    assert [(thought.text, thought.data) for thought in move.thoughts] == [(objection, {"correct": False})]
    asked, move = settle(move.state, answered("40"), Verified("wrong"))
    assert [type(effect) for effect in asked] == [Ask, Verify]
    assert isinstance(move, Move)
    assert move.failure == ("verification_failed", 'The answer "40" was checked and is wrong.', None)
    assert move.state.final.text is None


@given(st.integers(0, 20), st.sampled_from(["", "Odd."]))
def test_a_wrong_answer_is_repaired_as_often_as_the_options_say(repairs: int, detail: str) -> None:
    state, rounds = Small(options=AnswerOptions(verify=True, max_repairs=repairs)), 0
    while True:
        _, move = settle(state, answered("41"), Verified("wrong", detail))
        assert isinstance(move, Move)
        state, rounds = move.state, rounds + 1
        if move.failure is not None:
            break
    assert rounds == repairs + 1 == len(state.final.objections)


def test_a_verifier_that_failed_has_said_nothing_where_that_is_wanted() -> None:
    final = FinalAnswer("42").apply_verdict(Failed("tool_error", "crashed"))
    assert final == FinalAnswer("42")
    state = Small(options=AnswerOptions(verify=True), final=final)
    assert next(state.verify_answer(())).give_failures is False
    assert next(state.verify_answer((), give_failures=True)).give_failures is True


@pytest.mark.parametrize(
    ("correction", "repairs", "text", "verification"),
    [
        ("43", 1, "43", "open"),
        (None, 1, None, "open"),
        ("43", 0, "43", "unchecked"),
        (None, 0, "42", "doubted"),
        ("42", 0, "42", "reviewed"),
        ("**42.0**", 1, "42", "reviewed"),
    ],
)
def test_a_failed_review_makes_room_for_a_correction_and_the_last_correction_is_given(
    correction: str | None, repairs: int, text: str | None, verification: str
) -> None:
    state = Small(options=AnswerOptions(max_repairs=repairs), final=FinalAnswer("42"))
    _, move = settle(state, reviewed(False, correction))
    assert isinstance(move, Move)
    assert (move.state.final.text, move.state.final.verification) == (text, verification)
    objections = () if verification == "reviewed" else ('The answer "42" did not pass the check: no',)
    assert move.state.final.objections == objections
    assert move.to == (None if verification == "open" else "final_response")
    assert ("unchecked" in move.state.final.document) == (verification == "unchecked")


UNREADABLE = Failed("output_invalid", "no JSON object was found in it", replies=("?", "?", "?"))


def settle_failing(state: Small, *answers: Any, best: str | None = None) -> Move:
    """Settle an answer where failures are raised at the yield, as the machine does."""
    script = state.settle_answer(QUESTION, (), review=lambda _: REVIEW, best=best)
    try:
        next(script)
        for answer in answers:
            if isinstance(answer, Failed):
                script.throw(EffectFailed(answer))
            else:
                script.send((answer,))
    except StopIteration as end:
        return end.value
    raise AssertionError("it asks on")


def test_an_answer_whose_check_cannot_be_read_is_given_and_said_to_be_unchecked() -> None:
    move = settle_failing(Small(options=AnswerOptions()), answered("42"), UNREADABLE)
    assert (move.to, move.failure) == ("final_response", None)
    assert (move.state.final.text, move.state.final.verification) == ("42", "unchecked")
    assert "no JSON object was found" in move.state.final.document["unchecked"]


def test_where_the_last_question_cannot_be_read_the_best_there_is_is_given() -> None:
    move = settle_failing(Small(options=AnswerOptions()), UNREADABLE, best="total = 42")
    assert (move.state.final.text, move.state.final.verification) == ("total = 42", "unchecked")
    with pytest.raises(EffectFailed):
        settle_failing(Small(options=AnswerOptions()), UNREADABLE)


def test_an_answer_that_its_author_doubted_is_better_than_none() -> None:
    doubted = settle_failing(Small(options=AnswerOptions()), answered("42"), reviewed(False)).state
    assert doubted.final.text is None
    move = settle_failing(doubted, UNREADABLE)
    assert (move.state.final.text, move.state.final.verification) == ("42", "unchecked")


@pytest.mark.parametrize("code", ["provider_error", "stopped", "budget_exceeded"])
@pytest.mark.parametrize("answers", [(), (Reply(AnswerReply(answer="42"), "42", "native"),)])
def test_other_failures_end_the_run_as_they_are(code: str, answers: tuple[Reply, ...]) -> None:
    with pytest.raises(EffectFailed):
        settle_failing(Small(options=AnswerOptions()), *answers, Failed(code, "down"), best="41")


@given(st.integers(0, 3), st.sampled_from(["41", "41.0", "**41** km"]))
def test_what_was_proved_wrong_is_never_fallen_back_on(repairs: int, best: str) -> None:
    state = Small(options=AnswerOptions(verify=True, max_repairs=repairs + 1))
    refuted = settle_failing(state, answered("41"), Verified("wrong")).state
    with pytest.raises(EffectFailed):
        settle_failing(refuted, UNREADABLE, best=best)
    again = replace(refuted, final=refuted.final.propose("40"))
    assert again.final.apply_review(reviewed(False, best).value, 9).text is None


@pytest.mark.parametrize("text", ["**16 pieces, 30 cm left over.**", None, ""])
def test_a_check_that_holds_in_other_clothes_is_read_as_a_pass(text: str | None) -> None:
    final = FinalAnswer("16 pieces, 30 cm left over")
    written = json.dumps({"reason": "Put back in.", "correct": True, "answer": text})
    reading = read_check(Small(options=AnswerOptions(), final=final), REVIEW, [written])
    assert not isinstance(reading, Unreadable)
    assert final.apply_review(reading[0], 1).verification == "reviewed"


def test_an_answer_keeps_its_indentation_and_no_blank_lines_around_it() -> None:
    texts = ["\n \n  if x:\n    y\n ", " 42 ", "\n  42\n", 7, " ", None]
    assert [answer_text(text) for text in texts] == ["  if x:\n    y", "42", "42", "7", "", ""]
