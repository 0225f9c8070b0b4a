"""The agent's life: one session after the other, until it is told to stop or its disk fails."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import grpc

from atoll.agent import telemetry
from atoll.agent.errors import GuardInTime, GuardTooSlow, SessionOver
from atoll.agent.grouplog import LogBroken
from atoll.agent.intake import restored_order, restored_resize
from atoll.agent.memory import Memory
from atoll.agent.parts import Parts
from atoll.agent.session import Session, first_to_end
from atoll.agent.usecases.attempts import Known
from atoll.api.agent.v1 import agent_pb2_grpc
from atoll.core.model.errors import DomainError, ErrorCode
from atoll.core.model.ids import AttemptId, ClusterName
from atoll.ports.backend import RunEvent
from atoll.ports.clock import Ids
from atoll.runtime import logs
from atoll.runtime.loops import Backoff

log = logs.logger(__name__)

DialedChannel = Callable[[str], grpc.aio.Channel]

BACKOFF: Final = Backoff(first_s=0.2, most_s=10.0, reset_s=15.0)
HELD_S: Final = 2.0
"""Another agent holds the cluster: its lease may be over soon."""
REFUSED_S: Final = 30.0
"""Dispatch will not have this agent until an operator does something."""


class Agent:
    """Keeps one session open, over whichever dispatch replica answers."""

    def __init__(
        self, parts: Parts, addresses: Sequence[str], *, dial: DialedChannel, ids: Ids
    ) -> None:
        self._parts = parts
        self._addresses = tuple(addresses)
        self._dial = dial
        self._ids = ids
        self._can_guard = parts.backend.capabilities.can_guard
        self._turn = int(ids.jitter() * len(self._addresses))
        self._failures = 0

    def restore(self, found: Sequence[RunEvent]) -> None:
        """Begin with what the journal knows and the backend found."""
        parts = self._parts
        parts.worker.restore(known_attempts(parts.journal.memory, parts.cluster), found)

    async def run(self, stopping: asyncio.Event) -> None:
        """Work until `stopping` is set; raises LogBroken when nothing can be journalled."""
        parts = self._parts
        await first_to_end(
            parts.reports.run(),
            parts.stock.run(),
            parts.worker.follow(),
            self._hold_sessions(stopping),
        )

    async def _hold_sessions(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            wait_s = await self._hold_one(stopping)
            if not stopping.is_set():
                await first_to_end(self._parts.clock.sleep(wait_s), _set(stopping))

    async def _hold_one(self, stopping: asyncio.Event) -> float:
        """Seconds to wait before the next session."""
        address = self._addresses[self._turn % len(self._addresses)]
        begun = self._parts.clock.monotonic()
        channel = self._dial(address)
        try:
            stub = agent_pb2_grpc.AgentServiceStub(channel)
            session = Session(self._parts, stub.Session(), can_guard=self._can_guard)
            await first_to_end(session.run(stopping), self._give_up(stopping))
        except (SessionOver, DomainError) as error:
            lasted_s = self._parts.clock.monotonic() - begun
            return self._ended(error, address, lasted_s=lasted_s)
        except LogBroken:
            raise
        except Exception:
            # A fault of ours in one session; runs and reports are none the worse for it.
            log.exception("session failed", dispatch=address)
            return self._next_turn(0.0)
        finally:
            await channel.close()
        return 0.0

    async def _give_up(self, stopping: asyncio.Event) -> None:
        """A session that cannot even be opened must not keep the process from ending."""
        await stopping.wait()
        await self._parts.clock.sleep(3 * BACKOFF.first_s + 6.0)

    def _ended(self, error: SessionOver | DomainError, address: str, *, lasted_s: float) -> float:
        cause = error.code.value if isinstance(error, DomainError) else "SESSION_OVER"
        telemetry.SESSIONS.labels(cause).inc()
        log.warning("session over", dispatch=address, cause=cause, why=str(error))
        match error:
            case GuardTooSlow():
                self._can_guard = False
                return 0.0
            case GuardInTime():
                self._can_guard = True
                return 0.0
            case DomainError(code=ErrorCode.ALREADY_HELD):
                self._parts.lease.end()
                return HELD_S * (0.5 + self._ids.jitter())
            case DomainError(code=ErrorCode.CLUSTER_RETIRED):
                self._parts.lease.end()
                self._parts.worker.stop_all()
                return REFUSED_S * (0.5 + self._ids.jitter())
            case DomainError(code=ErrorCode.JOIN_REFUSED):
                return REFUSED_S * (0.5 + self._ids.jitter())
            case _:
                return self._next_turn(lasted_s)

    def _next_turn(self, lasted_s: float) -> float:
        self._turn += 1
        self._failures = 1 if lasted_s >= BACKOFF.reset_s else self._failures + 1
        # Every replica gets one try before any of them has to be waited for.
        rounds = max(1, self._failures // len(self._addresses))
        return BACKOFF.wait_s(rounds, self._ids.jitter())


def known_attempts(memory: Memory, cluster: ClusterName) -> dict[AttemptId, Known]:
    """What a journal has of attempts, with their orders understood again."""
    return {
        attempt: Known(
            order=restored_order(what.start, cluster) if what.start else None,
            started=what.started,
            stop=what.stop,
            ended=what.ended,
            resize=restored_resize(what.resize, cluster) if what.resize else None,
        )
        for attempt, what in memory.attempts.items()
    }


async def _set(event: asyncio.Event) -> None:
    await event.wait()
