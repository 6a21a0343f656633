"""Reading replies: what is understood, what is refused, and that nothing makes it raise."""

import json
import re
import time
from typing import Any, Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from reasonry.blocks.answers import AnswerReply, CheckReply
from reasonry.core.readings import Unreadable
from reasonry.reading.form import read_form
from reasonry.reading.json_in_text import is_whole
from reasonry.reading.thinking import without_thinking


class Steps(Struct, frozen=True):
    thoughts: list[str]


class Rated(Struct, frozen=True):
    score: float = 0.0
    note: str = ""


class Closed(Struct, frozen=True):
    answer: str | None


class Asked(Struct, frozen=True):
    sub_question: str
    note: str = ""


class Judged(Struct, frozen=True):
    verdict: Literal["holds", "fails", "unsure"]


@pytest.mark.parametrize(
    ("text", "thoughts", "mode"),
    [
        ('{"thoughts": ["a", "b"]}', ["a", "b"], "json"),
        ('\ufeff  {"thoughts": ["a"]}\n', ["a"], "json"),
        ('```json\n{"thoughts": ["a"]}\n```', ["a"], "fenced"),
        ('Sure:\n```\n{"thoughts": ["a"]}\n```\nDone.', ["a"], "fenced"),
        ('```json\n{"thoughts": ["a ``` b"]}\n```', ["a ``` b"], "fenced"),
        ('I think {"thoughts": ["a"]} is right', ["a"], "embedded"),
        ('[{"thoughts": ["a"]}]', ["a"], "json"),
        ("{'thoughts': ['a', 'b']}", ["a", "b"], "repaired"),
        ('{"thoughts": ["a", "b",],}', ["a", "b"], "repaired"),
        ('```\n{thoughts: ["a" "b"]\n```\nbye', ["a", "b"], "repaired"),
        ('Here: {"thoughts": ["a", "b"', ["a", "b"], "repaired"),
    ],
)
def test_a_form_is_read_on_the_first_rung_that_holds(text: str, thoughts: list[str], mode: str) -> None:
    assert read_form(text, Steps) == (Steps(thoughts), mode)


@pytest.mark.parametrize(
    "text",
    [
        '<think>maybe {"thoughts": ["no"]}</think>{"thoughts": ["mine"]}',
        '{"thoughts": ["mine"]}\nThat is:\n```json\n{"thoughts": ["mine"]}\n```\nNot {"another": 1}.',
    ],
)
def test_one_object_of_the_form_counts_wherever_it_stands(text: str) -> None:
    reading = read_form(without_thinking(text), Steps)
    assert isinstance(reading, tuple)
    assert reading[0] == Steps(["mine"])


def test_two_objects_of_the_form_that_differ_are_none() -> None:
    text = 'As in the example {"thoughts": ["example"]}, I say {"thoughts": ["mine"]}'
    assert read_form(text, Steps) == Unreadable("it has two JSON objects that differ; give one")


@pytest.mark.parametrize("key", ["question", "followup", "sub_questions", "sub_question_text"])
def test_no_other_key_is(key: str) -> None:
    assert isinstance(read_form(json.dumps({key: "Who?", "note": "x"}), Asked), Unreadable)


@pytest.mark.parametrize(
    ("data", "reply"),
    [
        ({"correct": "yes"}, CheckReply(reason="r", correct=True)),
        ({"correct": "False."}, CheckReply(reason="r", correct=False)),
        ({"correct": 1}, CheckReply(reason="r", correct=True)),
        ({"correct": False, "answer": 7}, CheckReply(reason="r", correct=False, answer=7)),
        ({"correct": False, "answer": "none"}, CheckReply(reason="r", correct=False, answer="none")),
        ({"correct": True, "answer": None}, CheckReply(reason="r", correct=True)),
        ({"correct": True, "answer": ""}, CheckReply(reason="r", correct=True)),
    ],
)
def test_a_review_says_yes_or_no_and_an_answer_word_for_word(data: Any, reply: CheckReply) -> None:
    assert read_form(json.dumps({"reason": "r", **data}), CheckReply) == (reply, "json")


@pytest.mark.parametrize("word", ["perhaps", "yes, but no", "not true", "correct", "ja", "I think so"])
def test_no_other_word_is_a_truth_value(word: str) -> None:
    assert isinstance(read_form(json.dumps({"reason": "r", "correct": word}), CheckReply), Unreadable)


@pytest.mark.parametrize(
    ("written", "choice"),
    [("holds", "holds"), ("HOLDS", "holds"), ("confirmed", "holds"), ("refuted", "fails"), (False, "fails")],
)
def test_words_of_one_verdict_stand_for_one_another(written: Any, choice: str) -> None:
    assert read_form(json.dumps({"verdict": written}), Judged) == (Judged(choice), "json")  # pyright: ignore


