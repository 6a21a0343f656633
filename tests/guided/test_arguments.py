"""What is read of a call of the thinking tool is what the tool's schema says."""

from __future__ import annotations

from typing import Any

import jsonschema
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from reasonry.errors import UsageError
from reasonry.guided.arguments import read_call
from reasonry.guided.settings import SessionSettings
from reasonry.guided.thinking_tool import ThinkingCall, tool_schema

MEMBERS = tool_schema(ThinkingCall)["properties"]
REQUIRED = {"thought": "x", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": True}

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["2", "2.0", "TRUE"])
)
values = scalars | st.lists(scalars) | st.dictionaries(st.text(), scalars)


def read(arguments: dict[str, Any]) -> ThinkingCall | UsageError:
    try:
        return read_call(arguments, SessionSettings())
    except UsageError as error:
        return error


@given(st.dictionaries(st.sampled_from([*MEMBERS, "unknown"]), values))
def test_what_is_read_follows_the_schema_and_what_is_refused_is_named(arguments: dict[str, Any]) -> None:
    call = read({**REQUIRED, **arguments})
    if isinstance(call, UsageError):
        assert call.details["field"] in arguments
        assert call.message.startswith(call.details["field"])
        return
    document = {name: value for name, value in msgspec.to_builtins(call).items() if value is not None}
    jsonschema.validate(document, tool_schema(ThinkingCall))
    assert read(document) == call
