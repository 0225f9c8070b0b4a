"""What goes over a session's stream, in the words of the use cases."""

from hashlib import sha256
from typing import assert_never

from atoll.api.agent.v1 import agent_pb2
from atoll.core.model.ids import AttemptId, ClusterName
from atoll.dispatch.settings import DispatchSettings
from atoll.dispatch.usecases.inventory import InventoryPart
from atoll.dispatch.usecases.logs import LogQuery
from atoll.dispatch.usecases.outbox import (
    BeatAck,
    Decisions,
    LogAsk,
    LogStop,
    Message,
    Ready,
    ReportsAck,
    Resync,
    Welcome,
)
from atoll.dispatch.usecases.relay import Chunk
from atoll.ports.store.dispatch import SessionClaim
from atoll.wire.decision import StartOrder, decision_to_proto, start_to_proto
from atoll.wire.inventory import node_from_proto


def claim_of(hello: agent_pb2.Hello, *, holder: str, settings: DispatchSettings) -> SessionClaim:
    """What an agent says when it opens a session."""
    return SessionClaim(
        cluster=ClusterName(hello.cluster),
        instance=hello.agent_instance,
        holder=holder,
        backend=hello.backend,
        can_guard=hello.can_guard
        and settings.guard_is_in_time(hello.stop_after_s, hello.max_grace_s),
        levels=tuple(hello.levels),
        labels=tuple(sorted(hello.labels.items())),
        lease_s=settings.lease_s,
        applied_seq=hello.applied_seq,
        last_report=hello.last_report,
        fresh_journal=hello.fresh_journal,
        join_hash=sha256(hello.join_token.encode()).digest() if hello.join_token else b"",
    )


def to_response(
    message: Message, epoch: int, settings: DispatchSettings
) -> agent_pb2.SessionResponse:
    """A message on its way to the agent."""
    match message:
        case Welcome():
            return agent_pb2.SessionResponse(
                session_epoch=epoch, welcome=_welcome(message, settings)
            )
        case Decisions(items):
            batch = agent_pb2.DecisionBatch(decisions=[ready_to_proto(item) for item in items])
            return agent_pb2.SessionResponse(session_epoch=epoch, decisions=batch)
        case BeatAck(number, head_seq):
            beat = agent_pb2.HeartbeatAck(number=number, head_seq=head_seq)
            return agent_pb2.SessionResponse(session_epoch=epoch, heartbeat_ack=beat)
        case ReportsAck(report_seq, stop):
            ack = agent_pb2.ReportAck(report_seq=report_seq, stop_attempt_ids=stop)
            return agent_pb2.SessionResponse(session_epoch=epoch, report_ack=ack)
        case Resync():
            return agent_pb2.SessionResponse(
                session_epoch=epoch, resync=agent_pb2.ResyncInventory()
            )
        case LogAsk():
            return agent_pb2.SessionResponse(session_epoch=epoch, log_request=_log_ask(message))
        case LogStop(request):
            stopped = agent_pb2.LogCancel(request=request)
            return agent_pb2.SessionResponse(session_epoch=epoch, log_cancel=stopped)
        case _:
            assert_never(message)


def ready_to_proto(item: Ready) -> agent_pb2.Decision:
    """A decision with what it needs."""
    if item.start is None:
        return decision_to_proto(item.decision)
    return start_to_proto(item.decision, StartOrder(item.start.spec, item.addresses))


def part_of(update: agent_pb2.InventoryUpdate) -> InventoryPart:
    """A part of an inventory."""
    return InventoryPart(
        number=update.number,
        full=update.full,
        more=update.more,
        nodes=tuple(node_from_proto(node) for node in update.nodes),
        gone=tuple(update.gone),
        hash=update.hash,
    )


def chunk_of(chunk: agent_pb2.LogChunk) -> Chunk:
    """A piece of output from the agent."""
    return Chunk(
        request=chunk.request,
        offset=chunk.offset,
        data=chunk.data,
        end=chunk.end,
        error=chunk.error,
    )


def query_of(request: agent_pb2.ReadLogsRequest) -> LogQuery:
    """What a reader of output asks for."""
    return LogQuery(
        cluster=ClusterName(request.cluster),
        attempt=AttemptId(request.attempt_id),
        rank=request.rank,
        follow=request.follow,
        offset=request.offset,
        tail_lines=request.tail_lines,
    )


def _welcome(message: Welcome, settings: DispatchSettings) -> agent_pb2.Welcome:
    return agent_pb2.Welcome(
        head_seq=message.head_seq,
        heartbeat_s=settings.heartbeat_s,
        lease_s=settings.lease_s,
        report_seq=message.report_seq,
        live_attempts=message.live,
        stopping_attempts=message.stopping,
        from_snapshot=message.from_snapshot,
        lost_after_s=settings.lost_after_s,
        bind_timeout_s=settings.bind_timeout_s,
    )


def _log_ask(message: LogAsk) -> agent_pb2.LogRequest:
    return agent_pb2.LogRequest(
        request=message.request,
        attempt_id=message.attempt,
        rank=message.rank,
        follow=message.follow,
        offset=message.offset,
        tail_lines=message.tail_lines,
    )
