"""Models of the providers that pydantic-ai knows, through its `direct` functions and `Model` classes alone.

Their SDKs send each request once (no retries of their own), over httpx2, and follow no redirect.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ..core.budget import Usage
from ..core.effects import Ask
from ..core.events import Answered
from ..core.metering import PriceOf, Stated, estimate_usage, meter
from ..engine.ports import BrokenReplyError, OnText, Question
from ..errors import ModelError, UsageError
from ..extras import check_extra, missing_extra
from ..masking import SECRETS
from .openai_wire import LEAST_LIMIT, LIMIT_TOO_HIGH, PROMPT_TOO_LONG, too_long_for
from .prices import price_list
from .redact import redact

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelRequest, ModelResponse
    from pydantic_ai.models import Model as SdkModel
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

    from .sdk_transport import SdkTransport

DEFAULT_TIMEOUT_S = 600.0
OWN_EXTRAS = ("anthropic", "google")
"""Providers whose SDK is an extra of its own."""
CACHING = ("deepseek", "google")
"""Whose servers keep the prefixes of prompts without being asked to."""


class ProviderModel:
    """A model as pydantic-ai names it, `provider:model`. Its key and base URL come from the environment.

    Raises:
        UsageError: There is no such provider, its package is not installed, or its key is not set.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.reasons = False
        SECRETS.keep_environment(os.environ)
        self._http, self._model = _open_provider(name)
        self.price = price_list(self._model.base_url or "", self._model.model_name, self._model.system)
        implicit = name.partition(":")[0] in CACHING
        self.caches_prompts = implicit or bool(self._model.profile.get("supports_cache"))
        self._native = bool(self._model.profile.get("supports_json_schema_output"))
        self._temperature = True
        self._limit_most = 1_000_000

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """Answer one question.

        Raises:
            ModelError: See `Model.answer`.
        """
        limit_s = question.timeout_s or DEFAULT_TIMEOUT_S
        try:
            async with asyncio.timeout(limit_s):
                return await self._ask(question, on_text)
        except TimeoutError:
            message = f"{self.name} did not answer within {limit_s:g} s"
            error = ModelError(message, code="provider_timeout", retryable=True)
            raise BrokenReplyError(error, estimate_usage(question.prompt, "", self.price)) from None
        except ModelError as error:
            # What a library says about a failed request may hold its headers, and with them the key.
            error.__cause__ = error.__context__ = None
            raise

    async def _ask(self, question: Question, on_text: OnText | None) -> Answered:
        from .sdk_transport import replies

        ask, native = question.ask, self._native and question.ask.form is not None
        request = _request(ask), self._settings(ask), _parameters(ask, question.stage, native)
        heard = list[str]()
        with replies() as received:
            try:
                response = await (
                    self._stream(request, on_text, question.on_hidden, heard)
                    if on_text
                    else self._send(request)
                )
            except Exception as error:
                failure = error if isinstance(error, ModelError) else self._failure(error, ask, native)
                if not received:
                    raise failure from None
                # Of a stream the frames are no part of what is paid for.
                came = "".join(heard) if on_text else b"".join(received).decode("utf-8", "replace")
                usage = estimate_usage(question.prompt, came, self.price)
                raise BrokenReplyError(failure, usage) from None
        return _to_answer(response, self.name, native, question.prompt, self.price)

    async def _send(
        self, request: tuple[ModelRequest, ModelSettings, ModelRequestParameters]
    ) -> ModelResponse:
        from pydantic_ai.direct import model_request

        message, settings, parameters = request
        return await model_request(
            self._model,
            [message],
            model_settings=settings,
            model_request_parameters=parameters,
            instrument=False,
        )

    async def _stream(
        self,
        request: tuple[ModelRequest, ModelSettings, ModelRequestParameters],
        on_text: OnText,
        on_hidden: OnText | None,
        heard: list[str],
    ) -> ModelResponse:
        from pydantic_ai.direct import model_request_stream

        message, settings, parameters = request
        async with model_request_stream(
            self._model,
            [message],
            model_settings=settings,
            model_request_parameters=parameters,
            instrument=False,
        ) as stream:
            async for event in stream:
                added, thought = _text_in(event, "text"), _text_in(event, "thinking")
                heard += (added, thought)
                if added:
                    on_text(added)
                if thought and on_hidden is not None:
                    on_hidden(thought)
            return stream.get()

    def _settings(self, ask: Ask) -> ModelSettings:
        settings: ModelSettings = {}
        if not hasattr(getattr(self._model, "client", None), "max_retries"):
            settings["max_retries"] = 0
        if ask.temperature is not None and self._temperature:
            settings["temperature"] = ask.temperature
        if ask.max_output_tokens is not None:
            settings["max_tokens"] = min(ask.max_output_tokens, self._limit_most)
        if self._model.profile.get("supports_cache"):
            settings["cache"] = {"messages": False}
        return settings

    def _failure(self, error: Exception, ask: Ask, native: bool) -> ModelError:
        failure = failure_of(error, self.name)
        if failure.retryable or failure.code != "provider_error":
            return failure
        complaint = f"{error} {getattr(error, 'body', '')}".lower()
        if native and re.search(r"response_?format|json_?(schema|object)|structured|schema", complaint):
            self._native = False
        elif ask.temperature is not None and self._temperature and "temperature" in complaint:
            self._temperature = False
        elif (limit := self._settings(ask).get("max_tokens", 0)) > LEAST_LIMIT and LIMIT_TOO_HIGH.search(
            complaint
        ):
            self._limit_most = limit // 2
        else:
            return failure
        message = f"{self.name} does not take all that was sent; it is asked again without"
        return ModelError(message, retryable=True, retry_after_s=0.0, degraded=True)

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.aclose()


