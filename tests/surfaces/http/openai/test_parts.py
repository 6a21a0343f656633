"""The parts of the endpoint that need no server."""

from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.app.allow_list import AllowList
from reasonry.core.problem import check_problem, without_quoted
from reasonry.engine.usage import estimate_tokens
from reasonry.errors import ReasonryError, UsageError
from reasonry.strategies import STRATEGIES
from reasonry.supervisor import RunEvent
from reasonry.surfaces.http.listings import model_ids, read_name
from reasonry.surfaces.http.openai.completion import Thinking, cut_answer, readable
from reasonry.surfaces.http.openai.request import CallId, Message, messages_of, problem_of, read_call_id

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ALLOWED = AllowList(models={"small": "offline", "openai:gpt-5-mini": "openai:gpt-5-mini"})


def _read(messages: list[Any]) -> list[Message]:
    return msgspec.convert(messages, list[Message])


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("It pours.\n<answer>stay</answer>", "It pours.\n\nstay"),
        ("<answer>a < b\n\nb </answ c</answer>\n", "a < b\n\nb </answ c"),
        ("So it is <answer>11</answer>, I think.", "So it is\n\n11, I think."),
    ],
)
def test_the_mark_of_an_answer_is_not_passed_on_however_it_is_cut(written: str, read: str) -> None:
    so_far = ""
    for end in range(len(written)):
        before, so_far = so_far, readable(written[: end + 1])
        assert so_far.startswith(before)
    assert so_far == read


def test_one_reply_is_passed_on_at_a_time_and_a_thought_is_said_once() -> None:
    thinking = Thinking()

    def told(kind: str, **data: Any) -> str:
        return "".join(thinking.take(RunEvent(None, kind, data)))

    assert told("text", effect="e1", text="fir") == "\n\nfir"
    assert told("text", effect="e2", text="second") == ""
    assert told("text", effect="e1", text="st") == "st"
    assert told("answered", effect="e1", thoughts=[{"text": "first"}]) == ""
    assert told("text", effect="e2", text=" one") == "", "it is not begun in its middle"
    assert told("text", effect="e4", text="third") == "\n\nthird"
    thoughts = [{"text": "second  one"}, {"text": "first"}, {"text": "a new one"}]
    assert told("answered", effect="e2", thoughts=thoughts) == "\n\nsecond  one\n\na new one"
    assert told("retrying", effect="e4") == ""
    assert told("answered", at_ms=4_999, usage={"calls": 2}) == ""
    assert told("answered", at_ms=6_500, usage={"calls": 3}) == "\n\n(3 calls, 6 s so far)"
    data = '{"steps": ["it rains", "it pours"], "why": "", "answer": "stay"}'
    assert told("text", effect="e3", text=data) == "", "data is told by its thoughts"
    assert told("answered", effect="e3", thoughts=[{"text": "it rains"}]) == "\n\nit rains"


@given(st.uuids(), st.lists(st.integers(1, 10**6), min_size=1, max_size=3))
def test_the_id_of_a_call_names_its_run_and_effect(run_id: UUID, places: list[int]) -> None:
    call = CallId(str(run_id), "/".join(f"e{place}" for place in places))
    assert read_call_id(str(call), "id") == call
    assert len(str(call)) == 27 + len("-".join(f"e{place}" for place in places)) + 1


@pytest.mark.parametrize(
    "text",
    ["", "call_1", "call_" + "A" * 22 + "_x", "call_" + "A" * 21 + "B_e1", "call_é" + "A" * 21 + "_e1"],
)
def test_a_foreign_id_of_a_call_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_call_id(text, "messages[1].tool_call_id")
    assert caught.value.details["field"] == "messages[1].tool_call_id"


