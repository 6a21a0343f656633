"""The fields of requests, and what they name as a model: `STRATEGY?OPTION=VALUE&…@MODEL`.

A request for a response is read as one for a chat completion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, cast
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta, Struct

from ....app.allow_list import AllowList
from ....core.budget import Budget
from ....core.json_schema import schema_fault
from ....core.registry import Registry, find_strategy, strategies_at_hand
from ....core.text import beginning
from ....core.toolcard import ToolCard
from ....errors import NotFoundError, UsageError
from ....reading.names import did_you_mean
from ....strategies.choice import AUTO
from ..documents import read_form
from .conversation import InputItem, Message

T = TypeVar("T", bound=Struct)

MAX_TOOLS = 128
MAX_NAME_CHARS = 2_000
MAX_SHOWN_CHARS = 500
_TOOL_NAME = r"^[a-zA-Z0-9_-]{1,64}$"

REFUSED: Mapping[str, Sequence[Any]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "audio": (),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "background": (False,),
    "include": ([], ["reasoning.encrypted_content"]),
    "conversation": (),
    "prompt": (),
    "max_tool_calls": (),
}
"""Fields that would change what the reply holds, with the values that ask for nothing beyond what is served.

All others that are not served change nothing, and are passed over with a warning: how a model is sampled is the
strategy's business.
"""


class OwnFields(Struct, frozen=True, forbid_unknown_fields=True):
    """The field `reasonry`: what only this server takes.

    Args:
        on_disconnect: What becomes of the run of a client that hangs up.
        reasoning: Whether the thoughts come with the reply.
    """

    strategy: str | None = None
    options: dict[str, Any] = {}
    budget: Budget | None = None
    verifier: str | None = None
    tools: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    documents: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    on_disconnect: Literal["cancel", "leave"] = "cancel"
    reasoning: bool = True


class StreamOptions(Struct, frozen=True):
    """The field `stream_options`."""

    include_usage: bool = False


class Function(Struct, frozen=True):
    """A function of the caller that a run may call."""

    name: Annotated[str, Meta(pattern=_TOOL_NAME)]
    description: str | None = None
    parameters: dict[str, Any] | None = None

    @property
    def card(self) -> ToolCard:
        """What the run is shown of it."""
        return ToolCard(self.name, self.description or "", self.parameters or {})


class ChatTool(Struct, frozen=True, tag_field="type", tag="function"):
    """A tool of the caller."""

    function: Function


class ResponseTool(Function, frozen=True, tag_field="type", tag="function"):
    """A tool of the caller."""


class TextOptions(Struct, frozen=True):
    """The field `text`."""

    format: Any = None


class SharedFields(Struct, frozen=True, kw_only=True):
    """The fields that requests of both APIs have."""

    model: str
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    tool_choice: Any = None
    parallel_tool_calls: bool = True
    reasonry: OwnFields = OwnFields()


class ChatFields(SharedFields, frozen=True, kw_only=True):
    """The fields of a request for a chat completion that are served."""

    messages: Annotated[list[Message], Meta(min_length=1)]
    stop: str | Annotated[list[str], Meta(max_length=4)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    response_format: Any = None
    tools: tuple[ChatTool, ...] = ()

    @property
    def form(self) -> dict[str, Any] | None:
        """The JSON schema of the answer; raises as `answer_form`."""
        form = answer_form(self.response_format, "response_format")
        return form_of_call(self.forced) if self.forced else form

    @property
    def forced(self) -> list[Function]:
        """The functions of which the answer must call one.

        Raises:
            UsageError: It is not among the tools, or the choice is none that is served.
        """
        functions = [tool.function for tool in self.tools]
        match self.tool_choice:
            case None | "auto" | "none":
                return []
            case "required":
                forced, wrong = functions, "no function is among the tools"
            case {"type": "function", "function": {"name": name}} | {"type": "function", "name": name}:
                forced = [function for function in functions if function.name == name]
                wrong = "this function is not among the tools"
            case _:
                forced, wrong = [], "it is auto, none, required or a function"
        if not forced:
            raise UsageError(f"tool_choice: {wrong}", field="tool_choice", code="unsupported_value")
        return forced

    @property
    def stops(self) -> list[str]:
        """Texts that end the answer."""
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return [text for text in stops if text]

    @property
    def streams_text(self) -> bool:
        """Whether what the model writes is passed on as it comes in."""
        return self.stream and self.reasonry.reasoning

    def cards(self) -> list[ToolCard]:
        """Return the cards of the tools that the run may ask its caller to call.

        None where none may be called, or where the answer itself is a call.

        Raises:
            UsageError: A tool is not as it must be.
        """
        functions = [tool.function for tool in self.tools]
        if len(functions) > MAX_TOOLS or len({function.name for function in functions}) < len(functions):
            raise UsageError(f"tools: at most {MAX_TOOLS} tools, each with a name of its own", field="tools")
        for place, function in enumerate(functions):
            if function.parameters is not None and (fault := schema_fault(function.parameters)):
                where = f"tools[{place}].parameters"
                raise UsageError(f"{where}: {fault}", field=where)
        return [] if self.tool_choice == "none" or self.forced else [function.card for function in functions]


class ResponseFields(SharedFields, frozen=True, kw_only=True):
    """The fields of a request for a response that are served."""

    input: str | Annotated[list[InputItem], Meta(min_length=1)]
    instructions: str | None = None
    previous_response_id: str | None = None
    max_output_tokens: Annotated[int, Meta(ge=1)] | None = None
    text: TextOptions = TextOptions()
    tools: tuple[ResponseTool, ...] = ()

    def as_chat(self, earlier: Sequence[Message]) -> ChatFields:
        """Return the same as a request for a chat completion.

        Args:
            earlier: What was said in the response that this one goes on from, and before it.

        Raises:
            UsageError: The form of the answer is not as it must be.
        """
        answer_form(self.text.format, "text.format")
        items = [InputItem(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        instructions = [Message(role="system", content=self.instructions)] if self.instructions else []
        return ChatFields(
            model=self.model,
            messages=[*instructions, *earlier, *(item.message for item in items)],
            stream=self.stream,
            max_tokens=self.max_output_tokens,
            response_format=self.text.format,
            tools=tuple(ChatTool(tool) for tool in self.tools),
            tool_choice=self.tool_choice,
            parallel_tool_calls=self.parallel_tool_calls,
            reasonry=self.reasonry,
        )


def read_fields(body: Any, form: type[T]) -> T:
    """Return the fields that are served, as the Struct that has them.

    Raises:
        UsageError: A field that would change the reply is not served, or one is not as it must be.
    """
    if not isinstance(body, dict):
        raise UsageError("the body must be a JSON object", field="body")
    fields = {name: value for name, value in cast(dict[str, Any], body).items() if value is not None}
    for name, taken in REFUSED.items():
        if name in fields and fields[name] not in taken:
            only = f"; only {msgspec.json.encode(taken[0]).decode()} is taken" if taken else ""
            message = f"{name}: this field is not served{only}"
            raise UsageError(message, field=name, code="unsupported_parameter")
    served = {name: fields[name] for name in form.__struct_fields__ if name in fields}
    if isinstance(tools := served.get("tools"), list):
        served["tools"] = [tool for tool in cast(list[Any], tools) if not _is_other_tool(tool)]
    return read_form(served, form)


def passed_over(body: Mapping[str, Any], form: type[Struct]) -> list[str]:
    """Return warnings about what of a request is passed over."""
    known = {*form.__struct_fields__, *REFUSED}
    fields = sorted(name for name, value in body.items() if name not in known and value is not None)
    kinds = sorted({tool["type"] for tool in body.get("tools") or () if _is_other_tool(tool)})
    shown = [beginning(", ".join(names), MAX_SHOWN_CHARS) for names in (fields, kinds)]
    warnings = [f"without effect here: {shown[0]}"] if fields else []
    return [*warnings, f"tools: only functions are served, not {shown[1]}"] if kinds else warnings


def _is_other_tool(tool: Any) -> bool:
    """Whether it is a tool that is no function, such as those that OpenAI's own servers run."""
    return isinstance(tool, dict) and tool.get("type") != "function" and isinstance(tool.get("type"), str)


