"""What is read of a call of a tool is what the tool's schema says."""

from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from reasonry.app.agent_calls import (
    COACH_ACTIONS,
    AnswerCoached,
    NewRun,
    OneRun,
    SolveCall,
    name_known_arguments,
)
from reasonry.errors import UsageError
from reasonry.guided.session_calls import (
    ACTIONS,
    ExportSession,
    GetSession,
    ListSessions,
    OneSession,
    PinSession,
    ResumeSession,
    SearchThoughts,
    read_action,
    read_call,
    read_thought,
)
from reasonry.guided.session_settings import SessionSettings
from reasonry.guided.thinking_tool import ThinkingCall, actions_schema, tool_schema
from reasonry.guided.tool_arguments import name_arguments
from reasonry.text import plain_name

THINKING = {"thought": "x", "thought_number": 1, "total_thoughts": 1, "next_thought_needed": True}
SESSION = {"session_id": "s"}
REQUIRED: dict[type[Struct], dict[str, Any]] = {
    ThinkingCall: THINKING,
    ListSessions: {},
    SearchThoughts: {"query": "x"},
    ResumeSession: {},
    **dict.fromkeys((OneSession, GetSession, ExportSession, PinSession), SESSION),
    NewRun: {"problem": "x"},
    SolveCall: {"problem": "x"},
    AnswerCoached: {"run_id": "r", "answers": [{"id": "e1", "answer": [1, None]}]},
    OneRun: {"run_id": "r"},
}
MEMBERS = [(form, name) for form in REQUIRED for name in tool_schema(form)["properties"]]

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["2", "2.0", "TRUE", "json", "all", 10**400, 0.5, "1.5"])
)
values = (
    scalars
    | st.lists(scalars)
    | st.dictionaries(st.text(), scalars)
    | st.lists(st.dictionaries(st.sampled_from(["id", "answer", "x"]), scalars))
)


def read(form: type[Struct], arguments: dict[str, Any]) -> Struct | UsageError:
    try:
        return read_call(form, arguments)
    except UsageError as error:
        return error


@given(st.sampled_from(MEMBERS), values, st.dictionaries(st.just("unknown"), values))
def test_what_is_read_follows_the_schema_and_what_is_refused_is_named(
    member: tuple[type[Struct], str], value: Any, unknown: dict[str, Any]
) -> None:
    form, name = member
    call = read(form, {**REQUIRED[form], name: value, **unknown})
    if isinstance(call, UsageError):
        assert call.details["field"].startswith(name)
        assert call.message.startswith(name.replace("_", " "))
        return
    document = {name: value for name, value in msgspec.to_builtins(call).items() if value is not None}
    document = {name: list(value) if isinstance(value, tuple) else value for name, value in document.items()}
    jsonschema.validate(document, tool_schema(form))
    assert read(form, document) == call


TAKEN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"thought_number": "2"}, {"thought_number": 2}),
    ({"thought_number": " 2.0 "}, {"thought_number": 2}),
    ({"thought_number": 2.0}, {"thought_number": 2}),
    ({"thought_number": "3/5"}, {"thought_number": 3}),
    ({"thought_number": "Thought 3 of 5"}, {"thought_number": 3}),
    ({"revises_thought": "#2"}, {"revises_thought": 2}),
    ({"next_thought_needed": "FALSE"}, {"next_thought_needed": False}),
    ({"next_thought_needed": "yes"}, {"next_thought_needed": True}),
    ({"next_thought_needed": 0}, {"next_thought_needed": False}),
    ({"thought": 42}, {"thought": "42"}),
    ({"thought": "  null "}, {"thought": "  null "}),
    ({"branch_id": 2}, {"branch_id": "2"}),
    ({"branch_id": "none"}, {"branch_id": "none"}),
    ({"branch_id": " a "}, {"branch_id": " a "}),
    ({"session_id": " s1\n"}, {"session_id": "s1"}),
    ({"data": '{"score": 1}'}, {"data": {"score": 1}}),
    ({"data": "{'score': 1}"}, {"data": {"score": 1}}),
    ({"nextThoughtNeeded": False}, {"next_thought_needed": False}),
    ({"Branch-Id": "b"}, {"branch_id": "b"}),
]


@pytest.mark.parametrize(("change", "read_as"), TAKEN, ids=[str(change) for change, _ in TAKEN])
def test_what_keeps_its_meaning_is_taken(change: dict[str, Any], read_as: dict[str, Any]) -> None:
    plain = {
        name: value for name, value in THINKING.items() if plain_name(name) not in map(plain_name, change)
    }
    call, others = read_thought({**plain, **change}, SessionSettings())
    assert {name: getattr(call, name) for name in read_as} == read_as
    assert others == {}


