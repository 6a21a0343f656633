"""OpenTelemetry spans that follow the conventions for HTTP, messaging and GenAI. Without an SDK, spans cost nothing."""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from ..core.events import NOTHING, Answered, Usage
from ..errors import ReasonryError
from ..records import RunRow
from ..system.masking import SECRETS
from .ports import Question, provider_of

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

CARRIER_FIELDS = ("traceparent", "tracestate")
"""The fields of W3C Trace Context that pass from process to process."""


class TracedWork:
    """A piece of work, with a span if the program records traces."""

    def __init__(self, span: Span | None = None) -> None:
        self._span = span

    def note(self, facts: Mapping[str, Any], name: str | None = None) -> None:
        """Add the facts that are not None to the span. A `name` renames the span."""
        if self._span is not None:
            self._span.set_attributes(_known_facts(facts))
            if name is not None:
                self._span.update_name(name)

    def note_failure(self, kind: str, message: str = "") -> None:
        """Mark the span as failed."""
        if self._span is not None:
            from opentelemetry.trace import Status, StatusCode

            self._span.set_attribute("error.type", kind)
            self._span.set_status(Status(StatusCode.ERROR, SECRETS.mask(message, error=True)))


class Meter:
    """Passes labeled counts of an app's work, such as `calls` or `deaths`, to a listener, if there is one."""

    def __init__(self) -> None:
        self.listener: Meter | None = None

    def add(self, name: str, by: float = 1, /, **labels: str) -> None:
        """Increase the count called `name` by the number `by`."""
        if self.listener is not None:
            self.listener.add(name, by, **labels)

    def note_call(self, model: str, usage: Usage, error: BaseException | None) -> None:
        """Count a request to a model, its usage and its error, if any."""
        if self.listener is None:
            return
        labels = labels_of(model)
        self.add("calls", **labels)
        self.add("tokens", usage.input_tokens, kind="input", **labels)
        self.add("tokens", usage.output_tokens, kind="output", **labels)
        self.add("dollars", usage.usd or 0.0, **labels)
        if isinstance(error, ReasonryError):
            self.add("call_errors", code=error.code, **labels)


def labels_of(model: str) -> dict[str, str]:
    """Return the labels for a model's counts. The labels leave out the address of the model's server."""
    provider = provider_of(model)
    return {
        "provider": provider.partition(":")[0],
        "model": model.removeprefix(provider).lstrip(":#") or model,
    }


@contextmanager
def trace_work(
    name: str,
    kind: Literal["SERVER", "CLIENT", "PRODUCER", "CONSUMER", "INTERNAL"],
    facts: Mapping[str, Any],
    carrier: Mapping[str, Any] | None = None,
) -> Generator[TracedWork]:
    """Trace the work of a `with` block in a span. `carrier` is the `trace_context` of the requesting process."""
    tracer = _find_tracer()
    if tracer is None:
        yield TracedWork()
        return
    from opentelemetry.trace import SpanKind

    context = None
    if texts := {
        field: text for field in CARRIER_FIELDS if isinstance(text := (carrier or {}).get(field), str)
    }:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        context = TraceContextTextMapPropagator().extract(texts)
    # By default, the SDK would record the messages of libraries and servers unmasked.
    with tracer.start_as_current_span(
        name,
        context=context,
        kind=SpanKind[kind],
        attributes=_known_facts(facts),
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        traced = TracedWork(current)
        try:
            yield traced
        except ReasonryError as error:
            traced.note_failure(error.code, error.message)
            raise
        except Exception as error:
            traced.note_failure(type(error).__name__, str(error))
            raise


def trace_context() -> dict[str, str]:
    """Return the current trace context, which another process can continue. The context of untraced work is empty."""
    carrier = dict[str, str]()
    if _find_tracer() is not None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        TraceContextTextMapPropagator().inject(carrier)
    return carrier


def _find_tracer() -> Tracer | None:
    """Return the tracer, or None if the program has not set up an SDK."""
    api: Any = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    # A library may have loaded the API without an SDK.
    is_set_up = not isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)
    return api.get_tracer("reasonry") if is_set_up else None


def _known_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    return SECRETS.mask_data({name: value for name, value in facts.items() if value is not None})


def facts_of_run(row: RunRow) -> dict[str, Any]:
    """Return the attributes of a run's span."""
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": row.strategy,
        "gen_ai.conversation.id": row.session_id,
        "reasonry.run_id": row.run_id,
        "reasonry.outcome": row.outcome,
        "reasonry.termination_reason": row.reason,
    }


def facts_of_request(model: str, question: Question, samples: int) -> dict[str, Any]:
    """Return the attributes of a request's span that are known before the answer."""
    ask, url = question.ask, provider_of(model).partition(":")[2]
    server = urlsplit(url if "//" in url else "")
    labels = labels_of(model)
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": labels["provider"],
        "server.address": server.hostname,
        "server.port": server.port,
        "gen_ai.request.model": labels["model"],
        "gen_ai.request.temperature": ask.temperature,
        "gen_ai.request.max_tokens": ask.max_output_tokens,
        "gen_ai.request.choice.count": samples if samples > 1 else None,
        "reasonry.stage": question.stage,
        "reasonry.effect_id": question.id,
    }


def facts_of_answers(answers: Sequence[Answered]) -> dict[str, Any]:
    """Return the attributes of a request's span that are known only after the answer."""
    usage = sum((answer.usage for answer in answers), NOTHING)
    ends = [
        "content_filter" if answer.refused else "length" if answer.truncated else "stop" for answer in answers
    ]
    return {
        "gen_ai.response.finish_reasons": ends,
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_input_tokens or None,
        "reasonry.cost_usd": usage.usd,
    }
