"""The fields of requests, and what they name as a model: `STRATEGY@MODEL`.

A request for a response is read as one for a chat completion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from ....app.agent_calls import Options
from ....app.allow_list import AllowList
from ....core.budget import Budget
from ....core.composition import read_composition
from ....core.json_schema import schema_fault
from ....core.registry import Registry, find_strategy, strategies_at_hand
from ....core.text import beginning
from ....core.toolcard import ToolCard
from ....errors import NotFoundError, UsageError
from ....reading.names import did_you_mean
from ....strategies.choice import AUTO
from ....tools.catalog import CallersTool
from ..documents import read_form
from ..run_forms import NamedParts
from .conversation import InputItem, Message

Fields = TypeVar("Fields", bound=Struct)
Form = dict[str, Any]

MAX_TOOLS = 128
MAX_SHOWN_CHARS = 500

REFUSED: Mapping[str, Sequence[Any]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "audio": (),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "include": ([], ["reasoning.encrypted_content"]),
    "conversation": (),
    "prompt": (),
    "max_tool_calls": (),
}
"""Fields that would change what the reply holds, with the values that ask for nothing beyond what is served.

All others that are not served change nothing, and are passed over with a warning: how a model is sampled is the
strategy's business.
"""


class OwnFields(NamedParts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The field `reasonry`: what only this server takes.

    Args:
        on_disconnect: The fate of a run whose client hangs up.
        reasoning: Whether the thoughts come with the reply.
    """

    strategy: str | None = None
    options: Options = msgspec.field(default_factory=dict)
    budget: Budget | None = None
    on_disconnect: Literal["cancel", "leave"] = "cancel"
    reasoning: bool = True


class StreamOptions(Struct, frozen=True):
    """The field `stream_options`."""

    include_usage: bool = False


class Function(Struct, frozen=True):
    """A function of the caller: a run may call it, or its answer is a call of it."""

    name: Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    description: str | None = None
    parameters: Form | None = None

    @property
    def form(self) -> Form:
        """The schema of its arguments."""
        about = {"description": self.description} if self.description else {}
        return {"type": "object", **(self.parameters or {}), **about}


class ChatTool(Struct, frozen=True, tag_field="type", tag="function"):
    """A tool of the caller."""

    function: Function


class ResponseTool(Function, frozen=True, tag_field="type", tag="function"):
    """A tool of the caller."""

    strict: bool | None = False


class ToolChoice(Struct, frozen=True, omit_defaults=True):
    """The function that must be called: `function` names it in chats, `name` in responses."""

    type: Literal["function"]
    function: Function | None = None
    name: str = ""


class AnswerFormat(Struct, frozen=True, omit_defaults=True):
    """The format of the answer; the schema is in `json_schema` in chats, in `schema` in responses."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: Form | None = None
    name: str = ""
    schema: Form | None = None


class TextOptions(Struct, frozen=True):
    """The field `text`."""

    format: AnswerFormat = AnswerFormat("text")


class SharedFields(Struct, frozen=True, kw_only=True):
    """The fields that requests of both APIs have."""

    model: str
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    tool_choice: Literal["auto", "none", "required"] | ToolChoice = "auto"
    parallel_tool_calls: bool = True
    reasonry: OwnFields = OwnFields()


class ChatFields(SharedFields, frozen=True, kw_only=True):
    """The fields of a request for a chat completion that are served."""

    messages: Annotated[list[Message], Meta(min_length=1)]
    stop: str | Annotated[list[str], Meta(max_length=4)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    response_format: AnswerFormat = AnswerFormat("text")
    tools: Annotated[tuple[ChatTool, ...], Meta(max_length=MAX_TOOLS)] = ()

    @property
    def forced(self) -> list[Function]:
        """The functions of which the answer must call one.

        Raises:
            UsageError: There is none of the tools that may be meant.
        """
        choice, functions = self.tool_choice, [tool.function for tool in self.tools]
        if isinstance(choice, ToolChoice):
            name = choice.function.name if choice.function else choice.name
            functions = [function for function in functions if function.name == name]
        elif choice != "required":
            return []
        if not functions:
            message = "tool_choice: there is no such function among the tools"
            raise UsageError(message, field="tool_choice", code="unsupported_value")
        return functions

    def form(self, field: str) -> Form | None:
        """Return the JSON schema of the answer; None for text.

        Raises:
            UsageError: As `forced`; or it cannot be used, and `field` is where the format stands.
        """
        wanted = self.response_format
        if functions := self.forced:
            return form_of_call(functions)
        if wanted.type != "json_schema":
            return {"type": "object"} if wanted.type == "json_object" else None
        schema = (wanted.json_schema or {}).get("schema", wanted.schema)
        if fault := schema_fault(schema):
            raise UsageError(f"{field}: the schema cannot be used: {fault}", field=field)
        return schema

    def callers_tools(self) -> list[CallersTool]:
        """Return the tools that the run may ask its caller to call: none where the answer itself is a call.

        Raises:
            UsageError: A tool is not as it must be.
        """
        cards = [
            ToolCard(tool.function.name, tool.function.description or "", tool.function.parameters or {})
            for tool in self.tools
        ]
        for place, card in enumerate(cards):
            if fault := schema_fault(card.parameters):
                where = f"tools[{place}].parameters"
                raise UsageError(f"{where}: {fault}", field=where)
        return [] if self.tool_choice == "none" or self.forced else [CallersTool(card) for card in cards]


class ResponseFields(SharedFields, frozen=True, kw_only=True):
    """The fields of a request for a response that are served."""

    input: str | Annotated[list[InputItem], Meta(min_length=1)]
    instructions: str | None = None
    previous_response_id: str | None = None
    background: bool = False
    max_output_tokens: Annotated[int, Meta(ge=1)] | None = None
    text: TextOptions = TextOptions()
    tools: Annotated[tuple[ResponseTool, ...], Meta(max_length=MAX_TOOLS)] = ()

    def as_chat(self, earlier: Sequence[Message]) -> ChatFields:
        """Return the same as a request for a chat completion.

        Args:
            earlier: The conversation up to the response that this one continues.
        """
        items = [InputItem(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        instructions = [Message(role="system", content=self.instructions)] if self.instructions else []
        return ChatFields(
            messages=[*instructions, *earlier, *(item.message for item in items)],
            max_tokens=self.max_output_tokens,
            response_format=self.text.format,
            tools=tuple(ChatTool(tool) for tool in self.tools),
            **{name: getattr(self, name) for name in SharedFields.__struct_fields__},
        )


# -- reading


def read_fields(body: Any, form: type[Fields]) -> Fields:
    """Return the fields that are served, as the Struct that has them.

    Raises:
        UsageError: A field that would change the reply is not served, or one is not as it must be.
    """
    fields = {name: value for name, value in read_form(body, Form).items() if value is not None}
    for name, taken in REFUSED.items():
        if name in fields and fields[name] not in taken:
            only = f"; only {msgspec.json.encode(taken[0]).decode()} is taken" if taken else ""
            message = f"{name}: this field is not served{only}"
            raise UsageError(message, field=name, code="unsupported_parameter")
    if isinstance(tools := fields.get("tools"), list):
        fields["tools"] = [tool for tool in tools if not _is_other_tool(tool)]
    return read_form(fields, form)


def passed_over(body: Mapping[str, Any], form: type[Struct]) -> list[str]:
    """Return warnings about the parts of a request that are passed over."""
    known = {*form.__struct_fields__, *REFUSED}
    fields = {name for name, value in body.items() if name not in known and value is not None}
    kinds = {tool["type"] for tool in body.get("tools") or () if _is_other_tool(tool)}
    shown = [beginning(", ".join(sorted(names)), MAX_SHOWN_CHARS) for names in (fields, kinds)]
    warnings = f"without effect here: {shown[0]}", f"tools: only functions are served, not {shown[1]}"
    return [warning for warning, names in zip(warnings, (fields, kinds), strict=True) if names]


def _is_other_tool(tool: Any) -> bool:
    """Whether it is a tool that is no function, such as those that OpenAI's own servers run."""
    return isinstance(tool, dict) and tool.get("type") != "function" and isinstance(tool.get("type"), str)


