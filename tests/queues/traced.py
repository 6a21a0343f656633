"""`python -m tests.queues.traced FILE …` is the command line, whose spans go into a file, one a line."""

import sys

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from reasonry.surfaces.cli import main

if __name__ == "__main__":
    file = open(sys.argv.pop(1), "a", encoding="utf-8")  # noqa: SIM115
    provider = TracerProvider()
    exporter = ConsoleSpanExporter(out=file, formatter=lambda span: f"{span.to_json(indent=None)}\n")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    main()
