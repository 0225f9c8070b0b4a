"""The network between agents and dispatch: streams in one process, with the faults of real ones.

The agent dials where it would dial gRPC and finds the dispatch servicer at the other end, with the
same messages. A link can be cut (nothing arrives, nobody is told) and slow.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Final, cast

import grpc

from atoll.adapters.memory.signal import Signal
from atoll.core.model.errors import DomainError, ErrorCode, Unavailable
from atoll.dispatch.servicer import DispatchServicer
from atoll.ports.clock import Clock
from atoll.runtime import logs
from atoll.wire.errors import STATUS_KEY, code_of, status_of

log = logs.logger(__name__)

MOST_ON_THE_WAY: Final = 64
"""Messages in one direction; then the writer waits, as gRPC lets it."""
SESSION: Final = "/atoll.api.agent.v1.AgentService/Session"
_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}


@dataclass(eq=False)
class Link:
    """What lies between one agent and all dispatch replicas."""

    clock: Clock
    cut: bool = False
    """Messages wait for its healing, in both directions; nobody hears of an end either."""
    slow_s: float = 0.0
    """How long a message takes."""
    delayed: int = 0
    """Messages that had to wait so far."""
    changed: Signal = field(default_factory=Signal)

    def set_cut(self, *, on: bool) -> None:
        """Cut or heal."""
        self.cut = on
        self.changed.fire()

    def due(self) -> float:
        """When a message that is sent now arrives, if the link is not cut then; monotonic."""
        if self.cut or self.slow_s:
            self.delayed += 1
        return self.clock.monotonic() + self.slow_s

    async def arrival(self, due: float) -> None:
        """Return when a message has come through."""
        wait_s = due - self.clock.monotonic()
        if wait_s > 0:
            await self.clock.sleep(wait_s)
        await self.changed.wait(lambda: not self.cut)


class Exchange:
    """Dispatch replicas by address."""

    def __init__(self, on_mishap: Callable[[str, Exception], None]) -> None:
        self._servicers: dict[str, DispatchServicer] = {}
        self._calls: dict[str, list[Call]] = {}
        self._on_mishap = on_mishap

    def serve(self, address: str, servicer: DispatchServicer) -> None:
        """A replica is there from now on."""
        self._servicers[address] = servicer

    def withdraw(self, address: str) -> None:
        """A replica is gone as if killed: its calls break."""
        self._servicers.pop(address, None)
        for call in self._calls.pop(address, []):
            call.break_off()

    def dial(self, address: str, link: Link) -> grpc.aio.Channel:
        """A channel to a replica, whether or not there is one."""
        return cast("grpc.aio.Channel", _Channel(self, address, link))

    def open(self, address: str, link: Link) -> "Call":
        """A new session's call."""
        call = Call(self._servicers.get(address), link, self._on_mishap)
        calls = [each for each in self._calls.get(address, []) if not each.over]
        self._calls[address] = [*calls, call]
        return call


class _Channel:
    """As much of a channel as an agent's stub needs."""

    def __init__(self, exchange: Exchange, address: str, link: Link) -> None:
        self._exchange = exchange
        self._address = address
        self._link = link

    def stream_stream(self, method: str, *_: object, **__: object) -> Callable[[], "Call"]:
        """Makes calls of a method with streams both ways."""
        assert method == SESSION
        return lambda: self._exchange.open(self._address, self._link)

    def unary_stream(self, *_: object, **__: object) -> None:
        """Agents do not read logs."""

    async def close(self) -> None:
        """Nothing is kept open but calls, which their owners cancel."""


class Call:
    """Both ends of one stream: the client's methods, and the servicer running at its other end."""

    def __init__(
        self,
        servicer: DispatchServicer | None,
        link: Link,
        on_mishap: Callable[[str, Exception], None],
    ) -> None:
        self._link = link
        self._on_mishap = on_mishap
        self._up: asyncio.Queue[tuple[float, Any]] = asyncio.Queue(MOST_ON_THE_WAY)
        self._down: asyncio.Queue[tuple[float, Any]] = asyncio.Queue(MOST_ON_THE_WAY)
        self._error: grpc.aio.AioRpcError | None = None
        self.over = False
        self._server = asyncio.ensure_future(self._serve(servicer))
        self._leaving: asyncio.Task[None] | None = None

    async def write(self, message: object) -> None:
        """Send; raises InvalidStateError once the stream is over, as gRPC does."""
        if self.over:
            raise asyncio.InvalidStateError("the stream is over")
        await self._up.put((self._link.due(), message))

    async def done_writing(self) -> None:
        """Nothing more is sent."""
        await self._up.put((self._link.due(), None))

    async def read(self) -> object:
        """The next message, or EOF; raises AioRpcError with what ended the stream."""
        due, message = await self._down.get()
        await self._link.arrival(due)
        if message is not None:
            return message
        self.over = True
        if self._error is not None:
            raise self._error
        return grpc.aio.EOF

    def cancel(self) -> None:
        """The client is gone; the server hears of it when the link lets it."""
        if not self.over:
            self.over = True
            self._leaving = asyncio.ensure_future(self._hang_up())

    def break_off(self) -> None:
        """The server is gone."""
        self._server.cancel()
        self._finish(Unavailable("connection reset", code=ErrorCode.UNAVAILABLE))

    async def _hang_up(self) -> None:
        await self._link.arrival(self._link.due())
        self._server.cancel()

    async def _serve(self, servicer: DispatchServicer | None) -> None:
        if servicer is None:
            self._finish(Unavailable("nobody listens there", code=ErrorCode.UNAVAILABLE))
            return
        try:
            await self._answer(servicer)
        except DomainError as error:
            self._finish(error)
        except Exception as error:
            self._on_mishap("session", error)
            self._finish(Unavailable("internal error", code=ErrorCode.UNAVAILABLE))
        else:
            self._finish(None)

    async def _answer(self, servicer: DispatchServicer) -> None:
        stream = servicer.Session(self._requests(), cast("Any", None))
        answers = cast("AsyncGenerator[Any, None]", stream)
        try:
            async for answer in answers:
                await self._down.put((self._link.due(), answer))
        finally:
            await answers.aclose()

    async def _requests(self) -> AsyncIterator[Any]:
        while True:
            due, message = await self._up.get()
            await self._link.arrival(due)
            if message is None:
                return
            yield message

    def _finish(self, error: DomainError | None) -> None:
        self._error = None if error is None else as_call_error(error)
        if self._down.full():
            self._down.get_nowait()  # what is not read yet is lost with the stream
        self._down.put_nowait((self._link.due(), None))


def as_call_error(error: DomainError) -> grpc.aio.AioRpcError:
    """What a caller gets for a refusal."""
    details = status_of(error).SerializeToString()
    return grpc.aio.AioRpcError(
        _CODES[code_of(error)],
        grpc.aio.Metadata(),
        grpc.aio.Metadata((STATUS_KEY, details)),
        details=error.message,
    )
