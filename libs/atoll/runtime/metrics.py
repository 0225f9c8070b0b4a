"""Prometheus metrics: base units, `atoll_` first, and no label that grows with jobs or users."""

from collections.abc import Sequence
from typing import Final

from prometheus_client import REGISTRY, Counter, Gauge, Histogram

UNBOUNDED_LABELS: Final = frozenset({"job", "job_id", "attempt", "user", "principal", "trace_id"})
"""Labels with a value per job or user would make the series grow for ever."""

SECONDS: Final = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
)  # fmt: skip
"""Buckets for durations: from a fast RPC to a slow cycle."""


def counter(name: str, text: str, labels: Sequence[str] = ()) -> Counter:
    """Declare a counter at import time; `name` ends in `_total`."""
    if not name.endswith("_total"):
        raise ValueError(f"counter {name} must end in _total")
    return Counter(_named(name, labels), text, labels, registry=REGISTRY)


def gauge(name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
    """Declare a gauge at import time; `name` ends in its unit."""
    return Gauge(_named(name, labels), text, labels, registry=REGISTRY)


def histogram(
    name: str,
    text: str,
    labels: Sequence[str] = (),
    *,
    buckets: Sequence[float] = SECONDS,
) -> Histogram:
    """Declare a histogram at import time; `name` ends in its unit, seconds unless told."""
    return Histogram(_named(name, labels), text, labels, buckets=buckets, registry=REGISTRY)


def _named(name: str, labels: Sequence[str]) -> str:
    if unbounded := UNBOUNDED_LABELS.intersection(labels):
        raise ValueError(f"metric {name}: {sorted(unbounded)} would make it grow for ever")
    return name if name.startswith("rpc_") else f"atoll_{name}"
