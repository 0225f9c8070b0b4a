"""Carries out what the table of attempts says: binds, stops, reports, each attempt by itself."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, assert_never

from atoll.agent import telemetry
from atoll.agent.lease import Lease
from atoll.agent.reports import Reports
from atoll.agent.stock import Stock
from atoll.agent.usecases.attempts import (
    TERMINAL,
    Attempts,
    Forget,
    Halt,
    Instruction,
    Known,
    Phase,
    Reshape,
    Tell,
)
from atoll.core.model.ids import AttemptId
from atoll.core.model.lifecycle import AttemptEvent, StopCause
from atoll.core.model.reason import ReasonCode
from atoll.core.model.spec import OnLost
from atoll.ports.backend import (
    Backend,
    LeaseOver,
    Refusal,
    Refused,
    ResizeOrder,
    RunEvent,
    StartOrder,
    StopOrder,
)
from atoll.ports.clock import Clock
from atoll.runtime import failpoints, logs

log = logs.logger(__name__)

MOST_BINDING: Final = 1_024
"""Attempts that are being bound at the same time; the others wait in their order."""
ACCEPTED_AFTER_S: Final = 0.5
"""ACCEPTED is said of a start that takes longer than this; STARTED says it too."""
RUNS_TRACED: Final = 20_000


class Worker:
    """Drives the backend. Nothing starts unless the gate is open and the lease is valid."""

    def __init__(
        self, backend: Backend, reports: Reports, stock: Stock, *, lease: Lease, clock: Clock
    ) -> None:
        self.guarded = False
        """Whether dispatch was told that runs have a guard, and agreed to its times."""
        self._backend = backend
        self._reports = reports
        self._stock = stock
        self._lease = lease
        self._clock = clock
        self._table = Attempts()
        self._binding: set[asyncio.Task[None]] = set()
        self._checking: dict[AttemptId, asyncio.Task[None]] = {}
        self._open = False
        self._traced: dict[AttemptId, tuple[StartOrder, float]] = {}

    @property
    def running(self) -> int:
        """Attempts that run."""
        return self._table.running

    def restore(self, known: Mapping[AttemptId, Known], found: Iterable[RunEvent]) -> None:
        """Begin with what the journal knows and the backend found."""
        self._carry_out(self._table.restore(known, found))

    async def follow(self) -> None:
        """Take in the backend's events, for ever."""
        async for events in self._backend.events():
            for event in events:
                self._observe(event)
            telemetry.RUNNING.set(self._table.running)

    def start(self, order: StartOrder) -> None:
        """A START was journalled."""
        self._carry_out(self._table.start(order))

    def refuse(self, attempt: AttemptId, why: str) -> None:
        """A START was journalled that this agent does not understand."""
        self._observe(
            RunEvent(attempt, AttemptEvent.REJECTED, reason=ReasonCode.BACKEND_ERROR, message=why)
        )

    def stop(self, attempt: AttemptId, cause: StopCause) -> None:
        """A STOP was journalled."""
        self._carry_out(self._table.stop(attempt, cause))

    def resize(self, order: ResizeOrder) -> None:
        """A RESIZE was journalled."""
        self._carry_out(self._table.resize(order))

    def stop_all(self) -> None:
        """The cluster was forgotten."""
        self._carry_out(self._table.stop_all())

    def take_over(self, live: Sequence[AttemptId]) -> None:
        """A snapshot was journalled."""
        self._carry_out(self._table.take_over(live))

    def acknowledged(self, ended: Iterable[AttemptId]) -> None:
        """The terminal reports of these attempts are dealt with."""
        for attempt in ended:
            self._carry_out(self._table.acknowledged(attempt))

    def to_stop(self, attempts: Iterable[AttemptId]) -> list[AttemptId]:
        """Those of the attempts, which are not live, that something is left of here."""
        gone = (None, Phase.STOPPING, Phase.ENDED)
        return [attempt for attempt in attempts if self._table.phase(attempt) not in gone]

    def stop_dead(self, attempts: Iterable[AttemptId]) -> None:
        """Stop what dispatch says is to end, without a decision; the wish is journalled."""
        for attempt in attempts:
            self.stop(attempt, StopCause.NONE)

    def settle(self) -> None:
        """All decisions made before the session are applied: begin to execute."""
        self._carry_out(self._table.settle())
        self._open = True
        self.pump()

    def shut(self) -> None:
        """No session: begin nothing; what runs or is being bound goes on."""
        self._open = False

    def pump(self) -> None:
        """Begin to bind what may begin now."""
        while self._open and len(self._binding) < MOST_BINDING and self._lease.valid():
            order = self._table.due()
            if order is None:
                return
            task = asyncio.create_task(self._bind(order))
            self._binding.add(task)
            task.add_done_callback(self._bound)

    async def idle(self) -> None:
        """Return when nothing is being bound."""
        while self._binding:
            await asyncio.wait(set(self._binding))

    async def close(self) -> None:
        """Leave what is being bound; the next agent goes on with it."""
        self.shut()
        tasks = list(self._binding)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _bound(self, task: asyncio.Task[None]) -> None:
        self._binding.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("binding failed", exc_info=error)
        self.pump()

    async def _bind(self, order: StartOrder) -> None:
        begun, wall = self._clock.monotonic(), self._clock.now()
        try:
            await self._try_to_bind(order)
        except Refused as refused:
            self._reject(order, refused.refusal)
            telemetry.trace_start(
                order, begun=wall, ended=self._clock.now(), error=refused.refusal.message
            )
        except LeaseOver:
            self._table.put_back(order.attempt)
            self._lease.end()
        except Exception as error:
            log.exception("backend failed", attempt_id=order.attempt)
            self._give_up(order, error)
        else:
            telemetry.BIND.observe(self._clock.monotonic() - begun)
            telemetry.trace_start(order, begun=wall, ended=self._clock.now())
            telemetry.tell_started(order)

    async def _try_to_bind(self, order: StartOrder) -> None:
        refusal = self._unguarded(order) or await self._check(order)
        if refusal is not None:
            raise Refused(refusal)
        if self._table.phase(order.attempt) is not Phase.BINDING:
            return  # stopped meanwhile, and perhaps forgotten
        failpoints.hit("agent.before_start")
        self._trace(order)
        accepted = RunEvent(order.attempt, AttemptEvent.ACCEPTED)
        late = asyncio.get_running_loop().call_later(ACCEPTED_AFTER_S, self._observe, accepted)
        try:
            await self._backend.start(order)
        finally:
            late.cancel()
        failpoints.hit("agent.after_start")

    async def _check(self, order: StartOrder) -> Refusal | None:
        task = asyncio.current_task()
        if task is not None:
            self._checking[order.attempt] = task
        try:
            return await self._backend.check(order)
        finally:
            self._checking.pop(order.attempt, None)

    def _unguarded(self, order: StartOrder) -> Refusal | None:
        if self.guarded or order.spec.on_lost is not OnLost.REQUEUE:
            return None
        return Refusal(
            ReasonCode.ON_LOST_UNSUPPORTED,
            "this cluster cannot stop a run by itself in time, which `on_lost: requeue` needs",
        )

    def _reject(self, order: StartOrder, refusal: Refusal) -> None:
        telemetry.tell_refusal(order, refusal)
        self._observe(
            RunEvent(
                order.attempt,
                AttemptEvent.REJECTED,
                reason=refusal.reason,
                message=refusal.message,
                suspects=refusal.suspects,
            )
        )
        suspects = set(refusal.suspects)
        self._stock.doubt(task.node_name for task in order.tasks if task.node in suspects)

    def _give_up(self, order: StartOrder, error: Exception) -> None:
        # How far it came is unknown: its end is told when the backend vouches for it.
        self._observe(RunEvent(order.attempt, AttemptEvent.ACCEPTED, message=str(error)))
        self._carry_out(self._table.stop(order.attempt, StopCause.NONE))

    def _trace(self, order: StartOrder) -> None:
        if order.trace and len(self._traced) < RUNS_TRACED:
            self._traced[order.attempt] = (order, self._clock.now())

    def _observe(self, event: RunEvent) -> None:
        telemetry.tell_event(event)
        if event.event in TERMINAL and (traced := self._traced.pop(event.attempt, None)):
            order, begun = traced
            telemetry.trace_run(order, event, begun=begun, ended=event.at or self._clock.now())
        self._carry_out(self._table.observe(event))

    def _carry_out(self, instructions: Iterable[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Halt(order):
                    self._halt(order)
                case Reshape(resize):
                    self._reshape(resize)
                case Tell(event):
                    self._reports.tell(event)
                case Forget(attempt):
                    self._backend.forget(attempt)
                case _:
                    assert_never(instruction)

    def _reshape(self, order: ResizeOrder) -> None:
        task = asyncio.create_task(self._backend.resize(order), name="resize")
        self._binding.add(task)
        task.add_done_callback(self._bound)

    def _halt(self, order: StopOrder) -> None:
        log.debug("stopping", attempt_id=order.attempt, cause=order.cause.value)
        # What is not begun need not be checked any further; a start that is under way ends itself.
        if (checking := self._checking.pop(order.attempt, None)) is not None:
            checking.cancel()
        self._backend.stop(order)