def check_provider_extra(provider: str) -> None:
    """Make sure that what reaches a provider is installed.

    Raises:
        MissingExtraError: It is not.
    """
    extra = provider if provider in OWN_EXTRAS else "providers"
    check_extra(extra, f"the model {provider[:40]}:…, which is not built in,")


def is_provider(name: str) -> bool:
    """Whether pydantic-ai knows a provider of this name, installed or not."""
    from pydantic_ai.providers import infer_provider_class

    try:
        infer_provider_class(name)
    except ImportError:
        return True
    except ValueError:
        return False
    return True


def _open_provider(name: str) -> tuple[SdkTransport, SdkModel]:
    import httpx2
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model
    from pydantic_ai.providers import infer_provider_class

    from .sdk_transport import SdkTransport

    provider, transport = name.partition(":")[0], SdkTransport()

    def provider_of(kind: str) -> Any:
        found: Any = infer_provider_class(kind)
        if "http_client" not in inspect.signature(found.__init__).parameters:
            return found()
        return found(http_client=httpx2.AsyncClient(transport=transport, timeout=DEFAULT_TIMEOUT_S))

    try:
        model = infer_model(name, provider_of)
    except ImportError as error:
        if provider in OWN_EXTRAS:
            raise missing_extra(provider, f"the model {provider}:…") from None
        package = f"pydantic-ai-slim[{provider}]"
        message = f"{provider}: its package is not installed ({error.name or 'SDK'}); pip install '{package}'"
        raise UsageError(message, option="model") from None
    except (UserError, ValueError) as error:
        raise _unset(provider, str(error)) from None
    client: Any = getattr(model, "client", None)
    if hasattr(client, "max_retries"):
        client.max_retries = 0
    return transport, model


def _unset(provider: str, detail: str) -> UsageError:
    names = re.findall(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9]\b", detail)
    wanted = " or ".join(dict.fromkeys(names))
    return UsageError(f"{provider}: {f'set {wanted}' if wanted else redact(detail)}", option="model")


def _request(ask: Ask) -> ModelRequest:
    from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart

    parts = [UserPromptPart(ask.prompt.encode("utf-8", "replace").decode())]
    if not ask.system:
        return ModelRequest(parts)
    return ModelRequest([SystemPromptPart(ask.system.encode("utf-8", "replace").decode()), *parts])


