"""What a request begins is one trace, whichever processes it leads through."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.surfaces.http.serving import serve_in_thread

from .working import worker_process

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

PROBLEM = "Use 4, 9, 10 and 13 to make 24"
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HEADERS = {"traceparent": f"00-{TRACE}-{CALLER}-01", "tracestate": "vendor=1"}
QUEUED = ("invoke_agent tree_of_thoughts", "process default", "POST /api/runs")
DRIVEN_HERE = ("invoke_agent tree_of_thoughts", "POST /v1/chat/completions")


def test_a_run_of_the_queue_is_one_trace_from_the_request_to_each_call(
    postgres_url: str, folder: Path, spans: InMemorySpanExporter
) -> None:
    store, file = postgres_url, folder / "spans.jsonl"
    worker = worker_process(store, "offline", program=("tests.queues.traced", str(file)))
    with worker, serve_in_thread(store, concurrency=0) as server:
        begun = server.client().post(
            "/api/runs", json={"problem": PROBLEM, "strategy": "tree_of_thoughts"}, headers=HEADERS
        )
        server.client().post(
            "/v1/chat/completions",
            json={"model": "tree_of_thoughts", "messages": [{"role": "user", "content": PROBLEM}]},
            headers=HEADERS,
        )
        assert begun.status_code == 201, begun.text
        run_id = begun.json()["run_id"]
        deadline = time.monotonic() + 30
        written = spans_in(file)
        while "process default" not in [name for name, *_ in written]:
            assert time.monotonic() < deadline, written
            time.sleep(0.1)
            written = spans_in(file)
    here = [json.loads(span.to_json()) for span in spans.get_finished_spans()]
    found = [*map(read, here), *written]
    parents = {span: (name, parent) for name, span, parent, trace in found if trace == TRACE}

    def ways(span: str) -> list[str]:
        return [] if span == CALLER else [parents[span][0], *ways(parents[span][1])]

    calls = {tuple(ways(span)[1:]) for span, (name, _) in parents.items() if name.startswith("chat ")}
    assert calls == {QUEUED, DRIVEN_HERE}
    assert run_id in file.read_text("utf-8")
    assert "4, 9, 10" not in file.read_text("utf-8") + json.dumps(here)


def spans_in(file: Path) -> list[tuple[str, str, str, str]]:
    lines = file.read_text("utf-8").splitlines(keepends=True) if file.exists() else []
    return [read(json.loads(line)) for line in lines if line.endswith("\n")]


def read(span: dict[str, Any]) -> tuple[str, str, str, str]:
    """Return the name of a span, its id, that of its parent, and that of its trace."""
    context = span["context"]
    trace, own = (context[name].removeprefix("0x") for name in ("trace_id", "span_id"))
    return span["name"], own, (span["parent_id"] or "").removeprefix("0x"), trace
