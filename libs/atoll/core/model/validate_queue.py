"""Rules of a queue's shares: of its own numbers, and of those of the tree that it is in."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from atoll.core.model.errors import FieldViolation
from atoll.core.model.ids import QueueName
from atoll.core.model.job import Queue
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.core.model.validate_faults import Faults, shown
from atoll.core.model.validate_text import check_device_kind

MOST_BLOCKS: Final = 1 << 40
MOST_WEIGHT: Final = 1_000_000
MOST_KINDS: Final = 64

Amounts = tuple[tuple[str, int], ...]


def check_shares(faults: Faults, at: str, queue: Queue) -> None:
    """Weight, deserved and limits of one queue: in their bounds, deserved within the limits."""
    if not queue.weight > 0:
        faults.add(f"{at}.weight", f"{queue.weight:g} is not above 0")
    else:
        faults.number(f"{at}.weight", queue.weight, least=0, most=MOST_WEIGHT)
    _check_amounts(faults, f"{at}.deserved_blocks", queue.deserved)
    _check_amounts(faults, f"{at}.kind_limit_blocks", queue.kind_limits)
    _check_within_limits(faults, f"{at}.deserved_blocks", queue)


def check_tree(queue: Queue, family: Iterable[Queue], *, at: str = "queue") -> list[FieldViolation]:
    """Whether what children deserve fits into their parents, once `queue` is as given.

    `family`: all queues below the same root; that of the same name is replaced. A queue that
    states nothing of a kind deserves what its children do together.
    """
    tree = _Tree([*(q for q in family if q.name != queue.name), queue])
    faults = Faults()
    for kind in sorted({kind for kind, _ in queue.deserved} | tree.kinds_below(queue.name)):
        for parent in tree.stating(queue.name, kind):
            _check_children(faults, tree, kind=kind, parent=parent, at=at)
    return faults.found


def unknown_kinds(queue: Queue, known: Collection[str]) -> list[str]:
    """What to tell of kinds that no cluster has (yet)."""
    named = sorted({kind for kind, _ in (*queue.deserved, *queue.kind_limits)} - set(known))
    there = f"there are {', '.join(sorted(known))}" if known else "there are none at all"
    return [f"no cluster has {kind} now; {there}" for kind in named]


def devices(blocks: int) -> str:
    """Blocks as devices: `8`, `0.25`."""
    return f"{blocks / BLOCKS_PER_DEVICE:,.2f}".rstrip("0").rstrip(".")


class _Tree:
    """Queues of one root by name. A parent needs no row of its own."""

    def __init__(self, queues: Iterable[Queue]) -> None:
        self._stated: Mapping[QueueName, dict[str, int]] = {
            q.name: dict(q.deserved) for q in queues
        }
        self._children: dict[QueueName, set[QueueName]] = {}
        for name in self._stated:
            for child, parent in _edges(name):
                self._children.setdefault(parent, set()).add(child)

    def kinds_below(self, name: QueueName) -> set[str]:
        """Kinds that queues below `name` state."""
        below = (stated for other, stated in self._stated.items() if other.startswith(f"{name}."))
        return {kind for stated in below for kind in stated}

    def stating(self, name: QueueName, kind: str) -> list[QueueName]:
        """The queue itself and the nearest queue above it, as far as they state the kind."""
        above = [parent for _, parent in _edges(name) if kind in self._stated.get(parent, {})]
        own = [name] if kind in self._stated.get(name, {}) else []
        return own + above[:1]

    def deserved(self, name: QueueName, kind: str) -> int:
        """What it states, or what its children deserve together."""
        stated = self._stated.get(name, {}).get(kind)
        return self.of_children(name, kind) if stated is None else stated

    def of_children(self, name: QueueName, kind: str) -> int:
        """What its children deserve together."""
        return sum(self.deserved(child, kind) for child in self._children.get(name, ()))


def _check_children(faults: Faults, tree: _Tree, *, kind: str, parent: QueueName, at: str) -> None:
    own, children = tree.deserved(parent, kind), tree.of_children(parent, kind)
    if children > own:
        faults.add(
            f"{at}.deserved_blocks[{shown(kind)}]",
            f"the queues below {parent} would deserve {devices(children)} {kind} together, "
            f"but {parent} deserves {devices(own)}",
        )


def _check_amounts(faults: Faults, at: str, amounts: Amounts) -> None:
    faults.length(at, len(amounts), least=0, most=MOST_KINDS, of="device kinds")
    for kind, blocks in amounts:
        if not kind:
            faults.add(at, "a device kind has no name")
        check_device_kind(faults, at, kind)
        faults.number(f"{at}[{shown(kind)}]", blocks, least=0, most=MOST_BLOCKS, unit="blocks")


def _check_within_limits(faults: Faults, at: str, queue: Queue) -> None:
    limits = dict(queue.kind_limits)
    for kind, blocks in queue.deserved:
        limit = limits.get(kind)
        if limit is not None and blocks > limit:
            faults.add(
                f"{at}[{shown(kind)}]",
                f"deserves {devices(blocks)} {kind}, but its limit is {devices(limit)}",
            )
    total = sum(blocks for _, blocks in queue.deserved)
    if total and 0 < queue.device_limit < total:
        faults.add(
            at,
            f"deserves {devices(total)} devices in all, but its device limit is "
            f"{devices(queue.device_limit)}",
        )


def _edges(name: QueueName) -> Iterable[tuple[QueueName, QueueName]]:
    """(child, parent), from the queue itself upwards."""
    child = str(name)
    while parent := child.rpartition(".")[0]:
        yield QueueName(child), QueueName(parent)
        child = parent