def _parameters(ask: Ask, stage: str, native: bool) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition

    if not native or ask.form is None:
        return ModelRequestParameters()
    name = re.sub(r"[^A-Za-z0-9_-]", "_", stage)[:64] or "reply"
    return ModelRequestParameters(
        output_mode="native", output_object=OutputObjectDefinition(json_schema=dict(ask.form), name=name)
    )


def _text_in(event: Any, part: Literal["text", "thinking"]) -> str:
    """Return what an event of a stream adds to the text, or to what is thought; tool calls add nothing."""
    kind, added = getattr(event, "event_kind", ""), None
    if kind == "part_start" and getattr(event.part, "part_kind", "") == part:
        added = event.part.content
    elif kind == "part_delta" and getattr(event.delta, "part_delta_kind", "") == part:
        added = event.delta.content_delta
    return added or ""


def _to_answer(response: ModelResponse, name: str, native: bool, prompt: str, price: PriceOf) -> Answered:
    text = response.text or ""
    refusal = (response.provider_details or {}).get("refusal")
    reply = text or (refusal if isinstance(refusal, str) else "")
    usage = _usage(response, reply, prompt, price)
    refused = bool(refusal) or response.finish_reason == "content_filter"
    if not text and not refused and response.finish_reason is None:
        raise BrokenReplyError(ModelError(f"{name} sent a reply with nothing in it", retryable=True), usage)
    return Answered(
        reply,
        usage=usage,
        model=name,
        native=native and not refused and _is_json(text),
        truncated=response.finish_reason == "length",
        refused=refused,
    )


def _usage(response: ModelResponse, reply: str, prompt: str, price: PriceOf) -> Usage:
    stated = response.usage
    figures = Stated(stated.input_tokens, stated.output_tokens, stated.cache_read_tokens, _cost(response))
    return meter(figures, prompt, [reply], reasoning=response.thinking or "", price=price)


def _cost(response: ModelResponse) -> float | None:
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return True


_FAILURES: tuple[tuple[str, str, bool, str], ...] = (
    ("ModelAuthenticationError", "provider_auth", False, "refused the API key; check it in the environment"),
    ("ModelQuotaExceededError", "rate_limited", False, "says the quota is used up"),
    ("ModelRateLimitError", "rate_limited", True, "had too many requests"),
    ("ModelTimeoutError", "provider_timeout", True, "took too long"),
    ("ModelRequestTimeout", "provider_timeout", True, "took too long"),
    ("ModelNotFoundError", "provider_error", False, "has no such model; check its name"),
    ("ModelRequestRejectedError", "provider_error", False, "refused the request"),
    ("ModelUnavailableError", "provider_error", True, "is not available at the moment"),
    ("ModelServerError", "provider_error", True, "failed"),
    ("ModelConnectionError", "provider_error", True, "closed the connection, or took none"),
    ("UserError", "provider_error", False, "cannot be asked this"),
)


def failure_of(error: Exception, name: str) -> ModelError:
    """Return the error that an SDK's, or pydantic-ai's, exception stands for."""
    for cause in _chain(error):
        if isinstance(cause, ModelError):
            return cause
    from pydantic_ai import exceptions

    detail = redact(_message_of(error))
    wait = getattr(error, "retry_after", None)
    for kind, code, retryable, says in _FAILURES:
        if isinstance(error, getattr(exceptions, kind, ())):
            if code == "provider_error" and PROMPT_TOO_LONG.search(detail):
                return too_long_for(name, f": {detail}")
            message = f"{name} {says}" + (f": {detail}" if detail else "")
            wait = wait if retryable else None
            return ModelError(message, code=code, retryable=retryable, retry_after_s=wait)
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and 300 <= status < 500:
        return ModelError(f"{name} refused the request ({status}): {detail}", status=status)
    return ModelError(f"{name} sent a reply that cannot be read: {detail}", retryable=True)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(20):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _message_of(error: Exception) -> str:
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(inner, dict) and isinstance(inner.get("message"), str):
        return inner["message"]
    return f"{type(error).__name__}: {error}"
