"""The client library: `Client` for programs that wait, `AsyncClient` for those on an event loop.

Importing it is cheap; gRPC is loaded when a client is made.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from atoll.client.aio import AsyncClient as AsyncClient
    from atoll.client.aio_job import AsyncJob as AsyncJob
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

_HOMES: Final = {
    "AsyncClient": "aio",
    "AsyncJob": "aio_job",
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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