def form_of_call(functions: Sequence[Function]) -> dict[str, Any]:
    """Return the schema of the answer that is a call of one of the functions.

    That of a single function is what it takes; that of several says which is called too.
    """
    forms = {
        function.name: {
            "type": "object",
            **(function.parameters or {}),
            **({"description": function.description} if function.description else {}),
        }
        for function in functions
    }
    if len(functions) == 1:
        return forms[functions[0].name]
    calls = [
        {
            "type": "object",
            "properties": {"tool": {"const": name}, "arguments": {"$ref": f"#/$defs/{name}"}},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        }
        for name in forms
    ]
    # What a function's schema refers to within itself lies deeper now.
    parts = {
        name: msgspec.json.decode(
            msgspec.json.encode(form).replace(b'"$ref":"#', f'"$ref":"#/$defs/{name}'.encode())
        )
        for name, form in forms.items()
    }
    call = {"anyOf": calls}
    return {"type": "object", "properties": {"call": call}, "required": ["call"], "$defs": parts}


def read_call(functions: Sequence[Function], answer: str) -> tuple[str, dict[str, Any]] | None:
    """Return the name and the arguments of the call that an answer is; None: it is none, and was cut short."""
    try:
        written = msgspec.json.decode(answer, type=dict[str, Any])
    except msgspec.DecodeError:
        return None
    if len(functions) == 1:
        return functions[0].name, written
    call = written.get("call")
    return (call["tool"], call["arguments"]) if call else None


