"""Logging: one JSON object (or one console line) per event on stderr, with trace and job ids.

What is logged while a call is served says who made it, without costing calls that log nothing.

`bound(job_id=…)` adds ids to everything that is logged inside a block. Libraries that log through
the standard library come out in the same form.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from atoll.runtime import tracing
from atoll.runtime.rpc.caller import log_fields


def configure(level: str, *, form: str, service: str) -> None:
    """Set the process's log up; may be called again."""
    number = logging.getLevelNamesMapping()[level.upper()]
    shared = _shared(service)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.stdlib.LoggerFactory(),
        # A cached logger would keep the first set-up for ever: its level and its form.
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_rendering(form),
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(number, logging.INFO), force=True)
    logging.getLogger("atoll").setLevel(number)


def logger(name: str) -> FilteringBoundLogger:
    """The logger of a module; name it `__name__`."""
    return cast(FilteringBoundLogger, structlog.get_logger(name))


@contextmanager
def bound(**ids: str | int) -> Iterator[None]:
    """Add ids to all that is logged inside the block, in the tasks it starts too."""
    with structlog.contextvars.bound_contextvars(**ids):
        yield


def _shared(service: str) -> list[Processor]:
    def add_service(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        event["service"] = service
        return event

    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        add_service,
        _add_caller,
        _add_trace,
    ]


def _add_caller(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    for key, value in log_fields().items():
        event.setdefault(key, value)
    return event


def _add_trace(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    if ids := tracing.trace_ids():
        event["trace_id"], event["span_id"] = ids
    return event


def _rendering(form: str) -> list[Processor]:
    if form == "console":
        return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
