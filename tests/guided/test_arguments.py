"""What is read of a call of a tool is what the tool's schema says."""

from __future__ import annotations

from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from reasonry.errors import UsageError
from reasonry.guided.arguments import read_arguments
from reasonry.guided.session_actions import (
    ExportSession,
    GetSession,
    ListSessions,
    OneSession,
    PinSession,
    ResumeSession,
    SearchThoughts,
)
from reasonry.guided.thinking_tool import ThinkingCall, actions_schema, tool_schema
from reasonry.surfaces.agent_calls import AnswerCoached, NewRun, OneRun, SolveCall, read_run_call

THINKING = {"thought": "x", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": True}
SESSION = {"sessionId": "s"}
REQUIRED: dict[type[Struct], dict[str, Any]] = {
    ThinkingCall: THINKING,
    ListSessions: {},
    SearchThoughts: {"query": "x"},
    **dict.fromkeys((OneSession, GetSession, ResumeSession, ExportSession, PinSession), SESSION),
    NewRun: {"problem": "x"},
    SolveCall: {"problem": "x"},
    AnswerCoached: {"runId": "r", "answers": [{"id": "e1", "answer": [1, None]}]},
    OneRun: {"runId": "r"},
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
        return read_arguments(form, arguments)
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
        assert call.message.startswith(call.details["field"])
        return
    document = {name: value for name, value in msgspec.to_builtins(call).items() if value is not None}
    document = {name: list(value) if isinstance(value, tuple) else value for name, value in document.items()}
    jsonschema.validate(document, tool_schema(form))
    assert read(form, document) == call


@pytest.mark.parametrize("form", REQUIRED)
def test_what_is_required_is_missed_by_name(form: type[Struct]) -> None:
    for name in REQUIRED[form]:
        refusal = read(form, {key: value for key, value in REQUIRED[form].items() if key != name})
        assert isinstance(refusal, UsageError)
        assert (refusal.message, refusal.details["field"]) == (f"{name} is missing", name)


@pytest.mark.parametrize("form", [NewRun, SolveCall, AnswerCoached])
def test_an_optional_argument_of_a_run_that_is_null_counts_as_left_out(form: type[Struct]) -> None:
    required = REQUIRED[form]
    nulls = dict.fromkeys(set(tool_schema(form)["properties"]) - set(required))
    assert read_run_call(form, {**required, **nulls}) == read(form, required)
    assert read_run_call(form, {**required, "verifier": " "}) == read(form, required)


def test_a_tool_with_actions_shows_what_each_takes() -> None:
    forms = {"get": GetSession, "search": SearchThoughts}
    schema = actions_schema(forms)
    assert schema["properties"]["action"]["enum"] == ["get", "search"]
    assert schema["required"] == ["action"]
    for form in forms.values():
        for name, member in tool_schema(form)["properties"].items():
            assert schema["properties"][name] == member
