"""Reading a reply, and asking again: the question stays, and each unusable reply is a turn with its objection."""

import json
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct
from msgspec.structs import replace

from reasonry.blocks.answers import MARKED, ReasonedAnswer
from reasonry.blocks.reply import UNMARKED_MODE, read_reply
from reasonry.core.effects import Ask, Turn
from reasonry.core.events import Answered
from reasonry.core.readings import (
    EXTRACT,
    EXTRACT_LONG,
    MAX_EXCERPT,
    Reading,
    Unreadable,
    ask_again,
    is_last_try,
)
from reasonry.core.strategy import Stage
from reasonry.core.type_schema import inlined_schema
from reasonry.reading.form import no_reply

STAGE = Stage("answering", ("final_response",), description="", guidance="", reply=ReasonedAnswer)
ASK = Ask("How many?", "You count.", MARKED, "First count.")
DATA = Ask(
    "Which?", "You choose.", task='Reply with one JSON object:\n{"choice": "…"}', form={"type": "object"}
)


def read(ask: Ask, *texts: str, truncated: bool = False) -> Reading:
    replies = [Answered(text) for text in texts]
    replies[-1] = Answered(texts[-1], truncated=truncated)
    return read_reply(STAGE, None, ask, replies)


def asked_again(ask: Ask, *texts: str) -> Ask:
    """Return the question after replies that could not be used."""
    for place in range(len(texts)):
        ask = ask_again(ask, Answered(texts[place]), read(ask, *texts[: place + 1]))
    return ask


def answer_of(reading: Reading) -> tuple[str, str]:
    assert reading.refusal is None, reading.refusal
    return reading.value.text, reading.mode


def test_a_correction_is_a_turn_and_the_question_stays() -> None:
    again = asked_again(DATA, "blue", "green")
    assert replace(again, turns=()) == DATA
    assert [turn.reply for turn in again.turns] == ["blue", "green"]
    broken = ask_again(DATA, Answered("blue"), Reading(refusal="no JSON object was found in it"))
    assert broken.turns == (
        Turn(
            "blue",
            "No JSON object was found in it. Answer the question again with one JSON object of the form asked for, and "
            "nothing else.",
        ),
    )
    assert broken.text == f"{DATA.text}\n\nblue\n\n{broken.turns[0].objection}"


def test_the_turns_are_no_part_of_the_question() -> None:
    form = 'Reply with {"answer": "the number"}.'
    again = ask_again(Ask("How many?", task=form), Answered('{"answer": "6"}'), Reading(refusal="it is odd"))
    assert no_reply('{"answer": "6"}', again.question) is None
    assert no_reply('{"answer": "the number"}', again.question) is not None


@pytest.mark.parametrize("shown", ["Answer", "your answer here"])
def test_only_a_placeholder_that_the_question_showed_is_one(shown: str) -> None:
    reply = f"So it is.\n<answer>{shown}</answer>"
    assert answer_of(read(ASK, reply)) == (shown, "marked")
    told = replace(ASK, task=f"Write <answer>{shown}</answer>.")
    assert read(told, reply).refusal == "it repeats the form of the question; answer it"
    asked = replace(
        ASK, prompt=f"Is it <answer>{shown}</answer>", facts={"problem": f"Is it <answer>{shown}</answer>"}
    )
    assert answer_of(read(asked, reply)) == (shown, "marked")


def test_material_that_holds_the_answer_in_its_mark_is_not_the_form() -> None:
    printed = replace(ASK, prompt="It printed:\n<answer>101</answer>", task="Now answer.")
    assert answer_of(read(printed, "It printed the sum.\n<answer>101</answer>")) == ("101", "marked")


def test_a_mark_that_opens_again_where_it_should_close_holds_the_answer() -> None:
    assert answer_of(read(ASK, "So it is.\n<answer>101<answer>")) == ("101", "marked")
    assert read(ASK, "101 <answer>").refusal == "it repeats the form of the question; answer it"
    copied = read(ASK, "Write it with <answer> before it and </answer> after it.")
    assert copied.refusal == "it repeats the form of the question; answer it"
    copied = read(ASK, "101 <answer>the answer alone, complete and as asked for</answer>")
    assert "only repeats the question" in (copied.refusal or "")


