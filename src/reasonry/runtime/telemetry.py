"""OpenTelemetry spans of calls to models, after the GenAI conventions. Costs nothing unless an SDK is set up."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from ..core.events import Answered
from .ports import Question


@contextmanager
def span(model: str, question: Question) -> Generator[Callable[[Answered], None]]:
    """Trace one call; what is yielded takes the answer, to note its usage.

    The API is touched only where the program has loaded an SDK, so that a run without one imports nothing.
    """
    if "opentelemetry.sdk" not in sys.modules and "opentelemetry.trace" not in sys.modules:
        yield lambda answer: None
        return
    from opentelemetry import trace

    tracer = trace.get_tracer("reasonry")
    with tracer.start_as_current_span(f"chat {model}") as current:
        current.set_attribute("gen_ai.operation.name", "chat")
        current.set_attribute("gen_ai.request.model", model)
        current.set_attribute("reasonry.stage", question.stage)
        current.set_attribute("reasonry.effect_id", question.id)

        def note(answer: Answered) -> None:
            current.set_attribute("gen_ai.usage.input_tokens", answer.usage.input_tokens)
            current.set_attribute("gen_ai.usage.output_tokens", answer.usage.output_tokens)
            if answer.usage.usd is not None:
                current.set_attribute("reasonry.cost_usd", answer.usage.usd)

        yield note
