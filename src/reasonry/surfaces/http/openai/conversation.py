"""Conversations as problems: the last thing the user said is what is to be solved.

What the system or the developer said are instructions for the answer; everything else is quoted below the problem, the
latest first where not all of it fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from ....core.json_schema import MAX_SCHEMA_CHARS
from ....core.problem import HEADING, MARK, MAX_QUOTED_CHARS, with_instructions, with_quoted, without_quoted
from ....core.text import beginning
from ....errors import UsageError
from .call_ids import CallId, read_call_id, unknown_call

MAX_TURN_CHARS = 20_000
"""Of one earlier turn that is quoted."""
_HISTORY_CHARS = MAX_QUOTED_CHARS - MAX_SCHEMA_CHARS - 2_000
"""Of the quoted turns, where the instructions leave as much."""

FORM = """The answer is put into JSON that fits this schema afterwards, so it must have all that the schema asks for:
{schema}"""

TEXT_PARTS = ("text", "input_text", "output_text", "refusal")


class Utterance(NamedTuple):
    """Something that was said, and by whom; calls and results of tools too."""

    speaker: str
    text: str


class Conversation(NamedTuple):
    """A conversation as it was sent.

    Attributes:
        results: What the caller brought for calls of a run, at the conversation's end.
    """

    turns: Sequence[Utterance]
    instructions: Sequence[str] = ()
    results: Mapping[CallId, str] = {}


class Transcript:
    """A conversation as it is read, entry by entry."""

    def __init__(self) -> None:
        self._turns: list[Utterance] = []
        self._instructions: list[str] = []
        self._called: dict[str, str] = {}
        self._last_called: list[str] = []
        self._results: dict[str, tuple[str, str]] = {}
        """What was brought since anything else was said, by the id of the call: the field with the id, and the text."""

    def instruct(self, text: str) -> None:
        """Take what the system or the developer said."""
        self._instructions.append(text)

    def say(self, speaker: str, text: str) -> None:
        """Take what somebody said."""
        self._results, self._last_called = {}, []
        if text.strip() or speaker != "assistant":
            self._turns.append(Utterance(speaker, text))

    def call(self, call_id: str, text: str) -> None:
        """Take a call that was made."""
        if self._results:
            self._results, self._last_called = {}, []
        self._called[call_id] = text
        self._last_called.append(call_id)
        self._turns.append(Utterance("assistant called", text))

    def bring(self, call_id: str, text: str, field: str) -> None:
        """Take what a call brought.

        Args:
            field: Where the id stands.
        """
        self._turns.append(Utterance(f"result of {self._called.get(call_id, 'a tool')}", text))
        self._results[call_id] = field, text

    def conversation(self) -> Conversation:
        """Return what was read.

        Raises:
            UsageError: It ends with results of calls that no run made, or of several, or with calls without a result.
        """
        return Conversation(self._turns, self._instructions, self._waiting_results())

    def _waiting_results(self) -> dict[CallId, str]:
        if not self._results:
            return {}
        fields = [field for field, _ in self._results.values()]
        missing = [call_id for call_id in self._last_called if call_id not in self._results]
        if missing:
            message = f"the call {missing[0][:80]!r} has no result; send one for each call"
            raise UsageError(message, field=fields[0])
        calls = {read_call_id(call_id, field): text for call_id, (field, text) in self._results.items()}
        if len({call.run_id for call in calls}) > 1:
            raise unknown_call(list(self._results)[-1], fields[-1])
        return calls


def text_of(content: Any, field: str) -> str:
    """Return the text of a message's content.

    Raises:
        UsageError: It holds anything else; the message names the part.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise UsageError(f"{field} must be text, or a list of parts", field=field)
    texts = list[str]()
    for place, part in enumerate(cast(list[Any], content)):
        where = f"{field}[{place}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in TEXT_PARTS:
            raise UsageError(
                f"{where}.type: parts of type {str(kind)[:40]!r} are not served; send text",
                field=f"{where}.type",
            )
        texts.append(take_text(cast(dict[str, Any], part), "refusal" if kind == "refusal" else "text", where))
    return "\n".join(texts)


def take_text(entry: Mapping[str, Any], name: str, where: str) -> str:
    """Return a text that an entry must have.

    Raises:
        UsageError: It has none.
    """
    value = entry.get(name)
    if not isinstance(value, str):
        raise UsageError(f"{where}.{name} must be text", field=f"{where}.{name}")
    return value


def read_messages(messages: Any) -> Conversation:
    """Read the messages of a chat.

    Raises:
        UsageError: One is not as it must be; the message names it.
    """
    if not isinstance(messages, list) or not messages:
        raise UsageError("messages must be a list of at least one message", field="messages")
    transcript = Transcript()
    for place, message in enumerate(cast(list[Any], messages)):
        where = f"messages[{place}]"
        if not isinstance(message, dict):
            raise UsageError(f"{where} must be an object", field=where)
        _read_message(transcript, cast(dict[str, Any], message), where)
    return transcript.conversation()


def _read_message(transcript: Transcript, message: Mapping[str, Any], where: str) -> None:
    role, content = message.get("role"), message.get("content")
    if role == "assistant":
        if content is None:
            content = message.get("refusal") or ""
        transcript.say("assistant", text_of(content, f"{where}.content"))
        for call_id, text in _calls(message, where):
            transcript.call(call_id, text)
        return
    if role not in ("system", "developer", "user", "tool"):
        raise UsageError(
            f"{where}.role: {str(role)[:40]!r} is not served; it is system, developer, user, assistant or tool",
            field=f"{where}.role",
        )
    text = text_of(content, f"{where}.content")
    match role:
        case "user":
            transcript.say(_speaker("user", message), text)
        case "tool":
            transcript.bring(take_text(message, "tool_call_id", where), text, f"{where}.tool_call_id")
        case _:
            transcript.instruct(text)


def _speaker(role: str, message: Mapping[str, Any]) -> str:
    name = message.get("name")
    return f"{role} ({beginning(name, 64)})" if isinstance(name, str) and name.strip() else role


def _calls(message: Mapping[str, Any], where: str) -> Iterable[tuple[str, str]]:
    if message.get("function_call") is not None:
        raise UsageError(
            f"{where}.function_call is not served; use tool_calls", field=f"{where}.function_call"
        )
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise UsageError(f"{where}.tool_calls must be a list", field=f"{where}.tool_calls")
    for place, call in enumerate(cast(list[Any], calls)):
        at = f"{where}.tool_calls[{place}]"
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise UsageError(f"{at} must be a call of a function", field=at)
        function = cast(dict[str, Any], function)
        name, arguments = take_text(function, "name", f"{at}.function"), function.get("arguments", "")
        yield take_text(cast(dict[str, Any], call), "id", at), f"{name}({arguments})"


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


def turns_of(problem: str, answer: str | None) -> list[Utterance]:
    """Return the conversation that a run was about, its answer included."""
    asked, _, quoted = problem.rpartition(f"\n\n{HEADING}\n")
    lines = [line.removeprefix(MARK) for line in quoted.split("\n")] if asked else []
    earlier = [Utterance("earlier", "\n".join(lines))] if lines and without_quoted(problem) != problem else []
    reply = [] if answer is None else [Utterance("assistant", answer)]
    return [*earlier, Utterance("user", without_quoted(problem)), *reply]
