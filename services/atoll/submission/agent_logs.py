"""Reads output through the dispatch replica that holds an agent's session."""

import asyncio
from collections.abc import AsyncIterator, Callable

import grpc

from atoll.api.agent.v1 import agent_pb2, agent_pb2_grpc
from atoll.core.model.errors import DomainError, ErrorCode, Unavailable
from atoll.runtime.rpc.channel import outgoing_metadata
from atoll.submission.usecases.logs import HOLDER, LogChunk, LogRead
from atoll.wire.errors import error_of_call

MOST_CHANNELS = 64


class DispatchLogs:
    """A LogSource over AgentService.ReadLogs; keeps one channel per dispatch replica."""

    def __init__(self, dial: Callable[[str], grpc.aio.Channel]) -> None:
        self._dial = dial
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._closed = False

    async def read(self, holder: str, wanted: LogRead) -> AsyncIterator[LogChunk]:
        """Pieces until the output ends; raises DomainError, AGENT_UNREACHABLE among others."""
        stub = agent_pb2_grpc.AgentServiceStub(await self._channel(holder))
        request = agent_pb2.ReadLogsRequest(
            cluster=wanted.cluster,
            attempt_id=wanted.attempt,
            rank=wanted.rank,
            follow=wanted.follow,
            offset=wanted.offset,
            tail_lines=wanted.tail_lines,
        )
        call = stub.ReadLogs(request, metadata=outgoing_metadata())
        try:
            async for piece in call:
                yield LogChunk(piece.rank, piece.data, piece.offset)
        except grpc.aio.AioRpcError as error:
            raise _refusal(error, holder, wanted) from None
        except asyncio.CancelledError:
            # A closed channel cancels its calls here, which is not that our caller has gone.
            if self._closed:
                raise _stopping() from None
            raise
        finally:
            call.cancel()

    async def close(self) -> None:
        """Close all channels; what is being read ends with Unavailable."""
        self._closed = True
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()

    async def _channel(self, holder: str) -> grpc.aio.Channel:
        if self._closed:
            raise _stopping()
        channel = self._channels.get(holder)
        if channel is None:
            if len(self._channels) >= MOST_CHANNELS:
                oldest = next(iter(self._channels))
                await self._channels.pop(oldest).close()
            channel = self._channels[holder] = self._dial(holder)
        return channel


def _refusal(error: grpc.aio.AioRpcError, holder: str, wanted: LogRead) -> DomainError:
    found = error_of_call(
        error.code().value[0], error.details() or "", tuple(error.trailing_metadata() or ())
    )
    if found is not None and found.code not in (ErrorCode.UNAVAILABLE, ErrorCode.TIMED_OUT):
        return found
    return Unavailable(
        f"the output of cluster {wanted.cluster} cannot be read now: "
        f"its dispatch server {holder} does not answer ({error.code().name.lower()})",
        code=ErrorCode.AGENT_UNREACHABLE,
        metadata={"cluster": wanted.cluster, HOLDER: ""},
    )


def _stopping() -> Unavailable:
    return Unavailable("this server stops; read on from where you are", code=ErrorCode.UNAVAILABLE)
