"""What a request asks for, whichever of the two APIs it came by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec
from msgspec import Meta, Struct

from ....core.budget import Budget
from ....core.json_schema import schema_fault
from ....core.toolcard import ToolCard
from ....errors import UsageError
from ..documents import read_form
from .call_ids import CallId
from .conversation import Conversation, problem_of

T = TypeVar("T", bound=Struct)

MAX_CHOICES = 8
MAX_STOPS = 4
MAX_TOOLS = 128
_TOOL_NAME = r"^[a-zA-Z0-9_-]{1,64}$"

NUMBERS = frozenset(
    {
        "temperature",
        "top_p",
        "frequency_penalty",
        "presence_penalty",
        "seed",
        "top_k",
        "min_p",
        "top_a",
        "typical_p",
        "repetition_penalty",
        "repeat_penalty",
    }
)
"""Numbers that are taken and change nothing: how a model is sampled is the strategy's business."""

TAKEN: frozenset[str] = NUMBERS | {
    "user",
    "safety_identifier",
    "metadata",
    "store",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "reasoning_effort",
    "verbosity",
    "prediction",
    "reasoning",
    "truncation",
}
"""Fields that are taken and change nothing."""

EMPTY: Mapping[str, Sequence[Any]] = {
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "background": (False,),
    "include": ([], ["reasoning.encrypted_content"]),
}
"""Fields that are not served, with the values that ask for nothing beyond what is."""


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


class SharedFields(Struct, frozen=True, kw_only=True):
    """The fields that requests of both APIs have."""

    model: str
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    tool_choice: Any = None
    parallel_tool_calls: bool = True
    reasonry: OwnFields = OwnFields()


class CompletionRequest(Struct, frozen=True, kw_only=True):
    """What a request asks for.

    Args:
        model: The name it was asked by.
        problem: Empty where it goes on with a run.
        form: JSON schema of the answer.
        max_tokens: Of the answer.
        results: What the caller brought for calls of a run; then the request goes on with that run.
    """

    model: str
    problem: str = ""
    form: dict[str, Any] | None = None
    cards: tuple[ToolCard, ...] = ()
    side_by_side: bool = True
    n: int = 1
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    stream: bool = False
    include_usage: bool = False
    own: OwnFields = OwnFields()
    results: Mapping[CallId, str] = {}


def make_request(
    fields: SharedFields,
    conversation: Conversation,
    functions: Sequence[Function],
    form: dict[str, Any] | None,
    max_tokens: int | None,
    *,
    n: int = 1,
    stop: tuple[str, ...] = (),
) -> CompletionRequest:
    """Return what a request asks for: to solve a conversation, or to go on with the run that its results are for.

    Raises:
        UsageError: Nothing is asked, or a tool is not as it must be.
    """
    results = conversation.results
    return CompletionRequest(
        model=fields.model,
        problem="" if results else problem_of(conversation, form),
        form=form,
        cards=_cards(functions, fields.tool_choice),
        side_by_side=fields.parallel_tool_calls,
        n=1 if results else n,
        stop=stop,
        max_tokens=max_tokens,
        stream=fields.stream,
        include_usage=fields.stream_options.include_usage,
        own=fields.reasonry,
        results=results,
    )


def read_fields(body: Any, form: type[T]) -> T:
    """Return the fields that are served, as the Struct that has them.

    Raises:
        UsageError: A field is not served, or is not as it must be; the message names it.
    """
    if not isinstance(body, dict):
        raise UsageError("the body must be a JSON object", field="body")
    fields = {name: value for name, value in cast(dict[str, Any], body).items() if value is not None}
    served = form.__struct_fields__
    for name, value in fields.items():
        if name not in served and name not in TAKEN and value not in EMPTY.get(name, ()):
            only = f"; only {msgspec.json.encode(EMPTY[name][0]).decode()} is taken" if name in EMPTY else ""
            raise UsageError(
                f"{name[:80]}: this field is not served{only}", field=name[:80], code="unsupported_parameter"
            )
        if name in NUMBERS and type(value) not in (int, float):
            raise UsageError(f"{name}: it must be a number", field=name)
    return read_form({name: value for name, value in fields.items() if name in served}, form)


def _cards(functions: Sequence[Function], choice: Any) -> tuple[ToolCard, ...]:
    """Return the cards of the caller's tools, none where none may be called."""
    if choice not in (None, "auto", "none"):
        raise UsageError(
            "tool_choice: whether a tool is called is for the strategy to say; only 'auto' and 'none' are served",
            field="tool_choice",
            code="unsupported_value",
        )
    names = [function.name for function in functions]
    if len(names) > MAX_TOOLS or len(set(names)) < len(names):
        raise UsageError(f"tools: at most {MAX_TOOLS} tools, each with a name of its own", field="tools")
    for place, function in enumerate(functions):
        if function.parameters is not None and (fault := schema_fault(function.parameters)):
            where = f"tools[{place}].parameters"
            raise UsageError(f"{where}: {fault}", field=where)
    return () if choice == "none" else tuple(function.card for function in functions)


def read_answer_form(wanted: Any, field: str) -> dict[str, Any] | None:
    """Return the schema of the answer that a format asks for; None for text.

    Args:
        wanted: {`type`: …}, with the schema beside it, or under `json_schema`.

    Raises:
        UsageError: It is none that is served.
    """
    if wanted is None:
        return None
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    if kind != "json_schema":
        message = f"{field}.type: it is text, json_object or json_schema, not {str(kind)[:40]!r}"
        raise UsageError(message, field=f"{field}.type")
    named = cast(dict[str, Any], wanted).get("json_schema", wanted)
    schema: Any = cast(dict[str, Any], named).get("schema") if isinstance(named, dict) else None
    if fault := schema_fault(schema):
        raise UsageError(f"{field}: the schema cannot be used: {fault}", field=field)
    return schema


def read_stops(stop: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return where the answer is to be cut off."""
    stops = (stop,) if isinstance(stop, str) else tuple(stop or ())
    if len(stops) > MAX_STOPS:
        raise UsageError(f"stop: at most {MAX_STOPS} texts", field="stop")
    return tuple(text for text in stops if text)
