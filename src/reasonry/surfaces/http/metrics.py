"""The counts of the server, for Prometheus. No label names a principal or a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Bounds of the histogram of how long requests take."""
UNKNOWN = "none"
"""The route of what is at no address."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def route_of(scope: Any) -> str:
    """Return the address of a request as the API names it, once it has been answered."""
    return getattr(scope.get("route"), "path_format", None) or UNKNOWN


class Metrics:
    """Counters of one server, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "reasonry_requests", "Requests answered.", ("method", "route", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "reasonry_request_seconds",
            "Seconds until a request was answered.",
            ("method", "route"),
            buckets=SECONDS,
            registry=self.registry,
        )

    def watch(self, name: str, about: str, value: Callable[[], float]) -> None:
        """Show a number that is read when the metrics are."""
        Gauge(name, about, registry=self.registry).set_function(value)

    def count(self, scope: Any, status: int, begun: float) -> None:
        """Count a request that was answered."""
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        route = route_of(scope)
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(time.perf_counter() - begun)

    def text(self) -> tuple[bytes, str]:
        """Return all of it as Prometheus reads it, and its media type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST
