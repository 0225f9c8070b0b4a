"""The client library: `Client` for programs that wait, `AsyncClient` for those on an event loop.

Importing it is cheap; gRPC is loaded when a client is made.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from atoll.client.aio import AsyncClient as AsyncClient
    from atoll.client.aio_job import AsyncJob as AsyncJob
    from atoll.client.booking_views import BookingFilter as BookingFilter
    from atoll.client.booking_views import BookingInfo as BookingInfo
    from atoll.client.config import ClientConfig as ClientConfig
    from atoll.client.config import load_config as load_config
    from atoll.client.errors import CallFailed as CallFailed
    from atoll.client.errors import LogsDropped as LogsDropped
    from atoll.client.errors import NotAllowed as NotAllowed
    from atoll.client.errors import TimedOut as TimedOut
    from atoll.client.job import Job as Job
    from atoll.client.spec import Spec as Spec
    from atoll.client.spec import parse_spec as parse_spec
    from atoll.client.spec import read_spec_file as read_spec_file
    from atoll.client.sync import Client as Client
    from atoll.core.model.refusal import BookingRefused as BookingRefused

_HOMES: Final = {
    "AsyncClient": "aio",
    "AsyncJob": "aio_job",
    "BookingFilter": "booking_views",
    "BookingInfo": "booking_views",
    "CallFailed": "errors",
    "Client": "sync",
    "ClientConfig": "config",
    "Job": "job",
    "LogsDropped": "errors",
    "NotAllowed": "errors",
    "Spec": "spec",
    "TimedOut": "errors",
    "load_config": "config",
    "parse_spec": "spec",
    "read_spec_file": "spec",
}


_ELSEWHERE: Final = {"BookingRefused": "atoll.core.model.refusal"}


def __getattr__(name: str) -> Any:
    home = _ELSEWHERE.get(name) or (f"{__name__}.{_HOMES[name]}" if name in _HOMES else "")
    if not home:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)
