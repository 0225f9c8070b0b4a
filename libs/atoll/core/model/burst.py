"""Rented capacity: what can be had, what was had, and what may be spent.

Money is integers in micro-dollars; time is unix seconds.
"""

import enum
from dataclasses import dataclass
from typing import Final, NewType

from atoll.core.model.ids import ClusterName, JobId, QueueName
from atoll.core.model.inventory import Device, NodeInventory

InstanceId = NewType("InstanceId", int)
"""Number of an instance in the store, never reused."""
MICROS: Final = 1_000_000
"""Micro-dollars in a dollar."""
MOST_NODES: Final = 64
"""Of one instance."""
NO_CLUSTER: Final = ClusterName("")
CLUSTER_PREFIX: Final = "burst-"
"""Of the names of rented clusters; nobody else's may begin so."""


class Market(enum.StrEnum):
    """How an instance is paid for."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    """Cheaper; the provider may take it back after a notice."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One kind of instance in one zone of one provider."""

    provider: str
    zone: str
    """As the provider names it; data residency is told by `region`."""
    region: str
    instance_type: str
    market: Market
    cpu_milli: int
    memory_bytes: int
    kind: str = ""
    """Device kind; empty: none."""
    devices: int = 0
    price: int = 0
    """Micro-dollars per hour and instance."""
    lead_s: float = 0.0
    """From the request until work can start there, as seen so far."""
    notice_s: float = 0.0
    """SPOT: from the notice of an interruption until it is gone."""
    available: bool = True
    """False: the last try found none."""
    most: int = 0
    """Instances that can be had at most; 0: not known."""
    nodes: int = 1
    """Equal machines that are one instance, one cluster: CPU, memory and devices are of each."""

    @property
    def key(self) -> str:
        """What tells offers apart."""
        return f"{self.provider}/{self.zone}/{self.instance_type}/{self.market}"

    @property
    def units(self) -> int:
        """Devices of all nodes, or the nodes where there is none."""
        return self.nodes * (self.devices or 1)


class InstanceState(enum.StrEnum):
    """Where an instance is. Only the provider's word makes it TERMINATED."""

    REQUESTED = "REQUESTED"
    """The row is there; the provider may or may not know of it: ask by token."""
    BOOTING = "BOOTING"
    """The provider has created it; its agent has not joined."""
    READY = "READY"
    """Its nodes take work."""
    DRAINING = "DRAINING"
    """No new work; what runs ends, or is stopped when the drain's time is over."""
    TERMINATING = "TERMINATING"
    """The provider was told to end it, or is to be told again."""
    TERMINATED = "TERMINATED"
    FAILED = "FAILED"
    """The provider refused to create it; nothing exists under its token."""


ENDED: Final = frozenset({InstanceState.TERMINATED, InstanceState.FAILED})
"""Nothing is there, and nothing is paid for."""
GIVEN_UP: Final = ENDED | {InstanceState.TERMINATING}
"""An agent that joins now is refused."""


