"""A service as a process: settings, log, traces, metrics, the event loop, signals, the way out.

    def main() -> int:
        return run("submission", SubmissionSettings, serve)

    async def serve(process: Process[SubmissionSettings]) -> None:
        ...                                    # build adapters, enter them on process.exits
        process.server_for({NAME: lambda server: add_…_to_server(servicer, server)})
        await process.serve_until_stopped()

`python -m atoll.<service> config` prints the settings with their origins and ends.
"""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Generic

import uvloop

from atoll.adapters.system import SystemClock, SystemIds
from atoll.ports.clock import Clock, Ids
from atoll.runtime import config, garbage, logs, tracing
from atoll.runtime.config import ConfigError, Loaded, S
from atoll.runtime.http import HttpServer
from atoll.runtime.loops import Supervisor
from atoll.runtime.rpc.server import MAX_MESSAGE_BYTES, Add, GrpcServer

log = logs.logger(__name__)

SHOW_CONFIG = "config"
USAGE_ERROR = 2


class Process(Generic[S]):
    """What every service has. Leaving `exits` undoes what was entered on it, in reverse."""

    def __init__(self, service: str, settings: S, *, clock: Clock, ids: Ids) -> None:
        self.service = service
        self.settings = settings
        self.clock = clock
        self.ids = ids
        self.instance = f"{service}-{ids.token(6)}"
        """Identity of this process, in elections, registry and traces."""
        self.stopping = asyncio.Event()
        """Set by SIGTERM and SIGINT."""
        self.exits = AsyncExitStack()
        self.supervisor = Supervisor(clock, ids)
        self.server: GrpcServer | None = None
        self.readiness: Callable[[], bool] | None = None
        """Whether it is ready, of a service that has no gRPC server."""

    def server_for(
        self, services: Mapping[str, Add], *, max_message_bytes: int = MAX_MESSAGE_BYTES
    ) -> GrpcServer:
        """Make the process's server, not started yet."""
        self.server = GrpcServer(
            self.settings,
            services,
            clock=self.clock,
            ids=self.ids,
            max_message_bytes=max_message_bytes,
        )
        return self.server

    async def serve_until_stopped(self) -> None:
        """Start the server, wait for a signal, say NOT_SERVING, drain."""
        if self.server is None:
            raise RuntimeError("server_for() comes first")
        await self.server.start()
        try:
            await self.stopping.wait()
            log.info("draining")
        finally:
            await self.server.drain()

    def ready(self) -> bool:
        """What /readyz answers."""
        if self.stopping.is_set():
            return False
        if self.readiness is not None:
            return self.readiness()
        return self.server is not None and self.server.serving


ServiceMain = Callable[[Process[S]], Awaitable[None]]


def run(
    service: str,
    kind: type[S],
    main: ServiceMain[S],
    *,
    arguments: Sequence[str] | None = None,
) -> int:
    """Run a service to its end; the exit code: 0, 1 for a failure, 2 for wrong settings."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    show = given[:1] == [SHOW_CONFIG]
    try:
        loaded = config.load(kind, service, given[1:] if show else given)
    except ConfigError as error:
        print(f"atoll {service}: {error}", file=sys.stderr)  # noqa: T201 - there is no log yet
        return USAGE_ERROR
    if show:
        _show(loaded)
        return 0
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run(service, loaded.settings, main))


async def _run(service: str, settings: S, main: ServiceMain[S]) -> int:
    garbage.settle()
    process = Process(service, settings, clock=SystemClock(), ids=SystemIds())
    logs.configure(settings.log_level, form=settings.log_format, service=service)
    tracing.configure(settings, service, instance=process.instance)
    _stop_on_signals(process.stopping)
    try:
        async with process.exits:
            http = HttpServer(settings, alive=lambda: True, ready=process.ready)
            process.exits.callback(http.close)
            log.info("starting", instance=process.instance, metrics=http.address)
            try:
                await main(process)
            finally:
                # Before the connections that the loops use.
                await process.supervisor.close()
    except Exception:
        log.exception("service failed")
        return 1
    finally:
        tracing.shutdown()
    log.info("stopped")
    return 0


def _stop_on_signals(stopping: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)


def _show(loaded: Loaded[S]) -> None:
    rows = config.shown(loaded)
    width = max(len(field) for field, _, _ in rows)
    for field, value, origin in rows:
        print(f"{field:<{width}}  {value or '-'}  ({origin})")  # noqa: T201 - what was asked for