def answer_form(wanted: Any, field: str) -> dict[str, Any] | None:
    """Return the schema of the answer that a format asks for; None for text.

    Args:
        wanted: {`type`: …}, with the schema beside it, or under `json_schema`.

    Raises:
        UsageError: It is none that is served.
    """
    match wanted:
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return {"type": "object"}
        case {"type": "json_schema", "json_schema": {"schema": schema}} | {
            "type": "json_schema",
            "schema": schema,
        }:
            fault = schema_fault(schema)
        case {"type": "json_schema"}:
            schema, fault = None, "there is none"
        case _:
            message = f"{field}.type: it is text, json_object or json_schema"
            raise UsageError(message, field=f"{field}.type")
    if fault:
        raise UsageError(f"{field}: the schema cannot be used: {fault}", field=field)
    return schema


# -- models


class Named(NamedTuple):
    """What a name stands for; `model` is None where the operator's default is meant."""

    strategy: str
    model: str | None
    options: dict[str, Any]


def model_ids(strategies: Registry, allowed: AllowList) -> list[str]:
    """Return the names to choose from: the strategies on the default model, then on each other that the operator lists.

    More may be asked for: `offline`, which solves a few kinds of puzzle only, and the default by its name.
    """
    at_hand = strategies_at_hand(strategies).items()
    names = [AUTO, *(name for name, strategy in at_hand if strategy.is_driven)]
    by_spec = dict[str, str]()
    for model, spec in allowed.models.items():
        by_spec.setdefault(spec, model)
    others = [model for spec, model in by_spec.items() if spec != allowed.default_model]
    return [*names, *(f"{name}@{model}" for model in others for name in names)]


def read_name(name: str, strategies: Registry, allowed: AllowList) -> Named:
    """Return what a name stands for.

    Raises:
        NotFoundError: `model_not_found`: there is no such strategy, or the operator has not listed the model.
        UsageError: Its options cannot be read.
    """
    if len(name) > MAX_NAME_CHARS:
        raise NotFoundError("the model's name is too long", code="model_not_found", field="model")
    head, at, model = name.partition("@")
    written, mark, options = head.partition("?")
    written, model = written.strip(), model.strip()
    strategy = AUTO if written.lower() == AUTO else _strategy(written, strategies)
    if at and model not in allowed.model_names:
        raise NotFoundError(
            f"there is no model {model[:100]!r} here; the operator has listed: {', '.join(allowed.model_names)}",
            code="model_not_found",
            field="model",
            choices=allowed.model_names,
        )
    try:
        pairs = (
            parse_qsl(options, keep_blank_values=True, strict_parsing=True, max_num_fields=50) if mark else []
        )
    except ValueError:
        message = "options in a model's name are written ?NAME=VALUE&NAME=VALUE, before the @"
        raise UsageError(message, field="model") from None
    return Named(strategy, model if at else None, dict(pairs))


def _strategy(name: str, strategies: Registry) -> str:
    found = find_strategy(name, strategies) if name else None
    if found is not None and found.is_driven:
        return found.name
    choices = [AUTO, *(each.name for each in strategies_at_hand(strategies).values() if each.is_driven)]
    raise NotFoundError(
        f"there is no strategy {name[:100]!r}.{did_you_mean(name, choices)} A model is named STRATEGY or "
        f"STRATEGY@MODEL, where STRATEGY is one of: {', '.join(choices)}",
        code="model_not_found",
        field="model",
        choices=choices,
    )
