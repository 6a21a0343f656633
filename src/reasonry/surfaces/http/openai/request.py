"""Reads the fields of a request, and turns the conversation in the request into the problem of a run.

A request for a response is converted to a request for a chat completion. The user's last message is the problem. The
messages of the system and the developer are instructions for the answer. All other messages are quoted below the
problem. If there is no room for all messages, the oldest messages are omitted.
"""

import base64
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ....app.agent_calls import ListedParts, Options
from ....blocks.toolcard import ToolCard
from ....core.budget import Budget
from ....core.json_schema import MAX_SCHEMA_CHARS, schema_fault
from ....core.problem import (
    HEADING,
    INSTRUCTIONS,
    MARK,
    MAX_QUOTED_CHARS,
    quote_latest,
    with_quoted,
    without_quoted,
)
from ....errors import UsageError
from ....text import did_you_mean, shorten
from ....tools.catalog import CallersTool
from ..documents import read_form

Fields = TypeVar("Fields", bound=Struct)
Tool = TypeVar("Tool")
Form = dict[str, Any]

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Verbosity = Literal["low", "medium", "high"]
Penalty = Annotated[float, Meta(ge=-2, le=2)]

MAX_TOOLS = 128
MAX_SHOWN_CHARS = 500

MAX_TURN_CHARS = 20_000
"""The length limit of a quoted message, tool call or result, in characters."""
_HISTORY_CHARS = MAX_QUOTED_CHARS - MAX_SCHEMA_CHARS - 2_000
"""The length limit of all quoted messages, calls and results together. It leaves room for the instructions."""

FORM = """The answer is put into JSON that fits this schema afterwards, so it must have all that the schema asks for:
{schema}"""

ANSWER = "answer"
"""If a call is the answer of a run, the call's id has this word instead of an effect. The run waits for no result."""

_CALL = re.compile(r"call_([A-Za-z0-9_-]{21}[AQgw])_(e\d{1,9}(?:-e\d{1,9}){0,8}|answer)")
"""Matches the id of a call. In base64, 16 bytes take 22 characters, of which the last is A, Q, g or w."""

_OTHER_TOOLS = re.compile(
    r"custom|namespace|mcp|(web|file|tool)_search\w*|computer\w*|code_interpreter|image_generation|(local_)?shell|apply_patch"
)
_NEAR = 0.8
"""The least similarity at which a name counts as a misspelling of another name."""
_THINKING = ("reasoning_text", "reasoning", "thinking")
_THOUGHTS = re.compile(
    r"\A(?:\s*<(?:(think|thinking)>.*?(?:</\1>|\Z)|details type=\"reasoning\".*?(?:</details>|\Z)))+\s*",
    re.DOTALL,
)
"""Matches thoughts at the start of a message that a client sends back. Thoughts do not belong to the conversation."""


class CallId(NamedTuple):
    """The id of a tool call. It consists of the id of the run and the id of the call's effect.

    The form is `call_RUN_EFFECT`: the run id's 16 bytes in URL-safe base64, and the effect's id with `-` for `/`.
    Clients move conversations between providers. All providers accept 40 characters, so 12 remain for the effect's id.
    """

    run_id: str
    effect: str

    def __str__(self) -> str:
        """Return the id as clients see it."""
        raw = base64.urlsafe_b64encode(UUID(self.run_id).bytes).rstrip(b"=").decode()
        return f"call_{raw}_{self.effect.replace('/', '-')}"


def read_call_id(text: str, field: str) -> CallId:
    """Read a call id. If the id does not have the form of this server's ids, raise UsageError."""
    found = _CALL.fullmatch(text)
    if found is None:
        raise unknown_call(text, field)
    return CallId(str(UUID(bytes=base64.urlsafe_b64decode(found[1] + "=="))), found[2].replace("-", "/"))


def unknown_call(text: str, field: str) -> UsageError:
    """Return the error for a tool result that no run is waiting for. `text` is the id of the tool call."""
    return UsageError(
        f"{field}: no call {text[:80]!r} waits for a result here; ids of calls come from this server's own replies",
        field=field,
    )