@pytest.mark.parametrize("written", ["accept", "holds: all of it", "holds or fails", None, 2])
def test_no_other_word_is_a_choice(written: Any) -> None:
    assert isinstance(read_form(json.dumps({"verdict": written}), Judged), Unreadable)


@pytest.mark.parametrize(
    ("text", "form", "reason"),
    [
        ("", Steps, "no JSON object"),
        ("Nothing to see here.", Steps, "the fields wanted are: thoughts"),
        ("{}", Steps, "none of the fields"),
        ("[1, 2]", Rated, "not a JSON object"),
        ('{"thoughts": [null]}', Steps, "`thoughts`: there is nothing in its list"),
        ('{"other": 1}', Rated, "none of the fields"),
        ('{"score": "nan"}', Rated, "'nan' is not one number"),
        ('{"score": NaN}', Rated, "'null' is not one number"),
        ('{"score": 1e999}', Rated, "'null' is not one number"),
        ('{"score": ' + "9" * 5000 + "}", Rated, "'null' is not one number"),
        ('{"thoughts": ' + "[" * 5000 + "]" * 5000 + "}", Steps, "JSON"),
    ],
)
def test_what_does_not_fit_is_unreadable_and_says_why(text: str, form: type[Struct], reason: str) -> None:
    reading = read_form(text, form)
    assert isinstance(reading, Unreadable)
    assert re.search(reason, reading.reason), reading.reason


def test_a_letter_that_begins_with_a_bracket_is_no_list() -> None:
    letter = "[Your name]\n\nDear landlord,\n\nthe oven smells of gas.\n\nYours sincerely,\n[Your name]"
    found = read_form(f"<answer>\n{letter}\n</answer>", AnswerReply)
    assert found == (AnswerReply(answer=letter), "marked")


def test_null_is_an_answer_of_its_own() -> None:
    assert read_form('{"answer": null}', Closed) == (Closed(None), "json")


@pytest.mark.parametrize(
    "text",
    [
        '{"thoughts": ["a", "b"',
        '{"thoughts": ["a"]} and then I',
        '```json\n{"thoughts": ["a"]}\n```',
        "{'thoughts': []}",
    ],
)
def test_what_is_not_all_json_may_be_cut_off(text: str) -> None:
    assert not is_whole(text)
    assert is_whole('{"thoughts": ["a"]}')


def test_lone_surrogates_do_not_get_through() -> None:
    for text in ('{"thoughts": ["\\ud800"]}', '{"thoughts": ["\ud800"]}'):
        reading = read_form(text, Steps)
        assert isinstance(reading, tuple)
        assert reading[0].thoughts == ["\ufffd"]
    assert read_form('{"thoughts": ["\\ud83d\\ude00"]}', Steps) == (Steps(["😀"]), "json")


json_like = st.text(alphabet="{}[]\"',:\\ \n`0.1eantulhogsjon-\ud800é", max_size=200)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), json_like))
@example("[" * 100_000)
@example('{"a":' * 100_000)
@example("```{" * 20_000)
@example("thoughts: " + "[" * 5_000)
@example("thoughts:\n" + "- " * 5_000)
def test_no_text_makes_it_raise_and_no_text_passes_for_a_value(text: str) -> None:
    for form in (Steps, Rated, Closed):
        reading = read_form(text, form)
        if isinstance(reading, tuple):
            value, mode = reading
            assert isinstance(value, form)
            assert mode in ("json", "fenced", "embedded", "repaired", "yaml", "marked", "stated")
        else:
            assert reading.reason


@pytest.mark.parametrize(
    "text",
    [
        "{" * 10_000_000,
        '{"a":' * 2_000_000,
        '{"' * 24_000,
        '{"a":[' + "{}," * 500_000,
        "x" * 10_000_000,
        "{'a':" * 2_000,
        '{"a":["' + "/.\\a'" * 40 + '1"' * 10_000,
        "{- 1}" * 4_000,
    ],
    ids=["braces", "nesting", "half-objects", "list", "prose", "loose nesting", "quotes", "rubbish"],
)
def test_hostile_text_takes_bounded_time(text: str) -> None:
    begun = time.process_time()
    assert isinstance(read_form(text, Steps), Unreadable)
    assert time.process_time() - begun < 10


@given(
    st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3),
    st.lists(st.text(min_size=1), min_size=1),
)
def test_a_form_in_prose_is_found(before: dict[str, Any], thoughts: list[str]) -> None:
    text = f"First {json.dumps(before)}, then:\n{json.dumps({'thoughts': thoughts})}\nThat is all."
    reading = read_form(text, Steps)
    assert isinstance(reading, tuple)
    assert reading == (
        Steps([one.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for one in thoughts]),
        "embedded",
    )
