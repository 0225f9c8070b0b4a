"""Hears what an agent says in its session, and hands it on."""

from collections.abc import AsyncIterator
from contextlib import suppress

from atoll.api.agent.v1 import agent_pb2
from atoll.core.model.errors import (
    DomainError,
    ErrorCode,
    FieldViolation,
    InvalidInput,
    Unavailable,
)
from atoll.core.model.ids import ClusterName
from atoll.core.model.messages import Report
from atoll.dispatch.intake import ReportIntake
from atoll.dispatch.loops import BeatLoop
from atoll.dispatch.messages import chunk_of, part_of
from atoll.dispatch.usecases.beats import Heartbeat
from atoll.dispatch.usecases.inventory import Inventories
from atoll.dispatch.usecases.session import Session
from atoll.dispatch.usecases.sessions import Sessions, acknowledge
from atoll.runtime import logs
from atoll.wire.enums import WireError
from atoll.wire.report import report_from_proto

log = logs.logger(__name__)

Requests = AsyncIterator[agent_pb2.SessionRequest]


class Listener:
    """The way in of all sessions. What fails ends the session, and the agent opens it anew."""

    def __init__(
        self,
        sessions: Sessions,
        inventories: Inventories,
        *,
        beats: BeatLoop,
        intake: ReportIntake,
    ) -> None:
        self._sessions = sessions
        self._inventories = inventories
        self._beats = beats
        self._intake = intake

    async def run(self, session: Session, requests: Requests) -> None:
        """Hear everything until the stream or the session ends; never raises."""
        try:
            async for request in requests:
                if request.session_epoch == session.epoch:
                    await self._take(session, request)
        except DomainError as error:
            session.end(error)
        except WireError as error:
            session.end(InvalidInput((FieldViolation("message", str(error)),)))
        except Exception as error:
            log.error("session failed", cluster=session.cluster, exc_info=error)
            session.end(Unavailable("the session failed", code=ErrorCode.UNAVAILABLE))
        else:
            session.end()

    async def _take(self, session: Session, request: agent_pb2.SessionRequest) -> None:
        match request.WhichOneof("message"):
            case "heartbeat":
                await self._heartbeat(session, request.heartbeat)
            case "reports":
                await self._intake.put(session, _reports(request.reports, session.cluster))
            case "applied_seq":
                acknowledge(session, request.applied_seq)
            case "inventory":
                await self._inventory(session, request.inventory)
            case "log_chunk":
                session.desk.take(chunk_of(request.log_chunk))
            case "goodbye":
                await self._sessions.goodbye(session)
            case _:
                log.warning("message out of place", cluster=session.cluster)

    async def _heartbeat(self, session: Session, heartbeat: agent_pb2.Heartbeat) -> None:
        acknowledge(session, heartbeat.applied_seq)
        self._beats.put(Heartbeat(session, heartbeat.number))
        with suppress(Unavailable):  # the next heartbeat compares again
            await self._inventories.compare(
                session, number=heartbeat.inventory_number, digest=heartbeat.inventory_hash
            )

    async def _inventory(self, session: Session, update: agent_pb2.InventoryUpdate) -> None:
        try:
            await self._inventories.take(session, part_of(update))
        except Unavailable as error:  # heartbeats will show the difference
            log.warning("inventory not written", cluster=session.cluster, error=error.message)


def _reports(batch: agent_pb2.ReportBatch, cluster: ClusterName) -> list[Report]:
    return [report_from_proto(report, cluster) for report in batch.reports]
