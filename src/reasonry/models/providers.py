"""Models of the providers that pydantic-ai knows. Requests are sent by the functions of `pydantic_ai.direct`.

The providers' SDKs send each request once and do not retry. They use an httpx2 client with the limits and rules of
`http_session`.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import re
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

import httpx2

from ..core.effects import Ask
from ..core.events import Answered
from ..engine.ports import BrokenReplyError, OnText, Question
from ..engine.prices import PriceOf
from ..engine.usage import Stated, estimate_usage, meter
from ..errors import ModelError, UsageError
from ..reading.json_in_text import is_whole
from ..system.masking import SECRETS
from ..text import without_surrogates
from .http_session import (
    CONNECT_TIMEOUT_S,
    DEFAULT_TIMEOUT_S,
    IDLE_S,
    MAX_REPLY_BYTES,
    MAX_STREAM_BYTES,
    booked_whole,
    in_time,
    reply_limit,
    tls_context,
    too_long,
)
from .known import price_list
from .objects import model_messages
from .openai_wire import (
    Dialect,
    asked_again_without,
    error_in,
    form_name,
    redact,
    refusal_of_request,
    with_calls,
    with_tools,
)

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model as SdkModel
    from pydantic_ai.settings import ModelSettings

CACHING = ("deepseek", "google")
"""Providers whose servers cache prompt prefixes by default."""
LINE_BYTES = 16
"""How many bytes each line of a reply counts for, in addition to the line's own bytes."""

_received: ContextVar[tuple[list[bytes], int]] = ContextVar("reasonry_received")
"""The body of a reply, in case the SDK cannot read it, and the body's limit in bytes. Refusals are not kept."""


