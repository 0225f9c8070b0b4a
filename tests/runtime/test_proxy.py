"""The faults of the network, as tests bring them about."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.proxy import LOOPBACK, Proxy
from tests.support.waiting import eventually

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Echo:
    """A server that answers each line with itself and remembers it."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            self.heard.append(line)
            writer.write(line)
        writer.close()


@pytest.fixture
def echo() -> Echo:
    """What the server heard."""
    return Echo()


@pytest.fixture
async def proxy(echo: Echo) -> AsyncIterator[Proxy]:
    """The way to it."""
    server = await asyncio.start_server(echo.serve, LOOPBACK, 0)
    async with server, Proxy(server.sockets[0].getsockname()[1]) as made:
        yield made


async def connected(proxy: Proxy) -> Ends:
    return await asyncio.open_connection(LOOPBACK, proxy.port)


async def ask(ends: Ends, line: bytes) -> bytes:
    ends[1].write(line)
    return await asyncio.wait_for(ends[0].readline(), 10)


async def test_it_passes_everything_by_itself(proxy: Proxy, echo: Echo) -> None:
    ends = await connected(proxy)
    assert await ask(ends, b"one\n") == b"one\n"
    assert echo.heard == [b"one\n"]
    assert proxy.connections == 1
    ends[1].close()


async def test_what_is_held_arrives_after_healing(proxy: Proxy, echo: Echo) -> None:
    ends = await connected(proxy)
    assert await ask(ends, b"one\n") == b"one\n"
    proxy.blackhole()
    waiting = asyncio.ensure_future(ask(ends, b"two\n"))
    await eventually(lambda: proxy.held_chunks == 1)
    assert echo.heard == [b"one\n"]
    assert not waiting.done()
    proxy.heal()
    assert await waiting == b"two\n"
    ends[1].close()


async def test_lost_answers_belong_to_requests_that_were_carried_out(
    proxy: Proxy, echo: Echo
) -> None:
    ends = await connected(proxy)
    proxy.drop_server_bytes()
    waiting = asyncio.ensure_future(ask(ends, b"commit\n"))
    await eventually(lambda: proxy.dropped_bytes == len(b"commit\n"))
    assert echo.heard == [b"commit\n"]
    assert not waiting.done()
    proxy.heal()  # a stream with a hole in it cannot go on
    with pytest.raises(ConnectionResetError):
        await waiting
    assert await ask(await connected(proxy), b"again\n") == b"again\n"


async def test_a_reset_ends_what_is_open_and_nothing_else(proxy: Proxy) -> None:
    ends = await connected(proxy)
    assert await ask(ends, b"one\n") == b"one\n"
    proxy.reset()
    with pytest.raises(ConnectionResetError):
        await ask(ends, b"two\n")
    assert await ask(await connected(proxy), b"three\n") == b"three\n"


async def test_refused_connections_never_reach_the_server(proxy: Proxy, echo: Echo) -> None:
    proxy.refuse()
    with pytest.raises(ConnectionResetError):
        await ask(await connected(proxy), b"one\n")
    assert proxy.refused == 1
    assert echo.heard == []
    proxy.heal()
    assert await ask(await connected(proxy), b"two\n") == b"two\n"


async def test_latency_delays_each_way(proxy: Proxy) -> None:
    ends = await connected(proxy)
    proxy.latency_s = 0.05
    loop = asyncio.get_running_loop()
    start = loop.time()
    assert await ask(ends, b"one\n") == b"one\n"
    assert loop.time() - start >= 2 * proxy.latency_s  # what was asked for, at least
    ends[1].close()