# -- the parts of a request


class Part(Struct, frozen=True):
    """A part of a message, or of the thoughts in a message. Only text is supported."""

    type: Literal["text", "input_text", "output_text", "refusal", "reasoning_text", "reasoning", "thinking"]
    text: str = ""
    refusal: str = ""


Content = str | list[Part] | None


class CalledFunction(Struct, frozen=True):
    """The function and the arguments of a call."""

    name: str
    arguments: str = ""


class MadeCall(Struct, frozen=True):
    """A tool call in an assistant's message."""

    id: str
    function: CalledFunction


class Message(Struct, frozen=True, kw_only=True):
    """A message of a chat. A tool's message has the result of the call `tool_call_id`."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content = None
    name: str | None = None
    refusal: str | None = None
    tool_calls: list[MadeCall] | None = None
    tool_call_id: str = ""

    @property
    def text(self) -> str:
        """The text of the message, without the thoughts of an assistant."""
        text = self.content or self.refusal or ""
        if isinstance(text, list):
            text = "\n".join(part.text or part.refusal for part in text if part.type not in _THINKING)
        return _THOUGHTS.sub("", text) if self.role == "assistant" else text


class InputItem(Struct, frozen=True, kw_only=True):
    """An item of a response's input."""

    type: Literal["message", "function_call", "function_call_output", "reasoning", "item_reference"] = (
        "message"
    )
    id: str = ""
    role: Literal["system", "developer", "user", "assistant"] = "assistant"
    content: Content = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    output: Content = None

    @property
    def message(self) -> Message:
        """The item as a message of a chat. Reasoning becomes a message without text."""
        if self.type == "function_call":
            call = MadeCall(self.call_id, CalledFunction(self.name, self.arguments))
            return Message(role="assistant", tool_calls=[call])
        if self.type == "function_call_output":
            return Message(role="tool", content=self.output, tool_call_id=self.call_id)
        return Message(role=self.role, content=self.content if self.type == "message" else None)


# -- the conversation


def results_in(messages: Sequence[Message]) -> dict[CallId, str]:
    """Return the tool results at the end of a conversation, keyed by call id.

    If the last message is not a tool result, or if a call was the answer of a run, return an empty dict.

    Raises:
        UsageError: A call is not from this server, the calls belong to several runs, or a result is missing.
    """
    before = [*itertools.dropwhile(lambda message: message.role == "tool", reversed(messages))]
    fields = [f"messages[{place}].tool_call_id" for place in range(len(before), len(messages))]
    answers = dict(zip(fields, messages[len(before) :], strict=True))
    calling = itertools.takewhile(lambda message: message.tool_calls, before)
    made = {call.id for message in calling for call in message.tool_calls or ()}
    missing = made - {message.tool_call_id for message in answers.values()}
    if answers and missing:
        raise UsageError(f"the call {min(missing)[:80]!r} has no result; send one for each", field=fields[0])
    calls = {read_call_id(each.tool_call_id, field): each.text for field, each in answers.items()}
    if len({call.run_id for call in calls}) > 1:
        raise unknown_call(messages[-1].tool_call_id, fields[-1])
    return {} if any(call.effect == ANSWER for call in calls) else calls