class EndCause(enum.StrEnum):
    """Why an instance is to end."""

    NONE = "NONE"
    IDLE = "IDLE"
    BUDGET = "BUDGET"
    POLICY = "POLICY"
    """A limit was lowered below what runs, or the kill switch was thrown."""
    BOOT_DEADLINE = "BOOT_DEADLINE"
    INTERRUPTED = "INTERRUPTED"
    """The provider takes a spot instance back."""
    BY_HAND = "BY_HAND"
    ORPHAN = "ORPHAN"
    """It was found by its tag without a row."""
    PROVIDER = "PROVIDER"
    """It vanished, or could not be created."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A rented machine, or group of machines, from the wish to the provider's word of its end."""

    id: InstanceId
    token: str
    """Idempotency key and tag at the provider, unique for ever."""
    offer: Offer
    state: InstanceState
    requested_at: float
    queue: QueueName | None = None
    """Whose budget pays; None: everybody's."""
    jobs: tuple[JobId, ...] = ()
    """For whom it was rented."""
    why: str = ""
    provider_id: str = ""
    cluster: ClusterName = NO_CLUSTER
    """The cluster that it joins as."""
    created_at: float = 0.0
    """Paid from here on."""
    ready_at: float = 0.0
    idle_since: float = 0.0
    """0: something runs there."""
    stop_at: float = 0.0
    """DRAINING: when what still runs is told to stop."""
    drain_by: float = 0.0
    """DRAINING: when it is ended, whatever runs."""
    keep_until: float = 0.0
    """It is not ended for being idle before; 0: by the keep-alive rule."""
    ended_at: float = 0.0
    cause: EndCause = EndCause.NONE
    message: str = ""
    spent: int = 0
    """Micro-dollars so far, by the second."""
    revision: int = 1


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent at most, in micro-dollars; 0: nothing, None: no bound of its own."""

    per_hour: int | None = None
    per_month: int | None = None
    """Calendar month, UTC."""


@dataclass(frozen=True, slots=True)
class BurstPolicy:
    """What a queue, or all together (queue None), may rent."""

    queue: QueueName | None
    allowed: bool = False
    budget: Budget = Budget()
    regions: tuple[str, ...] = ()
    """Where its data may go; empty: anywhere."""
    providers: tuple[str, ...] = ()
    most_price: int = 0
    """Micro-dollars per device-hour at most; 0: no bound."""
    markets: tuple[Market, ...] = (Market.ON_DEMAND, Market.SPOT)
    hour_of_delay: int = 0
    """What an hour of waiting of one device costs, in micro-dollars: the underage."""
    killed: bool = False
    """All only: nothing is rented any more, and what is rented is drained."""
    generation: int = 1


@dataclass(frozen=True, slots=True)
class Rental:
    """What placement needs to know of an instance that is not ended, or has just ended."""

    instance: InstanceId
    cluster: ClusterName
    state: InstanceState
    offer: Offer
    jobs: tuple[JobId, ...] = ()
    """They take it as soon as it has joined; until then it is held for them."""
    queue: QueueName | None = None
    """Whose budget pays: only its jobs run there. None: those of all queues that may burst."""
    ready_at: float = 0.0
    """When work can start there, by what is known now."""
    give_up_at: float = 0.0
    """When nobody waits for it any more."""
    stop_at: float = 0.0
    """DRAINING: when what still runs is told to stop."""


def chain_of(queue: QueueName | None) -> tuple[QueueName | None, ...]:
    """Whose policies and budgets count for a queue: all together first, then from the root."""
    if not queue:
        return (None,)
    parts = queue.split(".")
    return (None, *(QueueName(".".join(parts[: n + 1])) for n in range(len(parts))))


def cluster_of(instance: InstanceId) -> ClusterName:
    """The cluster that an instance joins as."""
    return ClusterName(f"{CLUSTER_PREFIX}{instance}")


def nodes_of(offer: Offer, cluster: ClusterName) -> tuple[NodeInventory, ...]:
    """What an instance of an offer will say of itself, as far as the offer tells."""
    devices = tuple(Device(index, offer.kind, memory_bytes=0) for index in range(offer.devices))
    return tuple(
        NodeInventory(
            name, offer.cpu_milli, offer.memory_bytes, devices=devices if offer.kind else ()
        )
        for name in node_names(cluster, offer.nodes)
    )


def node_names(cluster: str, nodes: int) -> tuple[str, ...]:
    """An only node has the name of its cluster; several are numbered behind it."""
    return (cluster,) if nodes == 1 else tuple(f"{cluster}-{n}" for n in range(nodes))


def rental_of(instance: Instance, *, ready_at: float, give_up_at: float) -> Rental:
    """An instance as placement is told of it. `ready_at`: what was expected."""
    return Rental(
        instance.id,
        instance.cluster,
        instance.state,
        instance.offer,
        jobs=instance.jobs,
        queue=instance.queue,
        ready_at=instance.ready_at or ready_at,
        give_up_at=give_up_at,
        stop_at=instance.stop_at,
    )
