"""Traces: a job's spans join over the traceparent that is stored with it.

Nothing is made unless an exporter is configured: `span` is then one look at a flag. For hot
paths, `record` writes a span after the fact, and only for a trace that is kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_ON,
    ParentBased,
    SamplingResult,
    TraceIdRatioBased,
)
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import Attributes as OtelAttributes

from atoll.runtime.settings import ServiceSettings

Attributes = Mapping[str, str | int | float | bool]

TRACEPARENT: Final = "traceparent"
SAMPLED: Final = frozenset("13579bdf")
"""Last digits of a traceparent whose lowest flag is set."""
PARTS: Final = 4
"""Of a traceparent: version, trace, span, flags."""
FILE_DELAY_MS: Final = 200
"""A killed process loses at most this much of its trace file."""

_FORCED: ContextVar[tuple[int, int] | None] = ContextVar("forced", default=None)
"""Trace and span id of the root span that is being made."""
_W3C: Final = TraceContextTextMapPropagator()
_provider: TracerProvider | None = None
_tracer: trace.Tracer = trace.NoOpTracer()


def configure(settings: ServiceSettings, service: str, *, instance: str) -> None:
    """Send spans where the settings say; without an exporter nothing is ever made."""
    exporters = list(_exporters(settings))
    if not exporters:
        return
    provider = TracerProvider(
        sampler=ParentBased(_Root(settings.trace_ratio)),
        id_generator=_Ids(),
        resource=Resource.create({
            SERVICE_NAME: f"atoll-{service}",
            SERVICE_INSTANCE_ID: instance,
        }),
        shutdown_on_exit=False,
    )
    for exporter, delay_ms in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=delay_ms))
    _use(provider)


def shutdown() -> None:
    """Flush what is pending and stop; spans made later are lost."""
    provider = _provider
    _use(None)
    if provider is not None:
        provider.shutdown()


def enabled() -> bool:
    """True when spans go somewhere."""
    return _provider is not None


@contextmanager
def span(
    name: str,
    *,
    parent: str = "",
    kind: SpanKind = SpanKind.INTERNAL,
    attributes: Attributes | None = None,
    errors: bool = True,
) -> Iterator[Span]:
    """A span around the block, below `parent` (a traceparent) or else the current span.

    An exception that leaves the block marks it as failed, unless `errors` is False.
    """
    if _provider is None:
        with _carried(parent):
            yield trace.get_current_span()
        return
    context = remote_context(parent) if parent else None
    with _tracer.start_as_current_span(
        name,
        context=context,
        kind=kind,
        attributes=attributes,
        record_exception=errors,
        set_status_on_exception=errors,
    ) as made:
        yield made


def record(
    name: str,
    *,
    parent: str,
    start_ns: int,
    end_ns: int,
    attributes: Attributes | None = None,
    error: str = "",
) -> None:
    """Write a span that is over, for a job's stored traceparent; wall clock in ns since 1970.

    Costs a comparison when the trace is not kept.
    """
    if not sampled(parent):
        return
    made = _tracer.start_span(
        name, context=remote_context(parent), start_time=start_ns, attributes=attributes
    )
    if error:
        made.set_status(StatusCode.ERROR, error)
    made.end(end_time=end_ns)


def begin(
    name: str,
    *,
    own: str,
    link: str,
    start_ns: int,
    end_ns: int,
    attributes: Attributes | None = None,
) -> None:
    """Write the first span of a trace, over already: the very span that `own` names.

    It links to `link`, another traceparent. Costs a comparison when the trace is not kept.
    """
    if not sampled(own):
        return
    linked = trace.get_current_span(remote_context(link)).get_span_context()
    _, trace_id, span_id, _ = own.split("-")
    forced = _FORCED.set((int(trace_id, 16), int(span_id, 16)))
    try:
        made = _tracer.start_span(
            name,
            context=otel_context.Context(),
            start_time=start_ns,
            attributes=attributes,
            links=[trace.Link(linked)],
        )
    finally:
        _FORCED.reset(forced)
    made.end(end_time=end_ns)


def sampled(traceparent: str) -> bool:
    """True when a span below it would be kept."""
    return _provider is not None and traceparent[-1:] in SAMPLED


def traceparent() -> str:
    """The current span as W3C text, to be stored or sent; empty outside of any trace."""
    current = trace.get_current_span().get_span_context()
    if not current.is_valid:
        return ""
    return f"00-{current.trace_id:032x}-{current.span_id:016x}-{current.trace_flags:02x}"


def trace_ids() -> tuple[str, str] | None:
    """(trace id, span id) of the current span in hexadecimal, for the log."""
    current = trace.get_current_span().get_span_context()
    if not current.is_valid:
        return None
    return f"{current.trace_id:032x}", f"{current.span_id:016x}"


def log_ids(parent: str) -> dict[str, str]:
    """The trace of a stored traceparent as the log names it; empty when there is none."""
    parts = parent.split("-")
    return {"trace_id": parts[1]} if len(parts) == PARTS else {}


def remote_context(parent: str) -> otel_context.Context:
    """The context that a traceparent stands for; an empty one when it is malformed."""
    return _W3C.extract({TRACEPARENT: parent}, context=otel_context.Context())


@contextmanager
def _carried(parent: str) -> Iterator[None]:
    if not parent:
        yield
        return
    token = otel_context.attach(remote_context(parent))
    try:
        yield
    finally:
        otel_context.detach(token)


def _use(provider: TracerProvider | None) -> None:
    global _provider, _tracer  # noqa: PLW0603 - one per process, as OpenTelemetry's own
    _provider = provider
    _tracer = provider.get_tracer("atoll") if provider else trace.NoOpTracer()


def _exporters(settings: ServiceSettings) -> Iterator[tuple[SpanExporter, int]]:
    if settings.trace_file is not None:
        yield FileSpanExporter(settings.trace_file), FILE_DELAY_MS
    if settings.otlp_endpoint:
        # Late: it takes long to import, and few processes use it.
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

        insecure = not settings.otlp_endpoint.startswith("https://")
        yield OTLPSpanExporter(settings.otlp_endpoint, insecure=insecure), 5000


class _Ids(RandomIdGenerator):
    """Random ids, unless the span that is being made has its own."""

    def generate_trace_id(self) -> int:
        """Of a root span."""
        forced = _FORCED.get()
        return super().generate_trace_id() if forced is None else forced[0]

    def generate_span_id(self) -> int:
        """Of any span."""
        forced = _FORCED.get()
        return super().generate_span_id() if forced is None else forced[1]


class _Root(TraceIdRatioBased):
    """A share of new traces is kept, and those that somebody decided on already."""

    def should_sample(  # noqa: PLR0917 - the signature is OpenTelemetry's
        self,
        parent_context: otel_context.Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: OtelAttributes = None,
        links: Sequence[trace.Link] | None = None,
        trace_state: trace.TraceState | None = None,
    ) -> SamplingResult:
        """Whether a root span is kept."""
        decide = super().should_sample if _FORCED.get() is None else ALWAYS_ON.should_sample
        return decide(parent_context, trace_id, name, kind, attributes, links, trace_state)


class FileSpanExporter(SpanExporter):
    """Appends one JSON object per span to a file, which several processes may share."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write whole lines in one call, so that lines of several processes do not mix."""
        self._file.write("".join(f"{made.to_json(indent=None)}\n" for made in spans))
        self._file.flush()
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Close the file."""
        self._file.close()
