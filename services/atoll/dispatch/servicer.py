"""AgentService: wire to use case to wire."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import grpc

from atoll.api.agent.v1 import agent_pb2
from atoll.api.agent.v1.agent_pb2_grpc import AgentServiceServicer
from atoll.core.model.errors import (
    DomainError,
    ErrorCode,
    FieldViolation,
    InvalidInput,
    Unavailable,
)
from atoll.dispatch.listener import Listener, Requests
from atoll.dispatch.messages import claim_of, query_of, to_response
from atoll.dispatch.settings import DispatchSettings
from atoll.dispatch.usecases.logs import Logs
from atoll.dispatch.usecases.sessions import Sessions
from atoll.runtime import logs

log = logs.logger(__name__)

Context = grpc.aio.ServicerContext[Any, Any]


class DispatchServicer(AgentServiceServicer):
    """Sessions of agents, and their runs' output for others. `holder` is this replica's address."""

    def __init__(
        self,
        sessions: Sessions,
        listener: Listener,
        output: Logs,
        *,
        settings: DispatchSettings,
        holder: Callable[[], str],
    ) -> None:
        self._sessions = sessions
        self._listener = listener
        self._output = output
        self._settings = settings
        self._holder = holder

    async def Session(  # noqa: N802 - the name is the API's
        self, requests: Requests, context: Context
    ) -> AsyncIterator[agent_pb2.SessionResponse]:
        """One session, until its agent leaves, another takes over, or this replica stops."""
        hello = await self._hello(requests)
        claim = claim_of(hello, holder=self._holder(), settings=self._settings)
        session = await self._sessions.open(claim)
        log.info("session opened", cluster=session.cluster, epoch=session.epoch)
        listening = asyncio.create_task(self._listener.run(session, requests))
        try:
            while (message := await session.outbox.next()) is not None:
                yield to_response(message, session.epoch, self._settings)
        except DomainError as error:
            log.warning("session ended", cluster=session.cluster, error=error.message)
            raise
        finally:
            self._sessions.lost(session)
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def ReadLogs(  # noqa: N802 - the name is the API's
        self, request: agent_pb2.ReadLogsRequest, context: Context
    ) -> AsyncIterator[agent_pb2.ReadLogsResponse]:
        """Output of a run whose agent has its session here."""
        async with aclosing(self._output.read(query_of(request))) as pieces:
            async for piece in pieces:
                yield agent_pb2.ReadLogsResponse(
                    rank=piece.rank, data=piece.data, offset=piece.offset
                )

    async def _hello(self, requests: Requests) -> agent_pb2.Hello:
        try:
            async with asyncio.timeout(self._settings.hello_within_s):
                first = await anext(requests, None)
        except TimeoutError:
            raise Unavailable("no Hello came", code=ErrorCode.TIMED_OUT) from None
        if first is None or first.WhichOneof("message") != "hello":
            raise InvalidInput((FieldViolation("hello", "is to be the first message"),))
        return first.hello
