"""A TCP way to a server that can be made slow, silent, deaf or broken."""

import asyncio
import contextlib
import socket
import struct
from typing import Final, Self

CHUNK_BYTES: Final = 1 << 16
LOOPBACK: Final = "127.0.0.1"
ABORT_AT_CLOSE: Final = struct.pack("ii", 1, 0)


class Proxy:
    """Stands between clients and `host:port`; tests look at its counters to see a fault happen.

    `latency_s` is added to every chunk, both ways.
    """

    def __init__(self, port: int, *, host: str = LOOPBACK) -> None:
        self.latency_s = 0.0
        self.connections = 0
        self.refused = 0
        self.held_chunks = 0
        self.dropped_bytes = 0
        self._target = (host, port)
        self._server: asyncio.Server | None = None
        self._open: set[_Connection] = set()
        self._passing = asyncio.Event()
        self._passing.set()
        self._drop_from_server = False
        self._refuse = False

    @property
    def port(self) -> int:
        """Where clients connect."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def address(self) -> str:
        """`host:port` for clients."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def passing(self) -> asyncio.Event:
        """Set while bytes go through."""
        return self._passing

    def blackhole(self) -> None:
        """Nothing arrives on either side, nothing is closed: as if cables were cut."""
        self._passing.clear()

    def drop_server_bytes(self) -> None:
        """Requests arrive and are carried out, answers get lost."""
        self._drop_from_server = True

    def reset(self) -> None:
        """Cut every open connection with a reset; new ones go through."""
        for connection in tuple(self._open):
            connection.abort()

    def refuse(self) -> None:
        """Cut every open connection and let no new one through."""
        self._refuse = True
        self.reset()

    def heal(self) -> None:
        """Let everything through: held bytes arrive late, connections that lost some are cut."""
        if self._drop_from_server and self.dropped_bytes:
            self.reset()
        self._drop_from_server = self._refuse = False
        self.latency_s = 0.0
        self._passing.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, LOOPBACK, 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self._passing.set()
        self.reset()
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuse:
            self.refused += 1
            _abort(writer)
            return
        self.connections += 1
        await self._passing.wait()
        try:
            to_server = await asyncio.open_connection(*self._target)
        except OSError:
            _abort(writer)
            return
        connection = _Connection(self, (reader, writer), to_server)
        self._open.add(connection)
        try:
            await connection.run()
        finally:
            self._open.discard(connection)

    def take_from_server(self, chunk: bytes) -> bool:
        """Whether a chunk of the server's may go on to the client."""
        if self._drop_from_server:
            self.dropped_bytes += len(chunk)
        return not self._drop_from_server


_Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Connection:
    def __init__(self, proxy: Proxy, client: _Ends, server: _Ends) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server

    async def run(self) -> None:
        """Until either side closes."""
        pumps = [
            asyncio.ensure_future(self._pump(self._client[0], self._server[1], from_server=False)),
            asyncio.ensure_future(self._pump(self._server[0], self._client[1], from_server=True)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._client[1].close()
            self._server[1].close()

    def abort(self) -> None:
        """Reset both sides."""
        _abort(self._client[1])
        _abort(self._server[1])

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, from_server: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while chunk := await source.read(CHUNK_BYTES):
                if not self._proxy.passing.is_set():
                    self._proxy.held_chunks += 1
                    await self._proxy.passing.wait()
                await asyncio.sleep(self._proxy.latency_s)
                if not from_server or self._proxy.take_from_server(chunk):
                    sink.write(chunk)
                    await sink.drain()


def _abort(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT_AT_CLOSE)
    writer.transport.abort()
