"""Decisions on their way in: strictly in order, journalled in groups, then carried out."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from atoll.agent import telemetry
from atoll.agent.errors import SessionOver
from atoll.agent.parts import Parts
from atoll.agent.records import Decided, Prefix, StopWish, TakenOver
from atoll.agent.worker import Worker
from atoll.api.agent.v1 import agent_pb2
from atoll.core.model.ids import AttemptId, ClusterName
from atoll.core.model.lifecycle import StopCause
from atoll.core.model.messages import Decision, DecisionKind
from atoll.ports.backend import ResizeOrder, StartOrder
from atoll.runtime import failpoints, logs
from atoll.wire.decision import decision_from_proto, start_from_proto
from atoll.wire.enums import WireError

log = logs.logger(__name__)

BATCHES_WAITING: Final = 16
"""Then the stream is not read on, and dispatch feels it."""
MOST_IN_GROUP: Final = 2_048


@dataclass(frozen=True, slots=True)
class Understood:
    """A decision, as the journal keeps it and as it is carried out."""

    record: Decided
    cause: StopCause = StopCause.NONE
    order: StartOrder | None = None
    """START and RESIZE."""
    generation: int = 0
    """RESIZE."""
    why_not: str = ""
    """START: what this agent does not understand of it."""


class Intake:
    """The decisions of one session; `on_applied` is called when the prefix has grown."""

    def __init__(self, parts: Parts, on_applied: Callable[[], None]) -> None:
        self.received = parts.applied
        """The last decision taken into a group."""
        self._parts = parts
        self._on_applied = on_applied
        self._waiting: asyncio.Queue[Sequence[agent_pb2.Decision]] = asyncio.Queue(BATCHES_WAITING)
        self._head = 0
        self._holding = False

    @property
    def starved(self) -> bool:
        """Whether it would take decisions and has none."""
        return self._waiting.empty() and not self._holding

    async def begin(self, welcome: agent_pb2.Welcome) -> None:
        """Settle where this session's decisions go on from."""
        parts, self._head = self._parts, welcome.head_seq
        if welcome.from_snapshot:
            await self._take_over(welcome)
        elif self._head < parts.applied:
            # Numbers up to ours would be given a second time, and be taken for old ones.
            log.error(
                "dispatch knows fewer decisions than were applied here",
                head_seq=self._head,
                applied_seq=parts.applied,
            )
            self._holding = True
        elif parts.journal.memory.applied is None:
            await parts.journal.append([Prefix(0)])
        self._release()

    async def offer(self, decisions: Sequence[agent_pb2.Decision]) -> None:
        """Queue a batch; waits while too many wait."""
        await self._waiting.put(decisions)

    async def run(self) -> None:
        """Journal what is offered and carry it out, for ever.

        Raises SessionOver where a decision is missing, LogBroken when the disk fails.
        """
        while True:
            decisions = list(await self._waiting.get())
            while not self._waiting.empty() and len(decisions) < MOST_IN_GROUP:
                decisions += self._waiting.get_nowait()
            await self._parts.reports.room()
            if not self._holding:
                await self._apply(self._in_order(decisions))

    async def _take_over(self, welcome: agent_pb2.Welcome) -> None:
        live = [AttemptId(attempt) for attempt in welcome.live_attempts]
        stopping = [AttemptId(attempt) for attempt in welcome.stopping_attempts]
        await asyncio.shield(self._journal_and_adopt(welcome.head_seq, live, stopping))
        self.received = welcome.head_seq

    async def _journal_and_adopt(
        self, head: int, live: Sequence[AttemptId], stopping: Sequence[AttemptId]
    ) -> None:
        # The STOP of these went to another agent, which may not have carried it out.
        stops = [StopWish(attempt) for attempt in stopping]
        await self._parts.journal.append([TakenOver(head, tuple(live)), *stops])
        self._parts.worker.take_over(live)
        self._parts.worker.stop_dead(stopping)

    async def _apply(self, group: Sequence[Understood]) -> None:
        if not group:
            return
        # Shielded: what is in the journal is not said again, so it is carried out even if the
        # session ends meanwhile.
        await asyncio.shield(self._journal_and_carry_out(group))
        self._on_applied()
        self._release()

    async def _journal_and_carry_out(self, group: Sequence[Understood]) -> None:
        parts = self._parts
        await parts.journal.append([item.record for item in group])
        failpoints.hit("agent.journalled")
        for item in group:
            carry_out(item, parts.worker)
            telemetry.DECISIONS.labels(item.record.kind.value).inc()
        telemetry.APPLIED.set(parts.applied)
        telemetry.JOURNAL.set(parts.journal.size)

    def _release(self) -> None:
        """Nothing is executed before the prefix reaches what was decided before the session."""
        if self._parts.applied >= self._head and not self._holding:
            self._parts.worker.settle()

    def _in_order(self, decisions: Sequence[agent_pb2.Decision]) -> list[Understood]:
        group = []
        for decision in decisions:
            if decision.number <= self.received:
                continue
            if decision.number != self.received + 1:
                raise SessionOver(f"a gap: {self.received} is followed by {decision.number}")
            try:
                group.append(understand(decision, self._parts.cluster))
            except WireError as error:
                # A newer agent will understand it: it stays above the prefix until then.
                log.error("decision not understood; none is applied any more", why=str(error))
                self._holding = True
                break
            self.received = decision.number
        return group


