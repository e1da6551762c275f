"""What is counted, for Prometheus: requests, what is under way, turns, the log.

The one rule: a label has few values. No id of a session, no name of a principal and no path is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WEBSOCKET"))
TYPE: Final = CONTENT_TYPE_LATEST


class Metrics:
    """The numbers of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        here = self._registry
        self._requests = Counter(
            "keeve_requests", "Requests that were answered.", ("route", "method", "status"), registry=here
        )
        self._seconds = Histogram(
            "keeve_request_seconds", "How long they took, streams included.", ("route",), buckets=SECONDS, registry=here
        )
        self._under_way = Gauge("keeve_requests_under_way", "Requests that are under way.", ("kind",), registry=here)
        self._turns = Counter("keeve_turns", "Turns, by what became of them.", ("state",), registry=here)
        self._tokens = Counter("keeve_tokens", "Tokens that models have counted.", ("kind",), registry=here)

    @contextmanager
    def under_way(self, kind: str) -> Iterator[None]:
        """For as long as a request lasts."""
        gauge = self._under_way.labels(kind)
        gauge.inc()
        try:
            yield
        finally:
            gauge.dec()

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """A request is over."""
        self._requests.labels(route, method if method in METHODS else "other", str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def turned(self, state: str) -> None:
        """A turn was accepted, or is done, failed or interrupted."""
        self._turns.labels(state).inc()

    def used(self, kind: str, count: int) -> None:
        """A turn has used so many tokens of a kind."""
        self._tokens.labels(kind).inc(count)

    def shows(self, name: str, what: str, value: Callable[[], float]) -> None:
        """A number that is looked up when it is asked for."""
        Gauge(name, what, registry=self._registry).set_function(value)

    def text(self) -> bytes:
        """All of them, in the text format."""
        return generate_latest(self._registry)
