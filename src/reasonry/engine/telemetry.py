"""OpenTelemetry spans of calls to models, after the GenAI conventions. Costs nothing unless an SDK is set up."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from ..core.budget import NOTHING
from ..core.events import Answered
from ..errors import ReasonryError
from ..masking import SECRETS
from .ports import Question, provider_of


@contextmanager
def span(model: str, question: Question, samples: int = 1) -> Generator[Callable[[Sequence[Answered]], None]]:
    """Trace one request; what is yielded takes its answers, to note their usage.

    The API is touched only where the program has loaded an SDK, so that a run without one imports nothing.
    """
    if "opentelemetry.sdk" not in sys.modules and "opentelemetry.trace" not in sys.modules:
        yield lambda answers: None
        return
    from opentelemetry.trace import (
        ProxyTracerProvider,
        Span,
        SpanKind,
        Status,
        StatusCode,
        get_tracer,
        get_tracer_provider,
    )

    if isinstance(get_tracer_provider(), ProxyTracerProvider):
        # A library has loaded the API, and nobody has set up where spans go.
        yield lambda answers: None
        return

    def note_failure(span: Span, kind: str, message: str) -> None:
        span.set_attribute("error.type", kind)
        span.set_status(Status(StatusCode.ERROR, SECRETS.mask(message, error=True)))

    asked = SECRETS.mask_data(_request(model, question, samples))
    name = f"chat {asked['gen_ai.request.model']}"
    tracer = get_tracer("reasonry")
    # The SDK would record exceptions as they are, with what a library or a server put into them.
    with tracer.start_as_current_span(
        name,
        kind=SpanKind.CLIENT,
        attributes=asked,
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield lambda answers: current.set_attributes(_response(answers))
        except ReasonryError as error:
            note_failure(current, error.code, error.message)
            raise
        except Exception as error:
            note_failure(current, type(error).__name__, str(error))
            raise


def _request(model: str, question: Question, samples: int) -> dict[str, Any]:
    provider, ask = provider_of(model), question.ask
    kind, _, url = provider.partition(":")
    server = urlsplit(url if "//" in url else "")
    facts = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": kind,
        "server.address": server.hostname,
        "server.port": server.port,
        "gen_ai.request.model": model.removeprefix(provider).lstrip(":#") or model,
        "gen_ai.request.temperature": ask.temperature,
        "gen_ai.request.max_tokens": ask.max_output_tokens,
        "gen_ai.request.choice.count": samples if samples > 1 else None,
        "reasonry.stage": question.stage,
        "reasonry.effect_id": question.id,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _response(answers: Sequence[Answered]) -> dict[str, Any]:
    usage = sum((answer.usage for answer in answers), NOTHING)
    ends = [
        "content_filter" if answer.refused else "length" if answer.truncated else "stop" for answer in answers
    ]
    facts = {
        "gen_ai.response.finish_reasons": ends,
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_input_tokens or None,
        "reasonry.cost_usd": usage.usd,
    }
    return {name: value for name, value in facts.items() if value is not None}