def understand(proto: agent_pb2.Decision, cluster: ClusterName) -> Understood:
    """A decision off the wire; raises WireError for one of a kind that is not known here."""
    decision = decision_from_proto(proto, cluster)
    attempt, number = decision.attempt, decision.number
    match decision.kind:
        case DecisionKind.STOP:
            cause = decision.cause
            record = Decided(number, attempt, decision.kind, cause.value.encode())
            return Understood(record, cause=cause)
        case DecisionKind.VOID:
            return Understood(Decided(number, attempt, decision.kind))
        case DecisionKind.START | DecisionKind.RESIZE:
            return _understand_start(proto, decision)


def restored_order(data: bytes, cluster: ClusterName) -> StartOrder | None:
    """The order of a journalled START; None when this agent does not understand it."""
    try:
        proto = agent_pb2.Decision.FromString(data)
        return _order(proto, decision_from_proto(proto, cluster))
    except (WireError, ValueError):
        return None


def restored_resize(data: bytes, cluster: ClusterName) -> ResizeOrder | None:
    """The order of a journalled RESIZE; None when this agent does not understand it."""
    start = restored_order(data, cluster)
    if start is None:
        return None
    return ResizeOrder(start, agent_pb2.Decision.FromString(data).generation)


def carry_out(item: Understood, worker: Worker) -> None:
    """Let the worker act on a decision that is journalled."""
    record = item.record
    if record.kind is DecisionKind.STOP:
        worker.stop(record.attempt, item.cause)
    elif item.order is not None and record.kind is DecisionKind.RESIZE:
        worker.resize(ResizeOrder(item.order, item.generation))
    elif item.order is not None:
        worker.start(item.order)
    elif record.kind is DecisionKind.START:
        worker.refuse(record.attempt, item.why_not)


def _understand_start(proto: agent_pb2.Decision, decision: Decision) -> Understood:
    record = Decided(decision.number, decision.attempt, decision.kind, proto.SerializeToString())
    try:
        return Understood(record, order=_order(proto, decision), generation=decision.generation)
    except WireError as error:
        return Understood(record, why_not=f"this agent does not understand the job: {error}")


def _order(proto: agent_pb2.Decision, decision: Decision) -> StartOrder:
    start = start_from_proto(proto)
    return StartOrder(
        cluster=decision.cluster,
        attempt=decision.attempt,
        spec=start.spec,
        tasks=decision.tasks,
        addresses=start.addresses,
        trace=decision.trace,
    )
