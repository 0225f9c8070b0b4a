"""Lets others read the output of runs, through the session of their agent."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from atoll.core.model.errors import ErrorCode, Exhausted, NotFound
from atoll.core.model.ids import AttemptId, ClusterName, attempt_name
from atoll.dispatch.usecases.desk import LogDesk, unreachable
from atoll.dispatch.usecases.limits import Limits
from atoll.dispatch.usecases.relay import Piece, Relay, Wanted
from atoll.dispatch.usecases.table import SessionTable
from atoll.ports.store.dispatch import DispatchStore


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Whose output, and how much of it."""

    cluster: ClusterName
    attempt: AttemptId
    rank: int
    """-1: of all tasks."""
    follow: bool = False
    offset: int = 0
    tail_lines: int = 0


class Logs:
    """Reads output of runs whose agents have their session here."""

    def __init__(self, store: DispatchStore, table: SessionTable, *, limits: Limits) -> None:
        self._store = store
        self._table = table
        self._limits = limits

    async def read(self, query: LogQuery) -> AsyncGenerator[Piece]:
        """The output, until it ends. Closing the iterator tells the agent to stop.

        Raises Unavailable AGENT_UNREACHABLE (its metadata `holder` says which replica has the
        session), NotFound, or Exhausted.
        """
        desk = await self._desk(query.cluster)
        wanted = await self._wanted(query)
        if len(desk.relays) >= self._limits.relays or (
            len(desk) + len(wanted.ranks) > self._limits.log_requests
        ):
            raise Exhausted("too many readers of this cluster's output", code=ErrorCode.TOO_LARGE)
        relay = Relay(desk, wanted, most_bytes=self._limits.log_bytes)
        desk.relays.add(relay)
        try:
            while (piece := await relay.next()) is not None:
                yield piece
        finally:
            desk.relays.discard(relay)
            relay.close()

    async def _desk(self, cluster: ClusterName) -> LogDesk:
        session = self._table.get(cluster)
        if session is None or not session.open:
            raise unreachable(cluster, await self._store.address_of(cluster) or "")
        return session.desk

    async def _wanted(self, query: LogQuery) -> Wanted:
        async with self._store.begin() as tx:
            attempt = (await tx.lock_attempts([query.attempt])).get(query.attempt)
        if attempt is None or attempt.cluster != query.cluster:
            raise NotFound(
                f"attempt {attempt_name(query.attempt)} is not known on {query.cluster}",
                code=ErrorCode.ATTEMPT_NOT_FOUND,
            )
        ranks = tuple(sorted(task.rank for task in attempt.tasks))
        if query.rank >= 0 and query.rank not in ranks:
            raise NotFound(
                f"attempt {attempt_name(query.attempt)} has no task of rank {query.rank}",
                code=ErrorCode.ATTEMPT_NOT_FOUND,
            )
        return Wanted(
            attempt=query.attempt,
            ranks=ranks if query.rank < 0 else (query.rank,),
            follow=query.follow,
            offset=query.offset,
            tail_lines=query.tail_lines,
        )
