"""What an agent says in a session: composed when the stream can take it, never queued.

So a dispatch that reads slowly costs no memory here, and what is said is always
the latest: the prefix, the heartbeat's numbers.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

import grpc

from atoll.agent.errors import SessionOver
from atoll.agent.output import Output
from atoll.agent.parts import Parts
from atoll.api.agent.v1 import agent_pb2

Call = grpc.aio.StreamStreamCall[agent_pb2.SessionRequest, agent_pb2.SessionResponse]

REPORTS_PER_MESSAGE: Final = 500
GATHER_S: Final = 0.005
"""What comes to be said in this time goes out together: a message costs much, whatever its size."""
MOST_SENT: Final = 64
"""Heartbeats that may be unanswered before the oldest are given up."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A heartbeat on its way."""

    at: float
    """Monotonic time of sending."""
    inventory: int


class Sender:
    """Writes to one session's stream."""

    def __init__(self, parts: Parts, call: Call, output: Output, *, wake: asyncio.Event) -> None:
        self._parts = parts
        self._call = call
        self._output = output
        self._wake = wake
        self._told_applied = parts.journal.applied
        self._number = 0
        self._due = False
        self.leaving = False
        self._sent: dict[int, Sent] = {}
        self._answered_at = parts.clock.monotonic()

    async def beat(self, heartbeat_s: float, lease_s: float) -> None:
        """Send a heartbeat every so often; raises SessionOver when none is answered."""
        clock = self._parts.clock
        while True:
            self._due = True
            self._wake.set()
            await clock.sleep(heartbeat_s)
            silent_s = clock.monotonic() - self._answered_at
            if silent_s > max(lease_s, 2 * heartbeat_s):
                raise SessionOver(f"no heartbeat was answered for {silent_s:.1f} s")

    def answered(self, number: int) -> Sent | None:
        """The heartbeat that was answered; None for one that was given up."""
        found = self._sent.get(number)
        self._sent = {later: sent for later, sent in self._sent.items() if later > number}
        self._answered_at = self._parts.clock.monotonic()
        return found

    def leave(self) -> None:
        """Say Goodbye, after all that is left to say."""
        self.leaving = True
        self._wake.set()

    async def run(self, session_epoch: int) -> None:
        """Say what there is to say; after a Goodbye, nothing more, until this is cancelled."""
        while True:
            await self._wake.wait()
            await self._parts.clock.sleep(GATHER_S)
            self._wake.clear()
            while (request := self._next()) is not None:
                request.session_epoch = session_epoch
                await write(self._call, request)
                if request.HasField("goodbye"):
                    await self._call.done_writing()
                    await forever()

    def _next(self) -> agent_pb2.SessionRequest | None:
        """What is to be said next, the most urgent first."""
        parts, request = self._parts, agent_pb2.SessionRequest
        if self._due:
            return request(heartbeat=self._heartbeat())
        if self._told_applied < parts.journal.applied:
            self._told_applied = parts.journal.applied
            return request(applied_seq=self._told_applied)
        if (reports := parts.reports.next_batch(REPORTS_PER_MESSAGE)) is not None:
            return request(reports=reports)
        if (update := parts.stock.next_update()) is not None:
            return request(inventory=update)
        if (chunk := self._output.next_chunk()) is not None:
            return request(log_chunk=chunk)
        return request(goodbye=agent_pb2.Goodbye()) if self.leaving else None

    def _heartbeat(self) -> agent_pb2.Heartbeat:
        parts = self._parts
        self._due = False
        self._number += 1
        self._sent[self._number] = Sent(parts.clock.monotonic(), parts.stock.number)
        if len(self._sent) > MOST_SENT:
            del self._sent[next(iter(self._sent))]
        return agent_pb2.Heartbeat(
            number=self._number,
            applied_seq=parts.journal.applied,
            inventory_hash=parts.stock.hash,
            inventory_number=parts.stock.number,
            running=parts.worker.running,
        )


async def write(call: Call, request: agent_pb2.SessionRequest) -> None:
    """Write, or leave it to whoever reads to find out how the stream has ended."""
    try:
        await call.write(request)
    except asyncio.InvalidStateError:
        await forever()


async def forever() -> None:
    """Wait until cancelled."""
    await asyncio.get_running_loop().create_future()
