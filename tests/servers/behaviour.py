"""How a loopback model server behaves: what it answers, how fast, what it breaks. Plain data for JSON."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

_KINDS = """
rate_limit quota server_error unavailable bad_request unauthorized not_found no_json_schema redirect reset hang trickle
invalid_body half_body html wrong_charset huge gzip gzip_bomb bad_events broken_stream endless_line endless_comments
endless_events drip late_break key_in_error key_in_200 key_in_event key_in_reason
absurd_usage no_usage null_usage negative_usage text_usage list_usage huge_usage tiny_usage surplus_choices
fenced malformed truncated empty refusal content_filter
"""
FAULT_KINDS = tuple(_KINDS.split())
"""What can go wrong. Up to `key_in_reason` it is the transport that fails, after that what the reply says."""

Times = Annotated[int, Meta(ge=1)]
Milliseconds = Annotated[float, Meta(ge=0, le=3_600_000)]


class Fault(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Break some requests. With no condition given: every request.

    Args:
        kind: What goes wrong.
        requests: Numbers of the requests to break, counted from 1 in the order of arrival.
        first: Break the first so many that match.
        every: Break each so-many-th that matches.
        match: Only requests whose last user message has this regular expression in it.
        retry_after: Value of the `Retry-After` header.
        delay_ms: Wait this long before breaking.
    """

    kind: str
    requests: tuple[Times, ...] = ()
    first: Times | None = None
    every: Times | None = None
    match: str | None = None
    retry_after: str | None = None
    delay_ms: Milliseconds = 0

    def __post_init__(self) -> None:
        if self.kind not in FAULT_KINDS:
            raise ValueError(f"there is no fault {self.kind!r}")


class Behaviour(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Everything about a server that can be said as data.

    Args:
        latency_ms: From the last byte of the request to the first byte of the reply.
        chunk_ms: Pause between two chunks of a streamed reply.
        chunk_words: Words in a chunk.
        replies: A queue; each sample of each request takes the first one left.
        faults: Looked at in order; the first that fits breaks the request.
        api_key: If set, requests without it are refused, with the wrong key in the message as providers do.
        cache_min_tokens: Shortest prompt the prefix cache looks at; 0 switches it off.
        cache_block_tokens: Length of the prefix cache's blocks.
        models: What `/v1/models` lists.
        samples: What becomes of `n`: as many choices, as many that are the same wherever they stand, one choice all the
            same, or a 400.
        most_output_tokens: Requests that allow a longer reply are refused.
        keep_bodies: How many request bodies are kept for `bodies`.
    """

    latency_ms: Milliseconds = 0
    chunk_ms: Milliseconds = 0
    chunk_words: Times = 3
    replies: tuple[Any, ...] = ()
    faults: tuple[Fault, ...] = ()
    api_key: str | None = None
    cache_min_tokens: Annotated[int, Meta(ge=0)] = 1024
    cache_block_tokens: Times = 128
    models: tuple[str, ...] = ("test-model",)
    samples: Literal["served", "alike", "ignored", "refused"] = "served"
    most_output_tokens: Times | None = None
    keep_bodies: Annotated[int, Meta(ge=0)] = 1000


def changed(behaviour: Behaviour, settings: Mapping[str, Any]) -> Behaviour:
    """Return a behaviour with some settings changed.

    Raises:
        msgspec.ValidationError: There is no such setting, or it does not take such a value.
    """
    fields: dict[str, Any] = msgspec.to_builtins(behaviour)
    return msgspec.convert(fields | msgspec.to_builtins(dict(settings)), Behaviour)
