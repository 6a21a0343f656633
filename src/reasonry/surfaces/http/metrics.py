"""Prometheus metrics. Their labels never identify a principal or a run."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    start_http_server,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from ...engine.policy import Policy
from ...engine.telemetry import Meter
from ...errors import UsageError
from ...supervisor import Supervisor
from .health import Health

UNKNOWN = "none"
"""The route label for unknown addresses."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def route_of(scope: Any) -> str:
    """Return the path pattern of an answered request, or `UNKNOWN` if the request's address has no route."""
    return getattr(scope.get("route"), "path_format", None) or UNKNOWN


MODEL, ROUTE = ("provider", "model"), ("method", "route")
COUNTS = {
    "requests": ("Requests answered.", (*ROUTE, "status")),
    "calls": ("Requests to models.", MODEL),
    "tokens": ("Tokens of these requests, by kind: input, output.", (*MODEL, "kind")),
    "dollars": ("US dollars that these requests cost, where it is known.", MODEL),
    "call_errors": ("Requests to models that failed, by code.", (*MODEL, "code")),
    "retries": ("Requests to models that failed and may be made again, by code.", (*MODEL, "code")),
    "runs": ("Runs that this process has driven to their end.", ("outcome",)),
    "deaths": ("Runs that this process has continued after another died with them.", ()),
    "lost_leases": ("Runs that another process took over, because this one did not answer.", ()),
}
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
RUN_SECONDS = (0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600, 14_400)
HISTOGRAMS = {
    "request_seconds": ("Seconds until a request was answered.", ROUTE, SECONDS),
    "run_seconds": ("Run time of these runs.", ("outcome",), RUN_SECONDS),
}
LOOK_EVERY_S = 1.0


class Metrics(Meter):
    """Collects the metrics of a server or worker process in a Prometheus registry of its own."""

    def __init__(self) -> None:
        super().__init__()
        self._counts = dict[tuple[str | tuple[str, str], ...], Counter | Histogram]()
        self.lag_s = 0.0
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        for name, (about, labels) in COUNTS.items():
            self._counts[name,] = Counter(f"reasonry_{name}", about, labels, registry=self.registry)
        for name, (about, labels, bounds) in HISTOGRAMS.items():
            self._counts[name,] = Histogram(
                f"reasonry_{name}", about, labels, buckets=bounds, registry=self.registry
            )
        self.watch("reasonry_loop_lag_seconds", "How late the event loop was.", lambda: self.lag_s)

    def follow(self, policy: Policy, supervisor: Supervisor, health: Health) -> None:
        """Start to collect metrics of model calls, of the supervisor's runs and of the store's jobs."""
        policy.meter.listener = self
        self.watch("reasonry_runs_driven", "Runs driven here.", lambda: supervisor.running)
        self.watch("reasonry_queue_depth", "Jobs waiting.", lambda: health.jobs.depth)
        self.watch("reasonry_queue_oldest_seconds", "Wait of the oldest job.", lambda: health.jobs.oldest_s)
        self.watch("reasonry_workers", "Processes that drive jobs.", lambda: health.jobs.workers)

    def add(self, name: str, by: float = 1, /, **labels: str) -> None:
        """Increase a counter, or record a value in a histogram. `name` and `labels` select the metric."""
        if (count := self._counts.get(key := (name, *labels.items()))) is None:
            count = self._counts[key] = self._counts[name,].labels(**labels)
        (count.observe if isinstance(count, Histogram) else count.inc)(by)

    async def watch_loop(self) -> None:
        """Measure the lag of the event loop every `LOOK_EVERY_S` seconds until the task is cancelled."""
        while True:
            due_s = time.monotonic() + LOOK_EVERY_S
            await asyncio.sleep(LOOK_EVERY_S)
            self.lag_s = max(0.0, time.monotonic() - due_s)

    def serve(self, port: int) -> int:
        """Serve the metrics on the loopback address in a thread, and return the port.

        Raises:
            UsageError: The port is invalid or taken.
        """
        try:
            server, _ = start_http_server(port, "127.0.0.1", self.registry)
        except (OSError, OverflowError) as error:
            why = str(getattr(error, "strerror", None) or error).rstrip(".")
            message = f"metrics cannot be served at port {port}: {why}; --metrics-port takes another port"
            raise UsageError(f"{message}; 0 takes any free port", option="metrics_port") from None
        return server.server_port

    def watch(self, name: str, about: str, value: Callable[[], float]) -> None:
        """Add a gauge. Each time the metrics are read, the function `value` supplies the gauge's value."""
        Gauge(name, about, registry=self.registry).set_function(value)

    def count(self, scope: Any, status: int, begun: float) -> None:
        """Count a finished request, and record the time since `begun`, a `time.perf_counter()` value."""
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        route = route_of(scope)
        self.add("requests", method=method, route=route, status=str(status))
        self.add("request_seconds", time.perf_counter() - begun, method=method, route=route)

    def text(self) -> tuple[bytes, str]:
        """Return the metrics in Prometheus' text format, and the media type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST
