"""A scripted agent over a real channel: says what a test has it say, and keeps all it hears."""

import asyncio
from collections.abc import Iterable
from typing import Any

import grpc

from atoll.api.agent.v1 import agent_pb2
from atoll.api.agent.v1.agent_pb2_grpc import AgentServiceStub
from atoll.core.model.errors import DomainError
from atoll.core.model.ids import ClusterName
from atoll.core.model.inventory import NodeInventory
from atoll.core.model.messages import Decision, DecisionKind, Report
from atoll.wire.decision import decision_from_proto
from atoll.wire.errors import error_of_call
from atoll.wire.inventory import inventory_hash, node_to_proto
from atoll.wire.report import report_to_proto
from tests.services.dispatch.values import CLUSTER
from tests.support.waiting import eventually

Call = grpc.aio.StreamStreamCall[Any, Any]


class FakeAgent:
    """One agent. `open` may be called again after its session ended."""

    def __init__(
        self, address: str, *, cluster: ClusterName = CLUSTER, instance: str = "first"
    ) -> None:
        self.cluster = cluster
        self.instance = instance
        self.auto_apply = True
        """Acknowledge decisions as they come."""
        self.applied = 0
        self.protos: list[agent_pb2.Decision] = []
        """Decisions of all sessions, as they came."""
        self.beats: dict[int, int] = {}
        """head_seq by number of the answered heartbeat."""
        self.report_seq = -1
        self.stops: set[int] = set()
        self.resyncs = 0
        self.log_requests: list[agent_pb2.LogRequest] = []
        self.log_cancels: list[int] = []
        self.welcomes: list[agent_pb2.Welcome] = []
        self.errors: list[DomainError] = []
        """How sessions were ended by the other side."""
        self.epoch = 0
        self._channel = grpc.aio.insecure_channel(address)
        self._call: Call | None = None
        self._writing = asyncio.Lock()
        self._hearing: asyncio.Task[None] | None = None

    @property
    def numbers(self) -> list[int]:
        """Of the decisions that came."""
        return [proto.number for proto in self.protos]

    @property
    def decisions(self) -> list[Decision]:
        """What came, in the model's words."""
        return [decision_from_proto(proto, self.cluster) for proto in self.protos]

    @property
    def kinds(self) -> list[DecisionKind]:
        """Of the decisions that came."""
        return [decision.kind for decision in self.decisions]

    async def open(
        self, *, fresh: bool = False, applied: int | None = None, last_report: int = 0
    ) -> agent_pb2.Welcome:
        """Open a session; raises the DomainError that it is refused with."""
        welcomed, refused = len(self.welcomes), len(self.errors)
        self.applied = self.applied if applied is None else applied
        self._call = AgentServiceStub(self._channel).Session(wait_for_ready=True)
        self._hearing = asyncio.create_task(self._hear(self._call))
        hello = agent_pb2.Hello(
            cluster=self.cluster,
            agent_instance=self.instance,
            backend="simulated",
            can_guard=True,
            stop_after_s=60,
            max_grace_s=30,
            applied_seq=self.applied,
            last_report=last_report,
            fresh_journal=fresh,
        )
        await self._call.write(agent_pb2.SessionRequest(hello=hello))
        await eventually(
            lambda: len(self.welcomes) > welcomed or self._hearing_is_over(),
        )
        if len(self.welcomes) > welcomed:
            return self.welcomes[-1]
        assert len(self.errors) > refused, "ended without a word"
        raise self.errors[-1]

    async def open_without_hello(self, *, beat: bool) -> None:
        """Say nothing, or something else; raises how it is refused."""
        self._call = AgentServiceStub(self._channel).Session(wait_for_ready=True)
        self._hearing = asyncio.create_task(self._hear(self._call))
        if beat:
            await self.beat(1)
        await self.ended()
        raise self.errors[-1]

    async def beat(self, number: int, **fields: Any) -> None:
        """Send a heartbeat."""
        await self._send(
            heartbeat=agent_pb2.Heartbeat(number=number, applied_seq=self.applied, **fields)
        )

    async def report(self, reports: Iterable[Report]) -> None:
        """Send reports in one message."""
        batch = agent_pb2.ReportBatch(reports=map(report_to_proto, reports))
        await self._send(reports=batch)

    async def apply(self, number: int) -> None:
        """Say that all decisions up to a number are journalled."""
        self.applied = number
        await self._send(applied_seq=number)

    async def inventory(
        self,
        number: int,
        nodes: Iterable[NodeInventory],
        *,
        full: bool = True,
        more: bool = False,
        gone: Iterable[str] = (),
        whole: Iterable[NodeInventory] | None = None,
    ) -> None:
        """Send nodes; `whole` is the inventory after it, `nodes` unless told."""
        listed = tuple(nodes)
        after = {node.name: node for node in (listed if whole is None else whole)}
        await self._send(
            inventory=agent_pb2.InventoryUpdate(
                number=number,
                full=full,
                more=more,
                nodes=map(node_to_proto, listed),
                gone=gone,
                hash=inventory_hash(after),
            )
        )

    async def chunk(self, request: int, data: bytes, **fields: Any) -> None:
        """Send a piece of output."""
        await self._send(log_chunk=agent_pb2.LogChunk(request=request, data=data, **fields))

    async def goodbye(self) -> None:
        """End in order."""
        await self._send(goodbye=agent_pb2.Goodbye())
        await self.ended()

    async def ended(self) -> None:
        """Wait until the session is over."""
        if self._hearing is not None:
            await asyncio.wait_for(asyncio.shield(self._hearing), 30)

    async def drop(self) -> None:
        """Lose the stream, as a cut connection would."""
        if self._call is not None and self._hearing is not None:
            self._call.cancel()
            await asyncio.gather(self._hearing, return_exceptions=True)

    async def close(self) -> None:
        """Be gone."""
        await self.drop()
        await self._channel.close()

    def _hearing_is_over(self) -> bool:
        return self._hearing is None or self._hearing.done()

    async def _send(self, **message: Any) -> None:
        assert self._call is not None
        request = agent_pb2.SessionRequest(session_epoch=self.epoch, **message)
        async with self._writing:  # a call takes one write at a time
            await self._call.write(request)

    async def _hear(self, call: Call) -> None:
        try:
            async for response in call:
                await self._take(response)
        except grpc.aio.AioRpcError as error:
            metadata = tuple(error.trailing_metadata() or ())
            refusal = error_of_call(error.code().value[0], error.details() or "", metadata)
            if refusal is None:
                raise
            self.errors.append(refusal)

    async def _take(self, response: agent_pb2.SessionResponse) -> None:
        kind = response.WhichOneof("message")
        assert kind is not None, "an empty message"
        assert kind == "welcome" or response.session_epoch == self.epoch
        taken = getattr(self, f"_take_{kind}")(response)
        if taken is not None:
            await taken

    def _take_welcome(self, response: agent_pb2.SessionResponse) -> None:
        self.epoch = response.session_epoch
        self.welcomes.append(response.welcome)
        if response.welcome.from_snapshot:
            self.applied = response.welcome.head_seq

    async def _take_decisions(self, response: agent_pb2.SessionResponse) -> None:
        self.protos.extend(response.decisions.decisions)
        if self.auto_apply:
            await self.apply(self.protos[-1].number)

    def _take_heartbeat_ack(self, response: agent_pb2.SessionResponse) -> None:
        self.beats[response.heartbeat_ack.number] = response.heartbeat_ack.head_seq

    def _take_report_ack(self, response: agent_pb2.SessionResponse) -> None:
        self.report_seq = response.report_ack.report_seq
        self.stops.update(response.report_ack.stop_attempt_ids)

    def _take_resync(self, _: agent_pb2.SessionResponse) -> None:
        self.resyncs += 1

    def _take_log_request(self, response: agent_pb2.SessionResponse) -> None:
        self.log_requests.append(response.log_request)

    def _take_log_cancel(self, response: agent_pb2.SessionResponse) -> None:
        self.log_cancels.append(response.log_cancel.request)
