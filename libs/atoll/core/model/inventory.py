"""What clusters and nodes offer, as agents report it and operators mark it."""

import enum
from dataclasses import dataclass

from atoll.core.model.ids import DEFAULT_SHARD, ClusterName, NodeId, ShardId


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator of a node."""

    index: int
    kind: str
    memory_bytes: int
    uuid: str = ""
    healthy: bool = True
    mig: bool = False
    """True: handed out in MIG slices only; False: whole or in blocks only."""
    mig_instances: tuple[tuple[str, int, str], ...] = ()
    """Static layout (profile, first memory slice, UUID); empty: any legal placement."""
    mig_dynamic: bool = False
    """True: either way, as what is held of it says; `mig` and `mig_instances` say nothing then."""


@dataclass(frozen=True, slots=True)
class LocalUse:
    """What work that Atoll did not start uses on a node."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    blocks: tuple[tuple[int, int], ...] = ()
    """(device index, blocks used)."""


@dataclass(frozen=True, slots=True)
class NodeInventory:
    """What an agent says of one of its nodes."""

    name: str
    cpu_milli: int
    memory_bytes: int
    devices: tuple[Device, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    """Sorted by key."""
    domains: tuple[tuple[str, str], ...] = ()
    """(level, domain), from the widest level to the narrowest."""
    up: bool = True
    address: str = ""
    """Where gang members reach it; empty: its name."""
    local_use: LocalUse = LocalUse()


@dataclass(frozen=True, slots=True)
class Node:
    """A node in the store: what its agent said, and what operators and placement marked."""

    id: NodeId
    cluster: ClusterName
    inventory: NodeInventory
    inventory_number: int = 0
    """Of the report that it comes from; only a later one clears a suspicion."""
    present: bool = True
    """False: the agent no longer lists it."""
    cordoned: bool = False
    cordon_reason: str = ""
    suspect_since: int = -1
    """Inventory number at which it was suspected; suspect while `inventory_number` <= this."""
    revision: int = 1

    @property
    def suspect(self) -> bool:
        """True until a later inventory arrives."""
        return self.inventory_number <= self.suspect_since

    @property
    def schedulable(self) -> bool:
        """True when new work may go there."""
        return self.present and self.inventory.up and not self.cordoned and not self.suspect


class ClusterState(enum.StrEnum):
    """Whether a cluster takes new work."""

    ACTIVE = "ACTIVE"
    SILENT = "SILENT"
    """Heartbeats missed: no new work; what happens to runs is their own choice."""
    LOST = "LOST"
    """Silent past lost_after: `on_lost: requeue` jobs run elsewhere."""
    BOOTING = "BOOTING"
    """Rented, and expected: its nodes are there to be held, and take no work until it joins."""
    QUARANTINED = "QUARANTINED"
    """It has applied decisions that the store does not know."""
    RETIRED = "RETIRED"
    """Forgotten by an operator; the id is never used again."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster's row: registration, session, and the counters of its decisions."""

    name: ClusterName
    shard: ShardId = DEFAULT_SHARD
    backend: str = ""
    can_guard: bool = False
    """Its backend stops runs by itself after stop_after."""
    state: ClusterState = ClusterState.ACTIVE
    cordoned: bool = False
    cordon_reason: str = ""
    levels: tuple[str, ...] = ()
    """Topology levels, widest first."""
    labels: tuple[tuple[str, str], ...] = ()
    session_epoch: int = 0
    agent_instance: str = ""
    holder: str = ""
    """Address of the dispatch replica that holds the session; empty after a goodbye."""
    lease_until: float = 0.0
    """Database time at which the holder's lease is provably over."""
    last_seen: float = 0.0
    """Database time of the last answered heartbeat."""
    silent_s: float = 0.0
    """Silence counted so far by the leaders, persisted each period."""
    head_seq: int = 0
    sent_seq: int = 0
    acked_seq: int = 0
    report_seq: int = 0
    inventory_number: int = 0
    revision: int = 1

    @property
    def schedulable(self) -> bool:
        """True when new work may go there."""
        return self.state is ClusterState.ACTIVE and not self.cordoned


@dataclass(frozen=True, slots=True)
class Avoidance:
    """A cluster or node that the plan avoids for a while after rejections."""

    cluster: ClusterName
    node: NodeId | None
    """None: the whole cluster."""
    shape_key: str
    """Digest of the request that it refused; empty: any."""
    rejections: int
    until: float
    """Wall time."""
