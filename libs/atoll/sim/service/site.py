"""A simulated cluster, and the agent that drives it, which may die and come back."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from atoll.adapters.memory.signal import Signal
from atoll.agent.agent import Agent
from atoll.agent.backends.simulated import SimulatedBackend
from atoll.agent.journal import open_journal
from atoll.agent.parts import Parts
from atoll.agent.settings import AgentSettings
from atoll.agent.simcluster.description import Described
from atoll.agent.simcluster.ledger import Ledger
from atoll.agent.simcluster.misbehaviour import GOOD, NO_FAULT, Misbehaviour, NodeFault
from atoll.agent.simcluster.progress import ProgressBook
from atoll.agent.simcluster.runs import Run
from atoll.agent.wiring import make_parts
from atoll.core.model.ids import AttemptId, ClusterName
from atoll.core.model.inventory import NodeInventory
from atoll.ports.clock import Clock, Ids
from atoll.sim.service.link import Exchange, Link

LEAVES_WITHIN_S: Final = 60.0
OnEntry = Callable[["Site", Mapping[str, Any]], None]


class ToldLedger(Ledger):
    """The cluster's own ledger; somebody hears of each entry as it is made."""

    def __init__(self, folder: Path, tell: Callable[[Mapping[str, Any]], None]) -> None:
        super().__init__(folder)
        self._tell = tell

    async def append(self, *entries: Mapping[str, Any]) -> None:
        """Tell, and write."""
        for entry in entries:
            self._tell(entry)
        await super().append(*entries)


class Switch:
    """A control of misbehaviour that is turned, not looked at."""

    def __init__(self, on_turn: Callable[[], None]) -> None:
        self._now = GOOD
        self._on_turn = on_turn
        self._turned = Signal()
        self._seen = GOOD

    @property
    def now(self) -> Misbehaviour:
        """What is wrong."""
        return self._now

    def look(self) -> Misbehaviour:
        """The same, for the cluster itself."""
        self._seen = self._now
        return self._now

    async def changed(self, clock: Clock) -> None:
        """Return when it was turned."""
        await self._turned.wait(lambda: self._now is not self._seen)

    def turn(self, **how: Any) -> None:
        """Change what is wrong with the cluster as a whole."""
        self._now = replace(self._now, **how)
        self._turned.fire()
        self._on_turn()

    def turn_nodes(self, faults: Mapping[str, NodeFault]) -> None:
        """Change what is wrong with nodes; NO_FAULT heals one."""
        nodes = {**self._now.nodes, **faults}
        kept = {name: fault for name, fault in sorted(nodes.items()) if fault is not NO_FAULT}
        self.turn(nodes=kept)

    def fault_of(self, node: str) -> NodeFault:
        """What is wrong with a node."""
        return self._now.of(node)


class WatchedBackend(SimulatedBackend):
    """A simulated cluster whose runs can be looked at."""

    @property
    def runs(self) -> Mapping[AttemptId, Run]:
        """Those that run, as far as its agent has seen to them."""
        return self._engine.live

    @property
    def leased_until(self) -> float:
        """Wall time to which guarded runs may go on."""
        return self._engine.leased_until


class Site:
    """One cluster. Its folder outlives its agents, as do its runs."""

    def __init__(
        self,
        described: Described,
        settings: AgentSettings,
        *,
        exchange: Exchange,
        book: ProgressBook,
        clock: Clock,
        ids: Ids,
        on_entry: OnEntry,
        on_turn: Callable[[], None],
    ) -> None:
        self.name = ClusterName(settings.cluster)
        self.described = described
        self.link = Link(clock)
        self.switch = Switch(on_turn)
        self.backend: WatchedBackend | None = None
        """Of the present agent, or of the last one."""
        self.up = False
        self._settings = settings
        self._exchange = exchange
        self._book = book
        self._clock = clock
        self._ids = ids
        self._on_entry = on_entry
        self._parts: Parts | None = None
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin, as the agent's wiring does."""
        folder = self._settings.data_dir
        folder.mkdir(parents=True, exist_ok=True)
        backend = self.backend = WatchedBackend(
            self.described,
            folder,
            clock=self._clock,
            ledger=ToldLedger(folder, lambda entry: self._on_entry(self, entry)),
            control=self.switch,
            book=self._book,
        )
        journal = open_journal(folder, self._settings.cluster, instance=self._ids.uuid())
        found = await backend.open()
        parts = self._parts = make_parts(self._settings, backend, journal, clock=self._clock)
        agent = Agent(
            parts,
            self._settings.dispatch,
            dial=lambda address: self._exchange.dial(address, self.link),
            ids=self._ids,
        )
        agent.restore(found)
        self._stopping = asyncio.Event()
        self._task = asyncio.ensure_future(agent.run(self._stopping))
        self.up = True

    async def stop(self) -> None:
        """End the agent in order, with a Goodbye."""
        if self._task is not None:
            self._stopping.set()
            await asyncio.wait([self._task], timeout=LEAVES_WITHIN_S)
            await self.kill()

    async def kill(self) -> None:
        """End the agent as SIGKILL does: nothing is said. The runs go on."""
        self.up = False
        task, parts, self._task = self._task, self._parts, None
        if task is None or parts is None or self.backend is None:
            return
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await parts.worker.close()
        await parts.journal.close()
        await self.backend.close()

    def shown(self) -> list[NodeInventory]:
        """The nodes as they really are now."""
        faults = self.switch.now
        found = (faults.shown(node) for node in self.described.nodes)
        return [node for node in found if node is not None]

    def failed(self) -> BaseException | None:
        """What ended the agent, if it has ended by itself."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception()

    def running(self) -> dict[AttemptId, Run]:
        """What really runs now, whether or not an agent is there to see it."""
        backend = self.backend
        if backend is None:
            return {}
        return {attempt: run for attempt, run in backend.runs.items() if self._is_alive(run)}

    def _is_alive(self, run: Run) -> bool:
        """A run whose agent is away ends when it is due, or by its guard."""
        backend, now = self.backend, self._clock.now()
        assert backend is not None
        guarded = run.script.guarded and now >= backend.leased_until
        return self.up or (now < run.ends and not guarded)