# -- an answer that is a call


def form_of_call(functions: Sequence[Function]) -> Form:
    """Return the schema of the answer that is a call of one of the functions.

    That of a single function is what it takes; that of several says which is called too.
    """
    if len(functions) == 1:
        return functions[0].form
    parts, calls = dict[str, Any](), list[Form]()
    for function in functions:
        place = f"#/$defs/{function.name}"
        # References within a function's schema now start deeper.
        written = msgspec.json.encode(function.form).replace(b'"$ref":"#', f'"$ref":"{place}'.encode())
        parts[function.name] = msgspec.json.decode(written)
        calls.append(_object_of(tool={"const": function.name}, arguments={"$ref": place}))
    return {**_object_of(call={"anyOf": calls}), "$defs": parts}


def _object_of(**members: Form) -> Form:
    return {"type": "object", "properties": members, "required": [*members], "additionalProperties": False}


def read_call(functions: Sequence[Function], answer: str) -> tuple[str, Form] | None:
    """Return the name and the arguments of the call that an answer is; None: it is none, and was cut short."""
    try:
        written = msgspec.json.decode(answer, type=Form)
    except msgspec.DecodeError:
        return None
    if len(functions) == 1:
        return functions[0].name, written
    call = written.get("call")
    return (call["tool"], call["arguments"]) if call else None


# -- models


def _strategies(registry: Registry) -> list[str]:
    return [AUTO, *(each.name for each in strategies_at_hand(registry).values() if each.is_driven)]


def model_ids(strategies: Registry, allowed: AllowList) -> list[str]:
    """Return the names to choose from: the strategies on the default model, then on each other that the operator lists.

    More may be asked for: `offline`, which solves a few kinds of puzzle only, and the default by its name.
    """
    names, by_spec = _strategies(strategies), dict[str, str]()
    for model, spec in allowed.models.items():
        by_spec.setdefault(spec, model)
    by_spec.pop(allowed.default_model or "", None)
    return [*names, *(f"{name}@{model}" for model in by_spec.values() for name in names)]


def read_name(name: str, strategies: Registry, allowed: AllowList) -> tuple[str, str | None]:
    """Return the strategy and the model that a name stands for; no model where the operator's default is meant.

    Raises:
        NotFoundError: `model_not_found`: there is no such strategy, or the operator has not listed the model.
    """
    strategy, at, model = (part.strip() for part in name.partition("@"))
    if strategy.lower() != AUTO:
        written = read_composition(strategy)
        found = find_strategy(written.name, strategies) if written.name else None
        if found is None or not found.is_driven:
            raise _not_found("strategy", strategy, _strategies(strategies))
        strategy = written.spell(found.name)
    if at and model not in allowed.model_names:
        raise _not_found("model", model, allowed.model_names)
    return strategy, model if at else None


def _not_found(kind: str, name: str, choices: Sequence[str]) -> NotFoundError:
    return NotFoundError(
        f"there is no {kind} {name[:100]!r} here.{did_you_mean(name, choices)} A model is named STRATEGY or "
        f"STRATEGY@MODEL; the {kind} is one of: {', '.join(choices)}",
        code="model_not_found",
        field="model",
        choices=list(choices),
    )