@pytest.mark.parametrize("name", sorted(set(tool_schema(ThinkingCall)["properties"]) - set(THINKING)))
def test_what_fills_an_argument_without_saying_anything_counts_as_left_out(name: str) -> None:
    plain, _ = read_thought(THINKING, SessionSettings())
    kind = tool_schema(ThinkingCall)["properties"][name].get("type")
    fillers: list[Any] = [None, ""]
    if name not in ("branch_id", "merge_branch"):
        fillers += [" ", "null", "None", "undefined", "N/A"]
    if kind != "boolean":
        fillers += [False]
    if name in ("revises_thought", "branch_from_thought"):
        fillers += [0]
    if kind == "object":
        fillers += [[]]
    for filler in fillers:
        assert read_thought({**THINKING, name: filler}, SessionSettings()) == (plain, {}), filler


def test_arguments_that_the_tool_does_not_have_are_handed_on_but_for_blank_ones() -> None:
    _, others = read_thought({**THINKING, "score": 0.5, "note": None}, SessionSettings())
    assert others == {"score": 0.5}


def test_an_argument_in_two_spellings_must_say_the_same() -> None:
    assert name_arguments(tool_schema(ThinkingCall), {"thoughtNumber": 1, "thought_number": 1}) == {
        "thought_number": 1
    }
    with pytest.raises(
        UsageError, match="thought number is there twice, as 'thoughtNumber' and 'thought_number'"
    ):
        name_arguments(tool_schema(ThinkingCall), {"thoughtNumber": 1, "thought_number": 2})


def test_everything_that_is_missing_or_wrong_is_said_in_one_error() -> None:
    wrong = {"thought": "x", "number": 3, "is_revision": "perhaps", "total": 5, "next_thought_needed": "soon"}
    with pytest.raises(UsageError) as caught:
        read_thought(wrong, SessionSettings())
    assert caught.value.message == (
        "thought number and total thoughts are missing; there is no 'number': did you mean thought number?; "
        "there is no 'total': did you mean total thoughts?; is revision must be true or false, not 'perhaps'; "
        "next thought needed must be true or false, not 'soon'"
    )
    fields = ["thought_number", "total_thoughts", "is_revision", "next_thought_needed"]
    assert (caught.value.details["field"], caught.value.details["fields"]) == ("thought_number", fields)


@pytest.mark.parametrize("name", ["content", "text", "message"])
def test_another_name_for_the_only_text_gets_the_hint(name: str) -> None:
    told = {**THINKING, name: THINKING["thought"]}
    del told["thought"]
    message = f"thought is missing; there is no '{name}': did you mean thought\\?"
    with pytest.raises(UsageError, match=message):
        read_thought(told, SessionSettings())


def test_a_name_that_is_none_of_the_choices_gets_the_nearest() -> None:
    named = name_arguments(actions_schema(ACTIONS), {"Action": " LIST "})
    assert read_action(ACTIONS, named) == "list"
    with pytest.raises(UsageError, match=r"Did you mean resume\?"):
        read_action(ACTIONS, {"action": "resumes it"})
    with pytest.raises(UsageError, match="action is missing; it is one of: list, get"):
        read_action(ACTIONS, {})


def test_lists_may_be_one_value_or_the_text_of_a_list() -> None:
    for written in ("sum", ["sum"], '["sum"]'):
        assert read_call(NewRun, {"problem": "x", "tools": written}) == NewRun(problem="x", tools=("sum",))


@pytest.mark.parametrize("form", REQUIRED)
def test_what_is_required_is_missed_by_name(form: type[Struct]) -> None:
    for name in tool_schema(form)["required"]:
        refusal = read(form, {key: value for key, value in REQUIRED[form].items() if key != name})
        assert isinstance(refusal, UsageError)
        assert (refusal.message, refusal.details["field"]) == (f"{name.replace('_', ' ')} is missing", name)


def test_the_action_is_taken_for_no_argument_of_another_name() -> None:
    refusal = read(SearchThoughts, {"action": "search"})
    assert isinstance(refusal, UsageError)
    assert refusal.message == "query is missing"


def test_a_run_takes_its_arguments_in_any_spelling_and_refuses_those_it_does_not_have() -> None:
    schema = tool_schema(SolveCall)
    found = name_known_arguments("solve", {"max_calls": 3, "Problem": "x", "model": None, "y": ""}, schema)
    assert found == {"max_calls": 3, "problem": "x"}
    with pytest.raises(
        UsageError, match=r"solve has no argument 'max_usdd'\. Did you mean max_usd\?"
    ) as caught:
        name_known_arguments("solve", {"problem": "x", "max_usdd": 3}, schema)
    assert caught.value.details["field"] == "max_usdd"
    schema = actions_schema(COACH_ACTIONS)
    with pytest.raises(UsageError, match=r"coach has no argument 'ident'\. Its arguments: action"):
        name_known_arguments("coach", {"run_id": "r", "ident": "e1", "answer": "42"}, schema)


def test_a_tool_with_actions_shows_what_each_takes() -> None:
    forms = {"get": GetSession, "search": SearchThoughts}
    schema = actions_schema(forms)
    assert schema["properties"]["action"]["enum"] == ["get", "search"]
    assert schema["required"] == ["action"]
    for form in forms.values():
        for name, member in tool_schema(form)["properties"].items():
            assert schema["properties"][name] == member