def test_every_name_that_is_listed_may_be_asked_for_and_no_two_mean_the_same() -> None:
    allowed = AllowList(
        models={"small": "openai:a", "large": "openai:b", "big": "openai:b"}, default_model="openai:a"
    )
    names = model_ids(STRATEGIES, allowed)
    driven = [name for name, strategy in STRATEGIES.items() if strategy.is_driven]
    assert len(names) == (len(driven) + 1) * 2
    meant: list[tuple[str, str | None]] = []
    for name in names:
        strategy, model = read_name(name, STRATEGIES, allowed)
        assert (f"{strategy}@{model}" if model else strategy) == name
        meant.append((strategy, allowed.models[model] if model else allowed.default_model))
    assert len(set(meant)) == len(names)


@pytest.mark.parametrize(
    "name", ["", "treehouse@small", "react@gpt-9", "react@", "react?depth=3", "x" * 5000]
)
def test_a_name_that_stands_for_nothing_is_refused(name: str) -> None:
    with pytest.raises(ReasonryError) as caught:
        read_name(name, STRATEGIES, ALLOWED)
    assert (caught.value.code, caught.value.details["field"]) == ("model_not_found", "model")


@given(TEXTS, st.integers(1, 30), st.lists(st.sampled_from(["a", "\n", "zz"]), max_size=2))
def test_an_answer_is_cut_at_a_stop_and_at_its_limit(answer: str, limit: int, stops: list[str]) -> None:
    text, cut = cut_answer(answer, stops, limit)
    assert answer.startswith(text)
    assert estimate_tokens(text) <= limit
    assert not any(stop in text for stop in stops)
    whole, _ = cut_answer(answer, stops, None)
    assert cut == (text != whole)


TURNS = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "system"]), TEXTS.filter(str.strip)), max_size=6
)


@settings(max_examples=40)
@given(TURNS, TEXTS.filter(str.strip))
def test_the_last_message_of_the_user_is_the_problem_and_the_others_are_below_it(
    turns: list[tuple[str, str]], last: str
) -> None:
    messages = [{"role": role, "content": text} for role, text in [*turns, ("user", last)]]
    problem = problem_of(_read(messages), None)
    assert without_quoted(problem) == without_quoted(last)
    shown = [line for role, text in turns for line in text.replace("\0", "\ufffd").splitlines() if line]
    assert all(line in problem for line in shown)


@pytest.mark.parametrize(
    "said",
    [
        {"content": "<think>\nsecret\n</think>\nOslo"},
        {"content": " <thinking>secret</thinking><think>secret</think>Oslo"},
        {"content": '<details type="reasoning" done="true">\nsecret\n</details>\nOslo'},
        {"content": "Oslo", "reasoning_content": "secret"},
        {"content": [{"type": "thinking", "thinking": "secret"}, {"type": "text", "text": "Oslo"}]},
    ],
)
def test_earlier_thoughts_are_left_out_of_the_turns_that_are_quoted(said: dict[str, Any]) -> None:
    ask, unfinished = {"role": "user", "content": "Go on."}, {"role": "assistant", "content": "<think>secret"}
    problem = problem_of(_read([{"role": "assistant", **said}, unfinished, ask]), None)
    assert problem.endswith("> assistant: Oslo")
    assert "secret" not in problem


def test_a_tag_within_an_answer_is_part_of_it() -> None:
    answer = "Write <think>…</think> around it."
    assert _read([{"role": "assistant", "content": answer}])[0].text == answer


def test_a_long_conversation_keeps_its_latest_turns() -> None:
    messages = [
        {"role": "user", "content": f"turn {number} " + "x" * 5_000 + "\n" * 2_000} for number in range(40)
    ]
    problem = problem_of(_read(messages), {"type": "object"})
    check_problem(problem)
    assert "turn 38" in problem
    assert "turn 2 " not in problem
    assert "earlier turns are left out here" in problem


def test_what_a_run_was_about_can_be_told_again() -> None:
    messages = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    told = messages_of(problem_of(_read(messages), None), "four")
    assert [(message.role, message.name, message.content) for message in told] == [
        ("user", "earlier", "user: one\nassistant: two"),
        ("user", None, "three"),
        ("assistant", None, "four"),
    ]
    assert [message.content for message in messages_of("alone", None)] == ["alone", None]