class ProviderModel:
    """A model that pydantic-ai knows as `provider:model`. Its key and base URL come from the environment.

    Raises:
        ValueError: The provider is unknown.
        UsageError: The provider's package is not installed, or its key is not set.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.reasons = False
        self.takes_tools = True
        SECRETS.keep_environment(os.environ)
        self._http, self._model = _open_provider(name)
        self.price = price_list(self._model.base_url or "", self._model.model_name, self._model.system)
        implicit = name.partition(":")[0] in CACHING
        self.caches_prompts = implicit or bool(self._model.profile.get("supports_cache"))
        self._dialect = Dialect(
            format="json_schema" if self._model.profile.get("supports_json_schema_output") else "none",
            limit_swapped=True,
        )

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """See `Model.answer`."""
        return await in_time(self._ask(question, on_text), question, self.name, self.price)

    async def _ask(self, question: Question, on_text: OnText | None) -> Answered:
        ask, native = question.ask, question.ask.form is not None and self._dialect.format == "json_schema"
        ask = with_tools(ask, self._dialect)
        asking = {**_request(ask, question.stage, native), "model_settings": self._settings(ask)}
        received, heard = list[bytes](), list[str]()
        _received.set((received, MAX_STREAM_BYTES if on_text else reply_limit(ask)))
        try:
            response = await self._respond(asking, question, on_text, heard)
        except Exception as error:
            failure = error if isinstance(error, ModelError) else self._failure(error, ask, native)
            if failure.code == "reply_too_long":
                raise booked_whole(failure, question, self.price) from None
            if not received:
                raise failure from None
            # In a stream, only the text costs tokens, not the frames around the text.
            came = "".join(heard) if on_text else b"".join(received).decode("utf-8", "replace")
            raise BrokenReplyError(failure, estimate_usage(question.prompt, came, self.price)) from None
        return _to_answer(response, self.name, native, question.prompt, self.price)

    async def _respond(
        self, asking: dict[str, Any], question: Question, on_text: OnText | None, heard: list[str]
    ) -> ModelResponse:
        from pydantic_ai.direct import model_request, model_request_stream

        if on_text is None:
            return await model_request(self._model, **asking)
        heard_chars, limit = 0, reply_limit(question.ask)
        async with model_request_stream(self._model, **asking) as stream:
            async for event in stream:
                added, thought = _text_in(event, "text"), _text_in(event, "thinking")
                heard += (added, thought)
                heard_chars += len(added) + len(thought)
                if heard_chars > limit:
                    raise too_long(self.name, limit)
                if added:
                    on_text(added)
                if thought and question.on_hidden is not None:
                    question.on_hidden(thought)
            return stream.get()

    def _settings(self, ask: Ask) -> ModelSettings:
        settings: ModelSettings = {"max_retries": 0}
        if ask.temperature is not None and self._dialect.temperature:
            settings["temperature"] = ask.temperature
        if ask.max_output_tokens is not None:
            settings["max_tokens"] = min(ask.max_output_tokens, self._dialect.limit_most)
        if self._model.profile.get("supports_cache"):
            settings["cache"] = {"messages": False}
        return settings

    def _failure(self, error: Exception, ask: Ask, native: bool) -> ModelError:
        failure = failure_of(error, self.name)
        if failure.retryable or failure.code != "provider_error":
            return failure
        sent: dict[str, Any] = {**self._settings(ask), **({"tools": ask.tools} if ask.tools else {})}
        if native:
            sent["response_format"] = {"type": "json_schema"}
        complaint = f"{error} {getattr(error, 'body', '')}".lower()
        return asked_again_without(self.name) if self._dialect.degrade(sent, complaint) else failure

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def _open_provider(name: str) -> tuple[httpx2.AsyncClient, SdkModel]:
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model
    from pydantic_ai.providers import infer_provider_class

    provider = name.partition(":")[0]
    with contextlib.suppress(ImportError):
        infer_provider_class(provider)
    client = _sdk_client()

    def provider_of(kind: str) -> Any:
        found: Any = infer_provider_class(kind)
        if "http_client" not in inspect.signature(found.__init__).parameters:
            return found()
        return found(http_client=client)

    try:
        model = infer_model(name, provider_of)
    except ImportError as error:
        package = f"pydantic-ai-slim[{provider}]"
        message = f"{provider}: its package is not installed ({error.name or 'SDK'}); pip install '{package}'"
        raise UsageError(message, option="model") from None
    except (UserError, ValueError) as error:
        names = re.findall(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9]\b", str(error))
        wanted = " or ".join(dict.fromkeys(names))
        message = f"{provider}: {f'set {wanted}' if wanted else redact(str(error))}"
        raise UsageError(message, option="model") from None
    return client, model


def _request(ask: Ask, stage: str, native: bool) -> dict[str, Any]:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.tools import ToolDefinition

    tools = [
        ToolDefinition(
            name=tool["name"], description=tool["description"], parameters_json_schema=tool["parameters"]
        )
        for tool in ask.tools
    ]
    parameters = ModelRequestParameters(function_tools=tools)
    if native and ask.form is not None:
        form = OutputObjectDefinition(json_schema=dict(ask.form), name=form_name(stage))
        parameters = ModelRequestParameters(output_mode="native", output_object=form)
    messages = model_messages([(role, without_surrogates(text)) for role, text in ask.messages])
    return {"messages": messages, "model_request_parameters": parameters, "instrument": False}


def _text_in(event: Any, part: Literal["text", "thinking"]) -> str:
    """Return the text or the reasoning that an event of a stream adds. Tool calls add nothing."""
    kind, added = getattr(event, "event_kind", ""), None
    if kind == "part_start" and getattr(event.part, "part_kind", "") == part:
        added = event.part.content
    elif kind == "part_delta" and getattr(event.delta, "part_delta_kind", "") == part:
        added = event.delta.content_delta
    return added or ""


def _to_answer(response: ModelResponse, name: str, native: bool, prompt: str, price: PriceOf) -> Answered:
    calls = ((call.tool_name, call.args or {}) for call in response.tool_calls)
    text = with_calls(response.text or "", calls)
    refusal = (response.provider_details or {}).get("refusal")
    reply = text or (refusal if isinstance(refusal, str) else "")
    took, usd = response.usage, None
    with contextlib.suppress(LookupError, ValueError, AssertionError):
        usd = float(response.cost().total_price)
    figures = Stated(took.input_tokens, took.output_tokens, took.cache_read_tokens, usd)
    usage = meter(figures, prompt, [reply], reasoning=response.thinking or "", price=price)
    refused = bool(refusal) or response.finish_reason == "content_filter"
    if not text and not refused and response.finish_reason is None:
        raise BrokenReplyError(ModelError(f"{name} sent a reply with nothing in it", retryable=True), usage)
    return Answered(
        reply,
        usage=usage,
        model=name,
        native=native and not refused and is_whole(text),
        truncated=response.finish_reason == "length",
        refused=refused,
    )


def failure_of(error: Exception, name: str) -> ModelError:
    """Translate an exception of an SDK or of pydantic-ai into a ModelError."""
    cause: BaseException | None = error
    for _ in range(20):
        if isinstance(cause, ModelError):
            return cause
        cause = cause and (cause.__cause__ or cause.__context__)
    from pydantic_ai import exceptions

    body = json.dumps(getattr(error, "body", None), ensure_ascii=False, default=str)
    raw = without_surrogates(body).encode()
    detail = f": {redact(error_in(raw)[0] or f'{type(error).__name__}: {error}')}"
    match error:
        case exceptions.ModelQuotaExceededError():
            return ModelError(f"{name}: the quota is used up{detail}", code="rate_limited")
        case exceptions.ModelHTTPError():
            failure = refusal_of_request(error.status_code, {}, raw, name)
            failure.retry_after_s = error.retry_after if failure.retryable else None
            return failure
        case exceptions.ModelTimeoutError() | exceptions.ModelRequestTimeout():
            return ModelError(f"{name} took too long{detail}", code="provider_timeout", retryable=True)
        case exceptions.ModelConnectionError():
            return ModelError(f"{name} closed the connection, or took none{detail}", retryable=True)
        case exceptions.UserError():
            return ModelError(f"{name} cannot be asked this{detail}")
        case _:
            return ModelError(f"{name} sent a reply that cannot be read{detail}", retryable=True)


# -- the HTTP client of the SDKs


class _BoundedBody(httpx2.AsyncByteStream):
    def __init__(self, inner: Any, server: str, received: list[bytes], limit_bytes: int) -> None:
        self._inner, self._server, self._received = inner, server, received
        self._left = self._limit_bytes = limit_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            # A line costs the SDKs far more time than its bytes do.
            self._left -= len(piece) + LINE_BYTES * piece.count(b"\n")
            if self._left < 0:
                raise too_long(self._server, self._limit_bytes)
            self._received.append(piece)
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


def _sdk_client() -> httpx2.AsyncClient:
    """Return the HTTP client of a provider. The client belongs to the event loop that uses it first.

    A redirected, compressed or overlong reply raises a ModelError, which SDKs wrap in their own errors.
    """
    return httpx2.AsyncClient(
        timeout=DEFAULT_TIMEOUT_S,
        limits=httpx2.Limits(keepalive_expiry=IDLE_S),
        verify=tls_context(),
        mounts={f"all://{host}": None for host in ("localhost", "127.0.0.1", "[::1]")},
        event_hooks={"request": [_prepare], "response": [_bound]},
    )


async def _prepare(request: httpx2.Request) -> None:
    request.headers["Accept-Encoding"] = "identity"
    request.extensions["timeout"] = {"connect": CONNECT_TIMEOUT_S}


async def _bound(response: httpx2.Response) -> None:
    server = response.request.url.netloc.decode("ascii")
    if 300 <= response.status_code < 400:
        raise ModelError(f"{server} answered with a redirect, which is not followed; set the base URL")
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise ModelError(f"{server} packed its reply, which was not asked for", retryable=True)
    received, limit = _received.get(([], MAX_REPLY_BYTES))
    kept = received if response.status_code == 200 else []
    response.stream = _BoundedBody(response.stream, server, kept, limit)
