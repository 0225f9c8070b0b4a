"""Connections to etcd and Redis as every service makes them, closed with the process."""

from typing import TypeVar

from atoll.adapters.etcd.connection import EtcdConnection, TlsFiles
from atoll.adapters.etcd.registry import EtcdRegistry
from atoll.adapters.memory.streams import MemoryDecisionStream, MemoryHints
from atoll.adapters.redis_streams.decisions import RedisDecisionStream
from atoll.adapters.redis_streams.hints import RedisHints
from atoll.ports.registry import RegistryPort
from atoll.ports.streams import DecisionStream, Hints
from atoll.runtime.process import Process
from atoll.runtime.settings import StoreSettings

S = TypeVar("S", bound=StoreSettings)


def etcd(process: Process[S]) -> EtcdConnection:
    """A connection to the members of the settings."""
    settings = process.settings
    tls = TlsFiles(ca=settings.etcd_ca, cert=settings.etcd_cert, key=settings.etcd_key)
    secured = tls if any(tls.paths()) else None
    connection = EtcdConnection(settings.etcd_endpoints, tls=secured)
    process.exits.push_async_callback(connection.close)
    return connection


def registry(process: Process[S], connection: EtcdConnection) -> RegistryPort:
    """Where this installation's services say that they are up."""
    prefix = f"{process.settings.etcd_prefix}/services"
    return EtcdRegistry(connection, clock=process.clock, prefix=prefix)


def decision_stream(process: Process[S]) -> DecisionStream:
    """The stream of decisions; without Redis one that nobody hears, and rows are read instead."""
    url = process.settings.redis_url.get_secret_value()
    if not url:
        return MemoryDecisionStream(process.clock)
    stream = RedisDecisionStream(url)
    process.exits.push_async_callback(stream.close)
    return stream


def hints(process: Process[S]) -> Hints:
    """Wake-ups; without Redis those of this process alone, and loops only poll."""
    url = process.settings.redis_url.get_secret_value()
    if not url:
        return MemoryHints()
    made = RedisHints(url, clock=process.clock)
    process.exits.push_async_callback(made.close)
    return made