def problem_of(messages: Sequence[Message], form: Mapping[str, Any] | None) -> str:
    """Turn a conversation into a problem.

    Args:
        form: The JSON schema of the answer, or None for text.

    Raises:
        UsageError: No message is from the user. (If all messages are instructions, the last message is the problem.)
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
    whole = with_quoted(problem, "\n\n".join(instructions), INSTRUCTIONS)
    room = min(_HISTORY_CHARS, MAX_QUOTED_CHARS - (len(whole) - len(problem)) - 1_000)
    return with_quoted(whole, "\n".join(quote_latest(turns, room, "earlier turns")))


def _turns(messages: Sequence[Message]) -> Iterator[tuple[Message, str]]:
    """Yield (message, text) pairs. The text to quote is the message's own text, a tool call, or a tool result."""
    called = dict[str, str]()
    for message in messages:
        text, name = shorten(message.text, MAX_TURN_CHARS), shorten(message.name or "", 64).strip()
        if message.role == "tool":
            yield message, f"result of {called.get(message.tool_call_id, 'a tool')}: {text}"
        elif message.role in ("user", "assistant") and text.strip():
            yield message, f"{message.role}{f' ({name})' if name else ''}: {text}"
        for call in message.tool_calls or ():
            called[call.id] = f"{call.function.name}({call.function.arguments})"
            yield message, f"assistant called: {shorten(called[call.id], MAX_TURN_CHARS)}"


def messages_of(problem: str, answer: str | None) -> list[Message]:
    """Turn a run's problem back into the conversation, and add the answer of the run as the last message."""
    asked = without_quoted(problem)
    messages = [Message(role="user", content=asked), Message(role="assistant", content=answer)]
    if quoted := problem[len(asked) :].partition(f"\n\n{HEADING}\n")[2]:
        earlier = "\n".join(line.removeprefix(MARK) for line in quoted.split("\n"))
        messages.insert(0, Message(role="user", name="earlier", content=earlier))
    return messages


