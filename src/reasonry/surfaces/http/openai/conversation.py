"""Conversations as problems: the last thing the user said is what is to be solved.

What the system or the developer said are instructions for the answer; everything else is quoted below the problem, the
latest first where not all of it fits.
"""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple
from uuid import UUID

import msgspec
from msgspec import Struct

from ....core.json_schema import MAX_SCHEMA_CHARS
from ....core.problem import HEADING, MARK, MAX_QUOTED_CHARS, with_instructions, with_quoted, without_quoted
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

_CALL = re.compile(r"call_([A-Za-z0-9_-]{22})_(e\d{1,9}(?:-e\d{1,9}){0,8}|answer)")

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
    if found := _CALL.fullmatch(text):
        run_id = UUID(bytes=base64.urlsafe_b64decode(found[1] + "=="))
        call = CallId(str(run_id), found[2].replace("-", "/"))
        # The last character of the run's part has bits that mean nothing.
        if str(call) == text:
            return call
    raise unknown_call(text, field)


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
        """The same as a message of a chat; a model's thoughts, which are not quoted, as one that says nothing."""
        match self.type:
            case "message":
                return Message(role=self.role, content=self.content)
            case "function_call":
                call = MadeCall(self.call_id, CalledFunction(self.name, self.arguments))
                return Message(role="assistant", tool_calls=[call])
            case "function_call_output":
                return Message(role="tool", content=self.output, tool_call_id=self.call_id)
            case "reasoning":
                return Message(role="assistant")


# -- as it is read


class Utterance(NamedTuple):
    """Something that was said, and by whom; calls and results of tools too.

    Attributes:
        called: The id of the call that is made here.
        brought: The id of the call whose result this is.
        field: Where that id stands.
    """

    speaker: str
    text: str
    called: str = ""
    brought: str = ""
    field: str = ""


class Conversation(NamedTuple):
    """A conversation: what was said, and instructions for the answer."""

    turns: Sequence[Utterance]
    instructions: Sequence[str] = ()


def read_messages(messages: Sequence[Message]) -> Conversation:
    """Read the messages of a chat."""
    turns, instructions, called = list[Utterance](), list[str](), dict[str, str]()
    for place, message in enumerate(messages):
        text = _text(message.content) or message.refusal or ""
        match message.role:
            case "user":
                name = beginning(message.name or "", 64).strip()
                turns.append(Utterance(f"user ({name})" if name else "user", text))
            case "assistant":
                text = _THOUGHTS.sub("", text)
                turns += [Utterance("assistant", text)] if text.strip() else []
                for call in message.tool_calls or ():
                    called[call.id] = f"{call.function.name}({call.function.arguments})"
                    turns.append(Utterance("assistant called", called[call.id], called=call.id))
            case "tool":
                speaker = f"result of {called.get(message.tool_call_id, 'a tool')}"
                field = f"messages[{place}].tool_call_id"
                turns.append(Utterance(speaker, text, brought=message.tool_call_id or "none", field=field))
            case _:
                instructions.append(text)
    return Conversation(turns, instructions)


def _text(content: Content) -> str:
    if isinstance(content, list):
        return "\n".join(part.text or part.refusal for part in content if part.type not in _THINKING)
    return content or ""


def results_in(turns: Sequence[Utterance]) -> dict[CallId, str]:
    """Return what the caller brought at a conversation's end for calls of a run that waits for it.

    Nothing where another turn is last, or where the call was a run's answer: that is a conversation like any other.

    Raises:
        UsageError: The calls are those of no run, or of several, or one of them has no result.
    """
    latest = reversed(turns)
    brought = {turn.brought: turn for turn in itertools.takewhile(lambda turn: turn.brought, latest)}
    before = turns[: max((place + 1 for place, turn in enumerate(turns) if not turn.brought), default=0)]
    for turn in itertools.takewhile(lambda turn: turn.called, reversed(before)):
        if brought and turn.called not in brought:
            message = f"the call {turn.called[:80]!r} has no result; send one for each call"
            raise UsageError(message, field=next(reversed(brought.values())).field)
    calls = {read_call_id(turn.brought, turn.field): turn.text for turn in reversed(brought.values())}
    if len({call.run_id for call in calls}) > 1:
        last = next(iter(brought.values()))
        raise unknown_call(last.brought, last.field)
    return {} if any(call.effect == ANSWER for call in calls) else calls


def problem_of(conversation: Conversation, form: Mapping[str, Any] | None) -> str:
    """Return the problem that a conversation comes to.

    Args:
        form: The schema that the answer is put into afterwards.

    Raises:
        UsageError: Nothing is asked in it.
    """
    turns, instructions = list(conversation.turns), list(conversation.instructions)
    last = max((place for place, turn in enumerate(turns) if turn.speaker.startswith("user")), default=None)
    if last is not None:
        problem = turns.pop(last).text
    elif instructions and not turns:
        problem = instructions.pop()
    else:
        raise UsageError("messages: no message is from the user, so nothing is asked", field="messages")
    if form is not None:
        instructions.append(FORM.format(schema=msgspec.json.encode(form).decode()))
    asked = with_instructions(problem, "\n\n".join(instructions))
    return with_quoted(asked, quote_turns(turns, MAX_QUOTED_CHARS - (len(asked) - len(problem)) - 1_000))


def quote_turns(turns: Sequence[Utterance], room: int) -> str:
    """Return turns as one text of at most about so many characters, the latest of them."""
    quoted, room = list[str](), min(room, _HISTORY_CHARS)
    for turn in reversed(turns):
        text = f"{turn.speaker}: {beginning(turn.text, MAX_TURN_CHARS)}"
        room -= len(text) + len(MARK) * (text.count("\n") + 1) + 1
        if room < 0:
            break
        quoted.append(text)
    left_out = len(turns) - len(quoted)
    gap = [f"({left_out} earlier turns are left out here)"] if left_out else []
    return "\n".join([*gap, *reversed(quoted)])


def messages_of(problem: str, answer: str | None) -> list[Message]:
    """Return the conversation that a run was about, its answer included."""
    asked, _, quoted = problem.rpartition(f"\n\n{HEADING}\n")
    messages = [
        Message(role="user", content=without_quoted(problem)),
        Message(role="assistant", content=answer),
    ]
    if not asked or without_quoted(problem) == problem:
        return messages
    lines = [line.removeprefix(MARK) for line in quoted.split("\n")]
    return [Message(role="user", name="earlier", content="\n".join(lines)), *messages]
