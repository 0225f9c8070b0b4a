"""A dispatch that tests hold in their hands: one cluster, every message seen, faults on demand."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field

import grpc

from atoll.api.agent.v1 import agent_pb2, agent_pb2_grpc
from atoll.core.model.errors import DomainError
from atoll.core.model.ids import AttemptId, ClusterName, Epoch
from atoll.core.model.lifecycle import AttemptEvent, StopCause
from atoll.core.model.messages import Decision, DecisionKind, Report
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.spec import JobSpec
from atoll.wire.decision import StartOrder, decision_to_proto, start_to_proto
from atoll.wire.errors import STATUS_KEY, code_of, status_of
from atoll.wire.report import report_from_proto

CLUSTER = ClusterName("c1")
EPOCH = Epoch(1, 1)
TERMINAL = (AttemptEvent.FINISHED, AttemptEvent.STOPPED, AttemptEvent.REJECTED)
_CODES = {code.value[0]: code for code in grpc.StatusCode}


@dataclass(slots=True)
class Stream:
    """One session's stream, as long as it is the newest."""

    epoch: int
    hello: agent_pb2.Hello
    outbox: asyncio.Queue[agent_pb2.SessionResponse | None] = field(default_factory=asyncio.Queue)
    next_number: int = 1


class FakeDispatch(agent_pb2_grpc.AgentServiceServicer):
    """Says what it is told to, and remembers what it heard."""

    def __init__(self, *, heartbeat_s: float = 0.05, lease_s: float = 5.0) -> None:
        self.heartbeat_s = heartbeat_s
        self.lease_s = lease_s
        self.lost_after_s = 1000.0
        self.decisions: list[agent_pb2.Decision] = []
        self.hold_back: set[int] = set()
        """Numbers that are never sent."""
        self.reports: list[Report] = []
        self.report_seq = 0
        self.hellos: list[agent_pb2.Hello] = []
        self.inventories: list[agent_pb2.InventoryUpdate] = []
        self.heartbeats: list[agent_pb2.Heartbeat] = []
        self.chunks: list[agent_pb2.LogChunk] = []
        self.applied_seq = 0
        self.goodbyes = 0
        self.answer_heartbeats = True
        self.take_reports = True
        self.acknowledge = True
        self.refuse_with: DomainError | None = None
        self.snapshot: list[AttemptId] | None = None
        self.stopping: list[AttemptId] = []
        """Live attempts; None: sessions begin with the prefix."""
        self.dead: set[AttemptId] = set()
        """Attempts that are not live, whatever the agent says."""
        self.stream: Stream | None = None
        self.faults: list[BaseException] = []
        """What the agent said that it must not say."""
        self._epoch = 0
        self._heard = asyncio.Event()
        self._server = grpc.aio.server()
        self.address = ""

    async def start(self, credentials: grpc.ServerCredentials | None = None) -> None:
        """Listen, with TLS when there are credentials."""
        agent_pb2_grpc.add_AgentServiceServicer_to_server(self, self._server)
        if credentials is None:
            port = self._server.add_insecure_port("127.0.0.1:0")
        else:
            port = self._server.add_secure_port("127.0.0.1:0", credentials)
        self.address = f"127.0.0.1:{port}"
        await self._server.start()

    async def stop(self) -> None:
        self.drop()
        await self._server.stop(0)

    def start_attempt(
        self,
        attempt: AttemptId,
        spec: JobSpec,
        tasks: Iterable[TaskPlacement],
        *,
        trace: str = "",
    ) -> int:
        """Decide to start an attempt; the decision's number."""
        decision = Decision(
            cluster=CLUSTER,
            number=len(self.decisions) + 1,
            epoch=EPOCH,
            kind=DecisionKind.START,
            attempt=attempt,
            tasks=tuple(tasks),
            trace=trace,
        )
        return self._decide(start_to_proto(decision, StartOrder(spec, {})))

    def stop_attempt(self, attempt: AttemptId, cause: StopCause = StopCause.CANCEL) -> int:
        """Decide to stop an attempt."""
        return self._bare(DecisionKind.STOP, attempt, cause)

    def void(self, attempt: AttemptId) -> int:
        """A number that counts, and nothing more."""
        return self._bare(DecisionKind.VOID, attempt, StopCause.NONE)

    def push(self) -> None:
        """Send what the open session has not been sent."""
        stream = self.stream
        if stream is None:
            return
        batch = [
            d for d in self.decisions[stream.next_number - 1 :] if d.number not in self.hold_back
        ]
        stream.next_number = len(self.decisions) + 1
        for cut in range(0, len(batch), 200):
            self.send(decisions=agent_pb2.DecisionBatch(decisions=batch[cut : cut + 200]))

    def send(self, *, epoch: int | None = None, **message: object) -> None:
        """Say something in the open session."""
        if self.stream is not None:
            response = agent_pb2.SessionResponse(
                session_epoch=self.stream.epoch if epoch is None else epoch,
                **message,  # type: ignore[arg-type]
            )
            self.stream.outbox.put_nowait(response)

    def drop(self) -> None:
        """End the open session."""
        if self.stream is not None:
            self.stream.outbox.put_nowait(None)
            self.stream = None

    def events(self, attempt: AttemptId) -> list[AttemptEvent]:
        """What was reported of an attempt, but for ACCEPTED, which may be left out."""
        return [
            report.event
            for report in self.reports
            if report.attempt == attempt and report.event is not AttemptEvent.ACCEPTED
        ]

    def end_of(self, attempt: AttemptId) -> Report:
        """The one terminal report of an attempt."""
        ends = [r for r in self.reports if r.attempt == attempt and r.event in TERMINAL]
        assert len(ends) == 1, ends
        return ends[0]

    def ended(self, *attempts: AttemptId) -> bool:
        """Whether all these have a terminal report."""
        return {r.attempt for r in self.reports if r.event in TERMINAL} >= set(attempts)

    async def until(self, condition: Callable[[], bool], within_s: float = 60.0) -> None:
        """Wait for something that messages bring about."""
        async with asyncio.timeout(within_s):
            while not condition():
                assert not self.faults, self.faults
                self._heard.clear()
                await self._heard.wait()

    async def Session(  # noqa: N802 - gRPC's name
        self,
        request_iterator: AsyncIterator[agent_pb2.SessionRequest],
        context: grpc.aio.ServicerContext[agent_pb2.SessionRequest, agent_pb2.SessionResponse],
    ) -> AsyncIterator[agent_pb2.SessionResponse]:
        hello = (await anext(request_iterator)).hello
        self.hellos.append(hello)
        self._heard.set()
        if self.refuse_with is not None:
            await refuse(context, self.refuse_with)
        stream = self._open(hello)
        yield self._welcome(stream)
        self.push()
        listening = asyncio.create_task(self._listen(stream, request_iterator))
        try:
            while (response := await stream.outbox.get()) is not None:
                yield response
        finally:
            listening.cancel()

    async def ReadLogs(  # noqa: N802 - gRPC's name
        self,
        request: agent_pb2.ReadLogsRequest,
        context: grpc.aio.ServicerContext[agent_pb2.ReadLogsRequest, agent_pb2.ReadLogsResponse],
    ) -> AsyncIterator[agent_pb2.ReadLogsResponse]:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "agents do not ask for this")
        yield agent_pb2.ReadLogsResponse()

    def _open(self, hello: agent_pb2.Hello) -> Stream:
        self.drop()
        self._epoch += 1
        stream = self.stream = Stream(self._epoch, hello)
        stream.next_number = hello.applied_seq + 1
        if self.snapshot is not None and hello.fresh_journal:
            stream.next_number = len(self.decisions) + 1
        return stream

    def _welcome(self, stream: Stream) -> agent_pb2.SessionResponse:
        fresh = self.snapshot is not None and stream.hello.fresh_journal
        if fresh:
            self.report_seq = 0
        welcome = agent_pb2.Welcome(
            head_seq=len(self.decisions),
            heartbeat_s=self.heartbeat_s,
            lease_s=self.lease_s,
            report_seq=self.report_seq,
            from_snapshot=fresh,
            live_attempts=(self.snapshot or ()) if fresh else (),
            stopping_attempts=self.stopping if fresh else (),
            lost_after_s=self.lost_after_s,
            bind_timeout_s=30.0,
        )
        return agent_pb2.SessionResponse(session_epoch=stream.epoch, welcome=welcome)

    async def _listen(
        self, stream: Stream, requests: AsyncIterator[agent_pb2.SessionRequest]
    ) -> None:
        try:
            async for request in requests:
                if self.stream is not stream:
                    break  # of a session that is over nothing is taken any more
                assert request.session_epoch == stream.epoch
                self._take(stream, request)
                self._heard.set()
        except AssertionError as fault:
            self.faults.append(fault)
            self._heard.set()
        stream.outbox.put_nowait(None)

    def _take(self, stream: Stream, request: agent_pb2.SessionRequest) -> None:
        match request.WhichOneof("message"):
            case "heartbeat":
                self.heartbeats.append(request.heartbeat)
                if self.answer_heartbeats:
                    ack = agent_pb2.HeartbeatAck(
                        number=request.heartbeat.number, head_seq=len(self.decisions)
                    )
                    self.send(heartbeat_ack=ack)
            case "reports":
                self._report(request.reports)
            case "applied_seq":
                assert request.applied_seq >= self.applied_seq
                self.applied_seq = request.applied_seq
            case "inventory":
                self.inventories.append(request.inventory)
            case "log_chunk":
                self.chunks.append(request.log_chunk)
            case "goodbye":
                self.goodbyes += 1
            case other:
                raise AssertionError(other)

    def _report(self, batch: agent_pb2.ReportBatch) -> None:
        dead = []
        for proto in batch.reports:
            report = report_from_proto(proto, CLUSTER)
            if report.attempt in self.dead:
                dead.append(report.attempt)
            if self.take_reports and report.number > self.report_seq:
                assert report.number == self.report_seq + 1
                self.report_seq = report.number
                self.reports.append(report)
        if self.acknowledge:
            ack = agent_pb2.ReportAck(report_seq=self.report_seq, stop_attempt_ids=dead)
            self.send(report_ack=ack)

    def _bare(self, kind: DecisionKind, attempt: AttemptId, cause: StopCause) -> int:
        number = len(self.decisions) + 1
        decision = Decision(CLUSTER, number, EPOCH, kind=kind, attempt=attempt, cause=cause)
        return self._decide(decision_to_proto(decision))

    def _decide(self, proto: agent_pb2.Decision) -> int:
        self.decisions.append(proto)
        return proto.number


async def refuse(
    context: grpc.aio.ServicerContext[agent_pb2.SessionRequest, agent_pb2.SessionResponse],
    error: DomainError,
) -> None:
    details = status_of(error).SerializeToString()
    await context.abort(
        _CODES[code_of(error)], error.message, trailing_metadata=((STATUS_KEY, details),)
    )
