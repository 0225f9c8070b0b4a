"""One session with dispatch: Hello to Goodbye, or to whatever breaks it."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

import grpc

from atoll.agent import telemetry
from atoll.agent.errors import GuardInTime, GuardTooSlow, SessionOver, refusal
from atoll.agent.intake import Intake
from atoll.agent.output import Output
from atoll.agent.parts import Parts
from atoll.agent.sender import Call, Sender
from atoll.api.agent.v1 import agent_pb2
from atoll.core.model.ids import AttemptId
from atoll.runtime import logs

log = logs.logger(__name__)

WELCOME_WITHIN_S: Final = 30.0
GOODBYE_WITHIN_S: Final = 3.0
BEATS_BEHIND: Final = 5
"""Answers in a row that speak of decisions which do not come; then the session is opened anew."""


class Session:
    """One stream. `run` ends by raising, or by returning after a Goodbye."""

    def __init__(self, parts: Parts, call: Call, *, can_guard: bool) -> None:
        self._parts = parts
        self._call = call
        self._can_guard = can_guard
        self._wake = asyncio.Event()
        self._output = Output(parts.backend, parts.clock, self._wake.set)
        self._sender = Sender(parts, call, self._output, wake=self._wake)
        self._intake = Intake(parts, self._wake.set)
        self._epoch = 0
        self._lease_s = 0.0
        self._behind = 0
        self._received = 0
        """At the last heartbeat's answer."""

    async def run(self, stopping: asyncio.Event) -> None:
        """Hold the session until it breaks, or `stopping` is set.

        Raises SessionOver, a DomainError with which dispatch ended it, or LogBroken.
        """
        try:
            welcome = await self._open()
            telemetry.CONNECTED.set(1)
            await first_to_end(
                self._read(),
                self._intake.run(),
                self._sender.run(self._epoch),
                self._sender.beat(welcome.heartbeat_s, welcome.lease_s),
                self._leave(stopping),
            )
        except grpc.aio.AioRpcError as error:
            if not self._sender.leaving:
                raise refusal(error) from error
        finally:
            telemetry.CONNECTED.set(0)
            self._parts.worker.shut()
            await self._output.close()
            self._call.cancel()

    async def _open(self) -> agent_pb2.Welcome:
        parts = self._parts
        # What the last session left on its way to the disk is there, and is carried out, before
        # this one says how far the prefix reaches.
        await parts.journal.append([])
        response = await self._greet()
        welcome, self._epoch = response.welcome, response.session_epoch
        self._lease_s = welcome.lease_s
        self._agree_on_guard(welcome.lost_after_s)
        parts.reports.wake = parts.stock.wake = self._wake.set
        parts.worker.acknowledged(parts.reports.resume(welcome.report_seq))
        parts.stock.begin_session()
        await self._intake.begin(welcome)
        log.info(
            "session open",
            session_epoch=self._epoch,
            head_seq=welcome.head_seq,
            applied_seq=parts.applied,
            from_snapshot=welcome.from_snapshot,
            guarded=self._can_guard,
        )
        return welcome

    async def _greet(self) -> agent_pb2.SessionResponse:
        try:
            async with asyncio.timeout(WELCOME_WITHIN_S):
                # A stream that is over already tells why when it is read.
                with suppress(asyncio.InvalidStateError):
                    await self._call.write(self._parts.hello(can_guard=self._can_guard))
                response = await self._response()
        except TimeoutError:
            raise SessionOver("no Welcome came") from None
        if not response.HasField("welcome"):
            raise SessionOver("the first answer is no Welcome")
        return response

    def _agree_on_guard(self, lost_after_s: float) -> None:
        limits, worker = self._parts.limits, self._parts.worker
        worker.guarded = self._can_guard
        in_time = limits.in_time(lost_after_s)
        if in_time and not self._can_guard and self._parts.backend.capabilities.can_guard:
            raise GuardInTime("the guard is in time now")
        if self._can_guard and not in_time:
            worker.guarded = False
            log.error(
                "the guard is too slow: jobs with `on_lost: requeue` are refused here",
                stop_after_s=limits.stop_after_s,
                max_grace_s=limits.max_grace_s,
                clock_margin_s=limits.clock_margin_s,
                lost_after_s=lost_after_s,
            )
            raise GuardTooSlow("stop_after + grace + margin must be less than lost_after")

    async def _response(self) -> agent_pb2.SessionResponse:
        response = await self._call.read()
        if not isinstance(response, agent_pb2.SessionResponse):
            raise SessionOver("dispatch ended the session")
        return response

    async def _read(self) -> None:
        while True:
            try:
                response = await self._response()
            except SessionOver:
                if self._sender.leaving:
                    return
                raise
            if response.session_epoch >= self._epoch:
                await self._take(response)

    async def _take(self, response: agent_pb2.SessionResponse) -> None:
        match response.WhichOneof("message"):
            case "decisions":
                await self._intake.offer(response.decisions.decisions)
            case "heartbeat_ack":
                await self._heard(response.heartbeat_ack)
            case "report_ack":
                self._acknowledge(response.report_ack)
            case "resync":
                self._parts.stock.resync()
            case "log_request":
                self._output.begin(response.log_request)
            case "log_cancel":
                self._output.cancel(response.log_cancel.request)
            case _:
                pass  # a newer dispatch says more than this agent has to know

    async def _heard(self, ack: agent_pb2.HeartbeatAck) -> None:
        parts, sent = self._parts, self._sender.answered(ack.number)
        if sent is None:
            return
        # Whatever was agreed on: runs from a time when there was a guard still have theirs.
        if parts.backend.capabilities.can_guard:
            await parts.backend.renew_lease(sent.at + parts.limits.stop_after_s)
        parts.lease.contact(sent.at, self._lease_s)
        parts.stock.confirm(sent.inventory)
        parts.reports.check_progress()
        parts.worker.pump()
        self._watch_head(ack.head_seq)

    def _watch_head(self, head: int) -> None:
        before, self._received = self._received, self._intake.received
        missing = head > self._received == before and self._intake.starved
        self._behind = self._behind + 1 if missing else 0
        if self._behind >= BEATS_BEHIND:
            raise SessionOver(f"decisions up to {head} were made and do not come")

    def _acknowledge(self, ack: agent_pb2.ReportAck) -> None:
        parts = self._parts
        stops = parts.worker.to_stop(AttemptId(attempt) for attempt in ack.stop_attempt_ids)
        ended = parts.reports.acknowledge(ack.report_seq, stops)
        parts.worker.stop_dead(stops)
        parts.worker.acknowledged(ended)

    async def _leave(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        parts = self._parts
        parts.worker.shut()
        try:
            async with asyncio.timeout(GOODBYE_WITHIN_S):
                await parts.worker.idle()
                await parts.reports.drained()
        except TimeoutError:
            log.warning("leaving in the middle of something; the next agent goes on with it")
        parts.lease.end()
        self._sender.leave()
        await parts.clock.sleep(GOODBYE_WITHIN_S)


async def first_to_end(*works: Coroutine[Any, Any, None]) -> None:
    """Run them side by side until one returns or raises; cancel the others and pass it on."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