class OwnFields(ListedParts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The field `reasonry`, with this server's own parameters.

    Args:
        on_disconnect: Whether a run ends or continues when its client disconnects.
        reasoning: Whether the reply includes the thoughts.
    """

    strategy: str | None = None
    options: Options = msgspec.field(default_factory=dict)
    budget: Budget | None = None
    on_disconnect: Literal["cancel", "leave"] = "cancel"
    reasoning: bool = True


class Function(Struct, frozen=True):
    """A function of the caller. A run may call the function, or answer with a call of the function."""

    name: Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    description: str | None = None
    parameters: Form | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` if `parameters` is not a usable JSON schema."""
        if fault := schema_fault(self.parameters or {}):
            raise ValueError(f"parameters: {fault}")

    @property
    def form(self) -> Form:
        """The JSON schema of the function's arguments."""
        about = {"description": self.description} if self.description else {}
        return {"type": "object", **(self.parameters or {}), **about}


class ChatTool(Struct, frozen=True, tag_field="type", tag="function"):
    """A tool of the caller, as a request for a chat completion defines it."""

    function: Function


class ResponseTool(Function, frozen=True, tag_field="type", tag="function"):
    """A tool of the caller, as a request for a response defines it."""

    strict: bool | None = False


class AnswerFormat(Struct, frozen=True, omit_defaults=True):
    """The format of the answer. Chat completions have its schema in `json_schema`, and responses in `schema`."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: Form | None = None
    name: str = ""
    schema: Form | None = None

    def __post_init__(self) -> None:
        """Refuse a schema that cannot be used."""
        if self.type == "json_schema" and (fault := schema_fault(self.form)):
            raise ValueError(f"the schema cannot be used: {fault}")

    @property
    def form(self) -> Form | None:
        """The JSON schema of the answer, or None for text."""
        if self.type == "json_schema":
            return (self.json_schema or {}).get("schema", self.schema)
        return {"type": "object"} if self.type == "json_object" else None


class TextOptions(Struct, frozen=True):
    """The field `text` of a request for a response."""

    format: AnswerFormat = AnswerFormat("text")
    verbosity: Verbosity | UnsetType | None = UNSET


class ReasoningOptions(Struct, frozen=True):
    """The field `reasoning`, which has no effect here."""

    effort: Effort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None


class WithoutEffect(Struct, frozen=True, kw_only=True):
    """Fields that have no effect on this server, including fields of other servers. The values must be legal anyway."""

    temperature: Annotated[float, Meta(ge=0, le=2)] = 1
    top_p: Annotated[float, Meta(ge=0, le=1)] = 1
    presence_penalty: Penalty = 0
    frequency_penalty: Penalty = 0
    top_k: float = 0
    top_a: float = 0
    min_p: float = 0
    repeat_penalty: float = 1
    repetition_penalty: float = 1
    seed: int = 0
    min_tokens: int = 0
    user: str | Form = ""
    safety_identifier: str = ""
    prompt_cache_key: str = ""
    prompt_cache_retention: Literal["in_memory", "in-memory", "24h"] = "in_memory"
    metadata: dict[str, str] = {}
    store: bool = True
    service_tier: Literal["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"] = "auto"
    truncation: Literal["auto", "disabled"] = "auto"
    verbosity: Verbosity = "medium"
    reasoning_effort: Effort = "medium"
    reasoning: ReasoningOptions = ReasoningOptions()
    access_programs: Form = {}
    context_management: list[Form] = []
    image: Form = {}
    models: list[str] = []
    moderation: Form = {}
    prediction: Form = {}
    prompt_cache_options: Form = {}
    web_search_options: Form = {}


class SharedFields(Struct, Generic[Tool], frozen=True, kw_only=True):
    """The fields shared by both APIs."""

    model: str
    stream: bool = False
    stream_options: dict[str, bool] = {}
    tools: Annotated[tuple[Tool, ...], Meta(max_length=MAX_TOOLS)] = ()
    tool_choice: Literal["auto", "none", "required"] | Tool = "auto"
    parallel_tool_calls: bool = True
    reasonry: OwnFields = OwnFields()

    # Unsupported fields that would change the reply. Each accepts only the value that requests no change.
    n: Literal[1] = 1
    logprobs: None = None
    top_logprobs: Literal[0] = 0
    logit_bias: Annotated[Form, Meta(max_length=0)] = {}
    modalities: list[Literal["text"]] = []
    audio: None = None
    functions: Annotated[list[Form], Meta(max_length=0)] = []
    function_call: Literal["none", "auto"] = "auto"
    include: list[Literal["reasoning.encrypted_content"]] = []
    conversation: None = None
    prompt: None = None
    max_tool_calls: None = None


class ChatFields(SharedFields[ChatTool], frozen=True, kw_only=True):
    """The supported fields of a request for a chat completion."""

    messages: Annotated[list[Message], Meta(min_length=1)]
    stop: str | Annotated[list[str], Meta(max_length=4)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    response_format: AnswerFormat = AnswerFormat("text")

    @property
    def forced(self) -> list[Function]:
        """The functions that a forced call may name. The list is empty unless `tool_choice` forces a call."""
        choice = self.tool_choice
        named = choice.function.name if isinstance(choice, ChatTool) else None
        return [tool.function for tool in self.tools if choice == "required" or tool.function.name == named]

    @property
    def form(self) -> Form | None:
        """The JSON schema of the answer, or None for text.

        Raises:
            UsageError: The request forces a call of a function that the request does not define.
        """
        if self.tool_choice in ("auto", "none"):
            return self.response_format.form
        if not self.forced:
            message = "tool_choice: there is no such function among the tools"
            raise UsageError(message, field="tool_choice", code="unsupported_value")
        return form_of_call(self.forced)

    @property
    def callers_tools(self) -> list[CallersTool]:
        """The tools that the caller executes for the run. The list is empty unless `tool_choice` is `auto`."""
        functions = [tool.function for tool in self.tools if self.tool_choice == "auto"]
        cards = [ToolCard(each.name, each.description or "", each.parameters or {}) for each in functions]
        return [CallersTool(card) for card in cards]


class ResponseFields(SharedFields[ResponseTool], frozen=True, kw_only=True):
    """The supported fields of a request for a response."""

    input: str | Annotated[list[InputItem], Meta(min_length=1)]
    instructions: str | None = None
    previous_response_id: str | None = None
    background: bool = False
    max_output_tokens: Annotated[int, Meta(ge=1)] | None = None
    text: TextOptions = TextOptions()

    def as_chat(self, earlier: Sequence[Message]) -> ChatFields:
        """Convert this request to a request for a chat completion.

        Args:
            earlier: The conversation up to the response that this request continues.
        """
        items = [InputItem(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        instructions = [Message(role="system", content=self.instructions)] if self.instructions else []
        choice = self.tool_choice
        return ChatFields(
            model=self.model,
            messages=[*instructions, *earlier, *(item.message for item in items)],
            stream=self.stream,
            max_tokens=self.max_output_tokens,
            response_format=self.text.format,
            tools=tuple(ChatTool(tool) for tool in self.tools),
            tool_choice=ChatTool(choice) if isinstance(choice, ResponseTool) else choice,
            parallel_tool_calls=self.parallel_tool_calls,
            reasonry=self.reasonry,
        )


# -- reading


def read_fields(body: Any, form: type[Fields]) -> Fields:
    """Read the supported fields of a request's body into a Struct.

    Fields without effect are ignored with a warning, because the strategy decides how a model is sampled.

    Raises:
        UsageError: A field is invalid, is misspelled, or belongs to the other API.
    """
    fields = {name: value for name, value in read_form(body, Form).items() if value is not None}
    if fields.get("logprobs") is False:
        del fields["logprobs"]
    if isinstance(tools := fields.get("tools"), list):
        fields["tools"] = [tool for tool in tools if not _is_other_tool(tool)]
    served, others = {*form.__struct_fields__}, {*WithoutEffect.__struct_fields__}
    read_form(fields, WithoutEffect)
    elsewhere = {*ChatFields.__struct_fields__, *ResponseFields.__struct_fields__}
    for name in sorted(fields.keys() - served - others):
        if name in elsewhere or get_close_matches(name, served | others, 1, _NEAR):
            hint = did_you_mean(name, served | others)
            raise UsageError(f"there is no field {name[:60]!r} here.{hint}", field=name[:60])
    return read_form(fields, form)


def passed_over(body: Mapping[str, Any], form: type[Struct]) -> list[str]:
    """Return warnings about the ignored parts of a request."""
    fields = {name for name in body.keys() - {*form.__struct_fields__} if body[name] is not None}
    kinds = {tool["type"] for tool in body.get("tools") or () if _is_other_tool(tool)}
    found = ("without effect here: ", fields), ("tools: only functions are served, not ", kinds)
    return [about + shorten(", ".join(sorted(names)), MAX_SHOWN_CHARS) for about, names in found if names]


def _is_other_tool(tool: Any) -> bool:
    """Whether a tool is of a known type other than `function`, such as `web_search`."""
    kind = tool.get("type") if isinstance(tool, dict) else None
    return isinstance(kind, str) and _OTHER_TOOLS.fullmatch(kind) is not None


# -- an answer that is a call


def form_of_call(functions: Sequence[Function]) -> Form:
    """Return the schema of an answer that is a function call.

    For one function, the answer is only the arguments. For several functions, the answer also names the function.
    """
    if len(functions) == 1:
        return functions[0].form
    parts, calls = dict[str, Any](), list[Form]()
    for function in functions:
        place = f"#/$defs/{function.name}"
        # The schema of the function is moved into `$defs`, so the references within it change.
        written = msgspec.json.encode(function.form).replace(b'"$ref":"#', f'"$ref":"{place}'.encode())
        parts[function.name] = msgspec.json.decode(written)
        calls.append(_object_of(tool={"const": function.name}, arguments={"$ref": place}))
    return {**_object_of(call={"anyOf": calls}), "$defs": parts}


def _object_of(**members: Form) -> Form:
    return {"type": "object", "properties": members, "required": [*members], "additionalProperties": False}


def read_call(functions: Sequence[Function], answer: str) -> tuple[str, Form] | None:
    """Return the function name and the arguments of the call in an answer. If the answer is incomplete, return None."""
    try:
        written = msgspec.json.decode(answer, type=Form)
    except msgspec.DecodeError:
        return None
    if len(functions) == 1:
        return functions[0].name, written
    call = written.get("call")
    return (call["tool"], call["arguments"]) if call else None
