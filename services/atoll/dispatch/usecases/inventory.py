"""Takes in inventories, and finds out when the agent's and the store's differ."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from atoll.core.model.errors import ErrorCode, Exhausted, StaleSession, Unavailable
from atoll.core.model.inventory import NodeInventory
from atoll.dispatch.usecases.limits import Limits
from atoll.dispatch.usecases.session import Session, Stock
from atoll.ports.store.dispatch import DispatchStore, InventoryDelta
from atoll.ports.topics import PLACEMENT

STRIKES: Final = 3
"""Heartbeats in a row with another number: no update is on its way, one was lost."""

PATIENCE: Final = 5
"""Heartbeats until a whole inventory is asked for again."""


@dataclass(frozen=True, slots=True)
class InventoryPart:
    """A part of one inventory; `hash` is that of the whole after the last part."""

    number: int
    full: bool
    more: bool
    nodes: tuple[NodeInventory, ...]
    gone: tuple[str, ...]
    hash: bytes


class Combine(Protocol):
    """An inventory's hash after nodes came and went; b"" is that of no nodes."""

    def __call__(
        self,
        total: bytes,
        *,
        add: tuple[NodeInventory, ...] = (),
        remove: tuple[NodeInventory, ...] = (),
    ) -> bytes:
        """The new hash."""
        ...


class Inventories:
    """The inventories of this replica's sessions."""

    def __init__(
        self,
        store: DispatchStore,
        combine: Combine,
        *,
        wake: Callable[[str], None],
        limits: Limits,
    ) -> None:
        self._store = store
        self._combine = combine
        self._wake = wake
        self._limits = limits

    async def take(self, session: Session, part: InventoryPart) -> None:
        """Collect a part; with the last one, write the inventory.

        Raises Exhausted for more nodes than are allowed, or Unavailable.
        """
        stock = session.stock
        if part.number != stock.parts_number:
            stock.parts, stock.gone, stock.parts_number = {}, set(), part.number
        stock.gone.update(part.gone)
        stock.parts.update((node.name, node) for node in part.nodes)
        if len(stock.parts) + len(stock.gone) > self._limits.nodes:
            raise Exhausted(
                f"an inventory has at most {self._limits.nodes} nodes", code=ErrorCode.TOO_LARGE
            )
        if not part.more:
            await self._write(session, part)

    async def compare(self, session: Session, *, number: int, digest: bytes) -> None:
        """Look at what a heartbeat says of the inventory; ask for all of it when it differs."""
        stock = session.stock
        await self._loaded(session)
        if number == stock.number:
            stock.strikes = 0
            if digest == stock.hash:
                stock.patience = 0
            else:
                _ask_again(session)
        else:
            # An update may be on its way, but not for ever.
            stock.strikes += 1
            if stock.strikes >= STRIKES:
                _ask_again(session)

    async def _write(self, session: Session, part: InventoryPart) -> None:
        stock = session.stock
        delta = _delta(session, part)
        try:
            nodes = await self._loaded(session)
            if part.number <= stock.number:
                self._repeated(session, part)
                return
            held = await self._store.put_inventory(delta)
        except Unavailable:
            stock.nodes = None  # it may have been written; heartbeats will tell
            raise
        finally:
            stock.parts, stock.gone, stock.parts_number = {}, set(), -1
        if not held:
            session.end(StaleSession())
            return
        self._account(stock, nodes, delta)
        self._wake(PLACEMENT)
        if stock.hash != part.hash:
            _ask_again(session)

    @staticmethod
    def _repeated(session: Session, part: InventoryPart) -> None:
        if part.number < session.stock.number or part.hash != session.stock.hash:
            _ask_again(session)

    def _account(
        self, stock: Stock, nodes: dict[str, NodeInventory], delta: InventoryDelta
    ) -> None:
        listed = {node.name: node for node in delta.nodes}
        lost = nodes.keys() - listed.keys() if delta.full else set(delta.gone)
        before = [nodes.pop(name) for name in sorted(lost | listed.keys()) if name in nodes]
        nodes.update(listed)
        stock.hash = self._combine(stock.hash, add=delta.nodes, remove=tuple(before))
        stock.number = delta.number
        stock.strikes = stock.patience = 0

    async def _loaded(self, session: Session) -> dict[str, NodeInventory]:
        stock = session.stock
        if stock.nodes is None:
            found = await self._store.inventory(session.cluster)
            stock.nodes = dict(found)
            stock.hash = self._combine(b"", add=tuple(found.values()))
        return stock.nodes


def _delta(session: Session, part: InventoryPart) -> InventoryDelta:
    stock = session.stock
    return InventoryDelta(
        cluster=session.cluster,
        session_epoch=session.epoch,
        number=part.number,
        full=part.full,
        nodes=tuple(stock.parts[name] for name in sorted(stock.parts)),
        gone=tuple(sorted(stock.gone - stock.parts.keys())),
    )


def _ask_again(session: Session) -> None:
    stock = session.stock
    stock.strikes = 0
    if stock.patience > 0:
        stock.patience -= 1
        return
    stock.patience = PATIENCE
    session.outbox.resync()