FIVE = "There are five of them in all, as far as I can see."
STILL = "It is five, as I have said two times before."


def test_a_reply_without_its_mark_is_asked_for_the_answer_alone_and_then_for_all_of_it() -> None:
    assert asked_again(ASK, FIVE).turns == (Turn(FIVE, EXTRACT),)
    twice = asked_again(ASK, FIVE, "As I said.")
    assert "Answer the question again, and write the answer with <answer>" in twice.turns[1].objection
    assert asked_again(ASK, "Five. " * 500).turns[0].objection == EXTRACT_LONG


def test_two_marks_that_differ_and_an_empty_one_are_named_and_asked_for_the_answer_alone() -> None:
    two = asked_again(ASK, "<answer>5</answer> or <answer>6</answer>").turns[0].objection
    assert two == f"It marks two answers, '5' and '6'. {EXTRACT}"
    empty = asked_again(ASK, "<answer></answer>").turns[0].objection
    assert empty == f"Its <answer> is empty. {EXTRACT}"


@pytest.mark.parametrize(
    ("texts", "whole"),
    [
        ((FIVE, "As I said.", STILL), STILL),
        ((FIVE, FIVE), FIVE),
        (("Shall I count them?", "Shall I count them?"), "Shall I count them?"),
    ],
)
def test_at_the_last_try_the_last_whole_reply_is_the_answer_unless_a_value_is_wanted(
    texts: tuple[str, ...], whole: str
) -> None:
    before = texts[:-1]
    ask = asked_again(ASK, *before)
    assert answer_of(read(ask, *texts)) == (whole, UNMARKED_MODE)
    assert read(replace(ask, wants_value=True), *texts).refusal is not None
    assert read(asked_again(ASK, *before[:-1]), *before).unmarked


def test_what_was_said_to_the_extraction_question_is_not_the_whole_reply() -> None:
    ask = asked_again(replace(ASK, retries=1), "Bridges fail, since steel remembers.")
    reading = read(ask, "Bridges fail, since steel remembers.", "That is all.")
    assert answer_of(reading) == ("Bridges fail, since steel remembers.", UNMARKED_MODE)


@given(st.integers(0, 3), st.lists(st.sampled_from("ab"), min_size=1, max_size=6))
def test_the_same_reply_twice_ends_the_asking(retries: int, texts: list[str]) -> None:
    replies = [Answered(text) for text in texts]
    repeats = texts[-1:] == texts[-2:-1]
    assert is_last_try(Ask("?", retries=retries), replies) == (repeats or len(texts) > retries)


def test_a_reply_that_was_cut_off_is_wished_for_more_briefly_unless_its_mark_is_closed() -> None:
    cut = read(ASK, "2 + 3 is <answer>5 and", truncated=True)
    assert cut.refusal == "the reply was cut off before its end; answer more briefly"
    again = ask_again(ASK, Answered("2 + 3 is <answer>5 and", truncated=True), cut)
    assert "Answer the question again, much more briefly, and write" in again.turns[0].objection
    assert answer_of(read(ASK, "<answer>5</answer> And now", truncated=True)) == ("5", "marked")
    assert answer_of(read(ASK, "2 + 3 is <answer>5")) == ("5", "marked")


def test_a_reply_that_was_declined_or_is_empty_is_asked_for_again() -> None:
    declined = read_reply(STAGE, None, ASK, [Answered("No.", refused=True)])
    assert declined.refusal == "the answer was declined; answer the question as asked"
    assert "the reply was empty" in (read(ASK, " ").refusal or "")
    assert asked_again(ASK, " ").turns[0].reply == "(nothing)"


@given(st.text(max_size=20) | st.just("x" * 1_000_000))
def test_asking_again_shows_a_bounded_part_of_any_reply(text: str) -> None:
    again = ask_again(ASK, Answered(text), Reading(refusal="it is no good"))
    assert len(again.text) < len(ASK.text) + MAX_EXCERPT + 500
    again.text.encode()


class Finding(Struct, frozen=True):
    text: str
    weight: Annotated[float, Meta(ge=0, le=1)]
    sources: tuple[Literal["book", "web"], ...] = ()


class Findings(Struct, frozen=True):
    findings: Annotated[tuple[Finding, ...], Meta(min_length=1)]


