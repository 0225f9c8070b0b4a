"""The inventory as dispatch is to know it: numbers that rise, deltas, and the hash of the whole."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from atoll.agent.journal import Journal
from atoll.agent.records import InventoryNumber
from atoll.api.agent.v1 import agent_pb2
from atoll.core.model.inventory import NodeInventory
from atoll.ports.backend import Backend
from atoll.ports.clock import Clock
from atoll.wire.inventory import HASH_BYTES, combined, node_to_proto

NODES_PER_MESSAGE: Final = 500
NUMBERS_AT_ONCE: Final = 1_000
"""Numbers set aside in the journal at a time; a restart leaves a gap, which does no harm."""
SETTLE_S: Final = 0.05
"""Changes that come together go out together."""
DOUBT_S: Final = 1.0
"""A node that refused work is looked at again after this time."""


class Stock:
    """Follows the backend's inventory; `wake` is called when there is something to send."""

    def __init__(self, backend: Backend, journal: Journal, clock: Clock) -> None:
        self.wake: Callable[[], None] = lambda: None
        self.hash = bytes(HASH_BYTES)
        self._backend = backend
        self._journal = journal
        self._clock = clock
        self._nodes: dict[str, NodeInventory] = {}
        self._doubted: set[str] = set()
        self._look_again = asyncio.Event()
        # A new journal must not begin below what an agent before it has sent.
        self.number = max(journal.memory.inventory_number, int(clock.now()))
        self._reserved = self.number
        self._whole = True
        self._confirmed = 0
        self._changed: set[str] = set()
        self._queue: Iterator[agent_pb2.InventoryUpdate] = iter(())

    async def run(self) -> None:
        """Follow the backend, for ever."""
        self._take(())
        while True:
            changed = await self._change()
            await self._clock.sleep(SETTLE_S if changed else DOUBT_S)
            doubted, self._doubted = self._doubted, set()
            self._look_again.clear()
            if doubted:
                await self._backend.refresh_inventory()
            self._take(doubted)

    def doubt(self, nodes: Iterable[str]) -> None:
        """These nodes refused work: look at them again, and say so even if nothing changed.

        Only a later inventory clears the suspicion that a rejection raised.
        """
        self._doubted.update(nodes)
        self._look_again.set()

    def begin_session(self) -> None:
        """Bring this dispatch up to date, unless the last one is known to have been."""
        self._queue = iter(())
        if self._confirmed != self.number:
            self.resync()

    def confirm(self, number: int) -> None:
        """A heartbeat that told of this number was answered."""
        self._confirmed = max(self._confirmed, number)

    def resync(self) -> None:
        """Dispatch wants the whole inventory, under a higher number."""
        self._number_anew()
        self._whole = True
        self.wake()

    def next_update(self) -> agent_pb2.InventoryUpdate | None:
        """The next message that brings dispatch up to date; None when it is.

        Everything at first and after `resync`, what changed since otherwise.
        """
        update = next(self._queue, None)
        if update is None and (self._whole or self._changed):
            self._queue = self._updates()
            update = next(self._queue, None)
        return update

    def _updates(self) -> Iterator[agent_pb2.InventoryUpdate]:
        nodes, number, total = self._nodes, self.number, self.hash
        full, self._whole = self._whole, False
        changed, self._changed = self._changed, set()
        names = sorted(nodes) if full else sorted(changed & nodes.keys())
        gone = [] if full else sorted(changed - nodes.keys())
        for cut in range(0, max(1, len(names)), NODES_PER_MESSAGE):
            more = cut + NODES_PER_MESSAGE < len(names)
            yield agent_pb2.InventoryUpdate(
                number=number,
                full=full,
                more=more,
                nodes=[node_to_proto(nodes[name]) for name in names[cut:][:NODES_PER_MESSAGE]],
                gone=() if more else gone,
                hash=total,
            )

    async def _change(self) -> bool:
        changed = asyncio.ensure_future(self._backend.inventory_changed())
        doubted = asyncio.ensure_future(self._look_again.wait())
        try:
            await asyncio.wait((changed, doubted), return_when=asyncio.FIRST_COMPLETED)
            return changed.done()
        finally:
            changed.cancel()
            doubted.cancel()

    def _take(self, doubted: Iterable[str]) -> None:
        found = {node.name: node for node in self._backend.inventory()}
        before = self._nodes
        changed = {name for name, node in found.items() if before.get(name) != node}
        gone = before.keys() - found.keys()
        self.hash = combined(
            self.hash,
            add=tuple(found[name] for name in changed),
            remove=tuple(before[name] for name in (changed & before.keys()) | gone),
        )
        self._nodes = found
        told = changed | gone | set(doubted)
        if told:
            self._number_anew()
            self._changed |= told
            self.wake()

    def _number_anew(self) -> None:
        self.number += 1
        if self.number > self._reserved:
            self._reserved = self.number + NUMBERS_AT_ONCE
            self._journal.note([InventoryNumber(self._reserved)])
