"""A cluster that exists only as numbers, and behaves like one: runs take time, nodes die.

Runs belong to the cluster, not to the agent: they go on while no agent is there,
and the ledger says when each really ended.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

from atoll.agent.described import BadDescription
from atoll.agent.events import Events
from atoll.agent.floor import Floor, Violation, by_node
from atoll.agent.settings import AgentSettings
from atoll.agent.simcluster.description import Described, read_cluster
from atoll.agent.simcluster.engine import Engine
from atoll.agent.simcluster.ledger import Ledger
from atoll.agent.simcluster.misbehaviour import GOOD, Control, ControlFile, Misbehaviour
from atoll.agent.simcluster.progress import ProgressBook
from atoll.agent.simcluster.refusals import not_found, unwound
from atoll.agent.simcluster.runs import Run, begun, output
from atoll.agent.sizes import changed_tasks, resized
from atoll.core.model.ids import AttemptId, job_of
from atoll.core.model.inventory import NodeInventory
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.reason import ReasonCode
from atoll.core.model.spec import OnLost
from atoll.ports.backend import (
    Capabilities,
    LeaseOver,
    LogPiece,
    Refusal,
    Refused,
    ResizeOrder,
    RunEvent,
    StartOrder,
    StopOrder,
)
from atoll.ports.clock import Clock
from atoll.runtime import logs

log = logs.logger(__name__)

LOOK_S: Final = 0.05
"""How often those that hang look whether they still do."""


class SimulatedBackend:
    """A `Backend` over a described cluster; `speed` is job seconds per real second."""

    def __init__(
        self,
        described: Described,
        folder: Path,
        *,
        clock: Clock,
        speed: float = 1.0,
        ledger: Ledger | None = None,
        control: Control | None = None,
        book: ProgressBook | None = None,
    ) -> None:
        self.capabilities = Capabilities("simulated", can_guard=True, levels=described.levels)
        self._nodes = {node.name: node for node in described.nodes}
        self._clock = clock
        self._speed = speed
        self._events = Events()
        self._floor = Floor()
        self._ledger = ledger or Ledger(folder)
        self._engine = Engine(clock, self._ledger, self._floor, emit=self._events.put, book=book)
        self._control = control or ControlFile(folder)
        self.faults = GOOD
        """What is wrong with the cluster now."""
        self._shown = GOOD
        self._inventory: tuple[NodeInventory, ...] | None = None
        self._changed = asyncio.Event()
        self._stopped: set[AttemptId] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> tuple[RunEvent, ...]:
        """Go on with the cluster's runs."""
        found = await self._engine.adopt()
        self._look()
        self._spawn(self._engine.run(), "simulated runs")
        self._spawn(self._watch(), "misbehaviour")
        return found

    def inventory(self) -> tuple[NodeInventory, ...]:
        """The nodes, as far as the misbehaviour lets them be seen."""
        if self._inventory is None:
            shown = map(self._shown.shown, self._nodes.values())
            self._inventory = tuple(node for node in shown if node is not None)
        return self._inventory

    async def inventory_changed(self) -> None:
        """Return when the misbehaviour has changed what can be seen."""
        await self._changed.wait()
        self._changed.clear()

    async def refresh_inventory(self) -> None:
        """Show what is true, whatever lag was asked for."""
        self._show(self.faults)

    async def check(self, order: StartOrder) -> Refusal | None:
        """Whether the nodes and devices are there, healthy and free."""
        await self._patience(order.attempt)
        if self.faults.reject:
            nodes = tuple(sorted({task.node for task in order.tasks}))
            return Refusal(ReasonCode.BACKEND_ERROR, "the cluster rejects everything now", nodes)
        return await self._refusal(order)

    async def start(self, order: StartOrder) -> None:
        """Bind every node's part, or none."""
        if self._known(order.attempt):
            return
        if order.spec.on_lost is OnLost.REQUEUE and not self._engine.leased:
            raise LeaseOver
        if (refusal := await self._refusal(order)) is not None:
            raise Refused(refusal)
        bad = {name for name in by_node(order.tasks) if self._binds_badly(name)}
        if bad:
            await self._bind_in_part(order, bad)
        else:
            await self._engine.begin(self._begun(order, order.tasks))

    async def resize(self, order: ResizeOrder) -> None:
        """Let a run go on with other tasks."""
        await self._patience(order.attempt)
        run = self._engine.live.get(order.attempt)
        if run is None or run.partial:
            return
        kept, new = changed_tasks(run.tasks, order.start.tasks)
        if new and await self._objected(order.attempt, new) is not None:
            new = ()
        if (*kept, *new) != run.tasks:
            await self._engine.resize(run, (*kept, *new), speed=self._speed)
        if run.ended == 0:
            self._events.put((resized(order, run.tasks),))

    def stop(self, order: StopOrder) -> None:
        """Stop a run, or make sure that there never is one."""
        attempt = order.attempt
        run = self._engine.live.get(attempt)
        if run is not None and not run.partial:
            self._engine.stop(run, within_s=run.script.stop_s / self._speed)
        elif attempt not in self._stopped and attempt not in self._engine.ended:
            self._stopped.add(attempt)
            if run is None:
                self._events.put((RunEvent(attempt, AttemptEvent.STOPPED),))

    def events(self) -> AsyncIterator[Sequence[RunEvent]]:
        """What became of the runs."""
        return self._events.batches()

    async def renew_lease(self, valid_until: float) -> None:
        """Let guarded runs go on until then."""
        self._engine.renew_lease(valid_until)

    def log_ranks(self, attempt: AttemptId) -> tuple[int, ...]:
        """The run's ranks; raises NotFound."""
        return tuple(sorted(task.rank for task in self._run(attempt).tasks))

    async def read_log(self, attempt: AttemptId, rank: int, *, offset: int, limit: int) -> LogPiece:
        """What the run would have printed by now; raises NotFound."""
        if rank not in self.log_ranks(attempt):
            raise not_found(attempt, f" with rank {rank}")
        run = self._run(attempt)
        text = output(run, rank, now=self._engine.now())
        begin = min(offset, len(text))
        return LogPiece(begin, text[begin : begin + limit], len(text), ended=run.ended > 0)

    def forget(self, attempt: AttemptId) -> None:
        """Its end is known; its output stays until there are too many others."""
        self._stopped.discard(attempt)
        self._engine.forget(attempt)

    async def close(self) -> None:
        """Let go; the runs go on in the ledger."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._ledger.close()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _known(self, attempt: AttemptId) -> bool:
        return attempt in self._stopped or self._engine.find(attempt) is not None

    async def _patience(self, attempt: AttemptId) -> None:
        if self.faults.delay_s:
            await self._clock.sleep(self.faults.delay_s)
        while self.faults.hang and attempt not in self._stopped:
            await self._clock.sleep(LOOK_S)

    async def _refusal(self, order: StartOrder) -> Refusal | None:
        if self._known(order.attempt):
            return None
        return await self._objected(order.attempt, order.tasks)

    async def _objected(self, attempt: AttemptId, tasks: Sequence[TaskPlacement]) -> Refusal | None:
        objection = self._floor.objection(tasks, self._node)
        if objection is None:
            return None
        if objection.violation is not None:
            await self._accuse(attempt, objection.violation)
        return objection.refusal

    def _node(self, name: str) -> NodeInventory | None:
        node = self._nodes.get(name)
        return None if node is None else self.faults.shown(node)

    async def _accuse(self, attempt: AttemptId, violation: Violation) -> None:
        log.error("decision gives away what is taken", attempt_id=attempt, why=str(violation))
        entry: dict[str, Any] = {
            "t": "violation",
            "attempt": attempt,
            "with": violation.owners,
            "what": violation.what,
            "node": violation.node,
            "at": self._engine.now(),
        }
        await self._ledger.append(entry)

    def _begun(self, order: StartOrder, tasks: tuple[TaskPlacement, ...]) -> Run:
        engine, job = self._engine, job_of(order.attempt)
        return begun(order, tasks, engine.book.of(job), at=engine.now(), speed=self._speed)

    def _binds_badly(self, node: str) -> bool:
        fault = self.faults.of(node)
        return fault.hang or fault.fail_bind

    async def _bind_in_part(self, order: StartOrder, bad: set[str]) -> None:
        """Some nodes do not bind: the others are unwound before anybody hears of it."""
        bound = tuple(task for task in order.tasks if task.node_name not in bad)
        run = self._begun(order, bound)
        if bound:
            await self._engine.begin(run)
        try:
            if not any(self.faults.of(node).fail_bind for node in bad):
                await self._wait_for_bind(order.attempt)
        finally:
            await self._engine.unwind(run)
        if order.attempt in self._stopped:
            self._events.put((RunEvent(order.attempt, AttemptEvent.STOPPED),))
            return
        raise Refused(unwound(order.tasks, bad))

    async def _wait_for_bind(self, attempt: AttemptId) -> None:
        until = self._clock.monotonic() + self.faults.bind_timeout_s
        while self._clock.monotonic() < until and attempt not in self._stopped:
            await self._clock.sleep(LOOK_S)

    async def _watch(self) -> None:
        while True:
            await self._control.changed(self._clock)
            self._look()

    def _look(self) -> None:
        faults = self._control.look()
        if faults is self.faults:
            return
        self.faults = faults
        dead = [name for name, fault in faults.nodes.items() if fault.dead]
        self._engine.kill(attempt for name in dead for attempt in self._floor.runs_on(name))
        if faults.inventory_lag_s > 0:
            self._spawn(self._show_later(faults), "inventory lag")
        else:
            self._show(faults)

    async def _show_later(self, faults: Misbehaviour) -> None:
        await self._clock.sleep(faults.inventory_lag_s)
        if faults is self.faults:
            self._show(faults)

    def _show(self, faults: Misbehaviour) -> None:
        if faults is not self._shown:
            self._shown, self._inventory = faults, None
            self._changed.set()

    def _run(self, attempt: AttemptId) -> Run:
        run = self._engine.find(attempt)
        if run is None:
            raise not_found(attempt)
        return run


def make(settings: AgentSettings, clock: Clock) -> SimulatedBackend:
    """The cluster that the settings describe; raises BadDescription."""
    if settings.cluster_file is None:
        raise BadDescription("the simulated backend needs --cluster-file")
    described = read_cluster(settings.cluster_file, settings.cluster)
    return SimulatedBackend(described, settings.data_dir, clock=clock, speed=settings.sim_speed)
