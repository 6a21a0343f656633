"""Conversations as problems: the last thing the user said is what is to be solved.

What the system or the developer said are instructions for the answer; everything else is quoted below the problem, the
latest first where not all of it fits.
"""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple
from uuid import UUID

import msgspec
from msgspec import Struct

from ....core.json_schema import MAX_SCHEMA_CHARS
from ....core.problem import (
    HEADING,
    MARK,
    MAX_QUOTED_CHARS,
    quote_latest,
    with_instructions,
    with_quoted,
    without_quoted,
)
from ....core.text import beginning
from ....errors import UsageError

MAX_TURN_CHARS = 20_000
"""Of one earlier turn that is quoted."""
_HISTORY_CHARS = MAX_QUOTED_CHARS - MAX_SCHEMA_CHARS - 2_000
"""Of the quoted turns, where the instructions leave as much."""

FORM = """The answer is put into JSON that fits this schema afterwards, so it must have all that the schema asks for:
{schema}"""

ANSWER = "answer"
"""In the place of an effect: the call is the answer of its run, which waits for nothing."""

_CALL = re.compile(r"call_([A-Za-z0-9_-]{21}[AQgw])_(e\d{1,9}(?:-e\d{1,9}){0,8}|answer)")
"""The last character of the run's part has two bits that mean something."""

_THINKING = ("reasoning_text", "reasoning", "thinking")
_THOUGHTS = re.compile(
    r"\A(?:\s*<(?:(think|thinking)>.*?(?:</\1>|\Z)|details type=\"reasoning\".*?(?:</details>|\Z)))+\s*",
    re.DOTALL,
)
"""The thoughts that clients send back before what was said: they are no part of the conversation."""


class CallId(NamedTuple):
    """The id of a tool call, which names the run and the effect that wait for its result.

    `call_`, the 16 bytes of the run's id in base64 for URLs, and the effect's id with `-` for `/`: at most 40 of the
    characters that every provider takes, because clients carry a conversation from one to another.
    """

    run_id: str
    effect: str

    def __str__(self) -> str:
        """Return the id as clients see it."""
        raw = base64.urlsafe_b64encode(UUID(self.run_id).bytes).rstrip(b"=").decode()
        return f"call_{raw}_{self.effect.replace('/', '-')}"


def read_call_id(text: str, field: str) -> CallId:
    """Return the call that an id names.

    Raises:
        UsageError: It is none of ours.
    """
    found = _CALL.fullmatch(text)
    if found is None:
        raise unknown_call(text, field)
    run_id = UUID(bytes=base64.urlsafe_b64decode(found[1] + "=="))
    return CallId(str(run_id), found[2].replace("-", "/"))


def unknown_call(text: str, field: str) -> UsageError:
    """Return the error for an id that names no call that waits."""
    return UsageError(
        f"{field}: no call {text[:80]!r} waits for a result here; ids of calls come from this server's own replies",
        field=field,
    )


# -- as it is sent


class Part(Struct, frozen=True):
    """A part of what was said or thought; what is no text is not served."""

    type: Literal["text", "input_text", "output_text", "refusal", "reasoning_text", "reasoning", "thinking"]
    text: str = ""
    refusal: str = ""


Content = str | list[Part] | None


class CalledFunction(Struct, frozen=True):
    """A function that was called, and with what."""

    name: str
    arguments: str = ""


class MadeCall(Struct, frozen=True):
    """A call that was made."""

    id: str
    function: CalledFunction


class Message(Struct, frozen=True, kw_only=True):
    """A message of a chat; one of a tool brings what the call `tool_call_id` came to."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content = None
    name: str | None = None
    refusal: str | None = None
    tool_calls: list[MadeCall] | None = None
    tool_call_id: str = ""

    @property
    def text(self) -> str:
        """What it says, without thoughts."""
        text = self.content or self.refusal or ""
        if isinstance(text, list):
            text = "\n".join(part.text or part.refusal for part in text if part.type not in _THINKING)
        return _THOUGHTS.sub("", text) if self.role == "assistant" else text


class InputItem(Struct, frozen=True, kw_only=True):
    """An item of a response's input."""

    type: Literal["message", "function_call", "function_call_output", "reasoning"] = "message"
    role: Literal["system", "developer", "user", "assistant"] = "assistant"
    content: Content = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    output: Content = None

    @property
    def message(self) -> Message:
        """The same as a message of a chat; reasoning becomes a message without text."""
        if self.type == "function_call":
            call = MadeCall(self.call_id, CalledFunction(self.name, self.arguments))
            return Message(role="assistant", tool_calls=[call])
        if self.type == "function_call_output":
            return Message(role="tool", content=self.output, tool_call_id=self.call_id)
        return Message(role=self.role, content=self.content if self.type == "message" else None)