LISTING = Stage("listing", ("final_response",), description="", guidance="", reply=Findings)
LIST = Ask("Which?", task="List them.", form=inlined_schema(Findings), retries=0)
GOOD = {"text": "a", "weight": 0.5}


def listed(*texts: object, retries: int = 0) -> Reading:
    replies = [Answered(text if isinstance(text, str) else json.dumps(text)) for text in texts]
    return read_reply(LISTING, None, replace(LIST, retries=retries), replies)


@pytest.mark.parametrize(
    ("entry", "lost"),
    [
        ({"text": "b", "weight": 7}, "findings[2] was left out: `weight`: 7 is not from 0 to 1"),
        ({"text": "b"}, "findings[2] was left out: it lacks `weight`"),
        ("b", "findings[2] was left out: it is JSON, but not a JSON object"),
    ],
)
def test_at_the_last_try_a_list_loses_an_entry_that_does_not_fit_and_nothing_else(
    entry: object, lost: str
) -> None:
    reply = {"findings": [GOOD, entry, {"text": "c", "weight": "1/1"}]}
    first = listed(reply, retries=1)
    assert first.refusal is not None, "it is asked again first"
    for last in (
        listed(reply),
        listed("Hm.", reply, retries=1),
        listed(reply, reply, retries=2),
        listed(reply, "Hm.", retries=1),
        listed(reply, {"findings": [GOOD, entry]}, retries=1),
    ):
        assert [each.text for each in last.value.findings] == ["a", "c"]
        assert (last.refusal, last.lost, last.title) == (None, lost, f"in part: {lost}")
    assert listed(reply["findings"]).value == last.value, "a list alone is the form's only field"
    assert listed(f"Here:\n```json\n{json.dumps(reply)}\n```").value == last.value


def test_of_an_entry_with_a_list_of_its_own_the_innermost_entry_alone_is_lost() -> None:
    reading = listed({"findings": [GOOD, {**GOOD, "sources": ["web", "hearsay"]}]})
    assert reading.value == Findings((Finding("a", 0.5), Finding("a", 0.5, ("web",))))
    assert reading.lost == "findings[2].sources[2] was left out: 'hearsay' is none of: book, web"


def test_a_list_in_which_nothing_fits_and_two_readings_that_differ_stay_unreadable() -> None:
    bad = {"text": "b", "weight": 7}
    for reply in ({"findings": [bad]}, {"findings": []}, {"other": [GOOD, bad]}, "Hm."):
        assert (listed(reply).value, listed(reply).lost) == (None, "")
    one, other = (json.dumps({"findings": [{**GOOD, "text": text}, bad]}) for text in "ad")
    assert listed(f"First:\n{one}\nOr rather:\n{other}").value is None
    assert listed(f"First:\n{one}\nOnce more:\n{one}").value == Findings((Finding("a", 0.5),))


def test_what_a_reader_can_use_in_part_is_taken_at_the_last_try_and_what_is_missing_is_said() -> None:
    part = Unreadable("b has no score", in_part=({"a": 1}, "list"))
    stage = Stage("listing", (), description="", guidance="", read=lambda *_: part, value=dict)
    (first, last) = (
        read_reply(stage, None, replace(LIST, retries=tries), [Answered("a: 1")]) for tries in (1, 0)
    )
    assert (first.value, first.refusal) == (None, "b has no score")
    assert (last.value, last.mode, last.lost) == ({"a": 1}, "list", "b has no score")


class Remarks(Struct, frozen=True):
    remarks: tuple[str, ...]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (None, "it is null, and text is wanted"),
        ({}, "'{}' has no text"),
        ({"number": 2, "text": ""}, """'{"number": 2, "text": ""}' has no text"""),
    ],
)
def test_an_entry_without_text_is_left_out_of_a_list_of_texts_at_the_last_try_and_that_is_said(
    entry: object, why: str
) -> None:
    stage = Stage("listing", ("final_response",), description="", guidance="", reply=Remarks)
    ask = replace(LIST, form=inlined_schema(Remarks))
    reading = read_reply(stage, None, ask, [Answered(json.dumps({"remarks": ["a", entry, {"text": "c"}]}))])
    assert reading.value == Remarks(("a", "c"))
    assert reading.lost == f"remarks[2] was left out: {why}"