# -- as it is read


def results_in(messages: Sequence[Message]) -> dict[CallId, str]:
    """Return what the caller brought at a conversation's end for calls of a run that waits for it.

    Nothing where another message is last, or where the call was a run's answer: that is a conversation like any other.

    Raises:
        UsageError: The calls are those of no run, or of several, or one of them has no result.
    """
    brought = [*itertools.takewhile(lambda message: message.role == "tool", reversed(messages))][::-1]
    before = messages[: len(messages) - len(brought)]
    fields = [f"messages[{place}].tool_call_id" for place in range(len(before), len(messages))]
    calling = itertools.takewhile(lambda message: message.tool_calls, reversed(before))
    made = [call.id for message in calling for call in message.tool_calls or ()]
    missing = {*made} - {message.tool_call_id for message in brought}
    if brought and missing:
        message = f"the call {min(missing)[:80]!r} has no result; send one for each call"
        raise UsageError(message, field=fields[0])
    calls = {
        read_call_id(message.tool_call_id or "none", field): message.text
        for message, field in zip(brought, fields, strict=True)
    }
    if len({call.run_id for call in calls}) > 1:
        raise unknown_call(brought[-1].tool_call_id, fields[-1])
    return {} if any(call.effect == ANSWER for call in calls) else calls


def problem_of(messages: Sequence[Message], form: Mapping[str, Any] | None) -> str:
    """Return the problem that a conversation comes to.

    Args:
        form: The schema that the answer is put into afterwards.

    Raises:
        UsageError: Nothing is asked in it.
    """
    instructions = [each.text for each in messages if each.role in ("system", "developer")]
    asked = next((each for each in reversed(messages) if each.role == "user"), None)
    turns = [turn for message, turn in _turns(messages) if message is not asked]
    if asked is not None:
        problem = asked.text
    elif instructions and not turns:
        problem = instructions.pop()
    else:
        raise UsageError("messages: no message is from the user, so nothing is asked", field="messages")
    if form is not None:
        instructions.append(FORM.format(schema=msgspec.json.encode(form).decode()))
    whole = with_instructions(problem, "\n\n".join(instructions))
    room = min(_HISTORY_CHARS, MAX_QUOTED_CHARS - (len(whole) - len(problem)) - 1_000)
    return with_quoted(whole, "\n".join(quote_latest(turns, room, "earlier turns")))


def _turns(messages: Sequence[Message]) -> Iterator[tuple[Message, str]]:
    """Yield what was said, called and brought, with the message that has it."""
    called = dict[str, str]()
    for message in messages:
        text = beginning(message.text, MAX_TURN_CHARS)
        match message.role:
            case "user":
                name = beginning(message.name or "", 64).strip()
                yield message, f"user ({name}): {text}" if name else f"user: {text}"
            case "assistant":
                if text.strip():
                    yield message, f"assistant: {text}"
                for call in message.tool_calls or ():
                    called[call.id] = f"{call.function.name}({call.function.arguments})"
                    yield message, f"assistant called: {beginning(called[call.id], MAX_TURN_CHARS)}"
            case "tool":
                yield message, f"result of {called.get(message.tool_call_id, 'a tool')}: {text}"
            case _:
                pass


def messages_of(problem: str, answer: str | None) -> list[Message]:
    """Return the conversation that a run was about, its answer included."""
    asked = without_quoted(problem)
    messages = [Message(role="user", content=asked), Message(role="assistant", content=answer)]
    quoted = problem[len(asked) :].partition(f"\n\n{HEADING}\n")[2]
    if quoted:
        earlier = "\n".join(line.removeprefix(MARK) for line in quoted.split("\n"))
        messages.insert(0, Message(role="user", name="earlier", content=earlier))
    return messages
