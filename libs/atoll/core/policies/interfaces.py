"""What a cycle lets be exchanged. Policies speak in columns: none is called per node or per job.

A score is a vector of weights over terms that the kernel computes, so that a new
policy needs no new kernel; a filter is a mask over the nodes.
"""

import enum
import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from atoll.core.model.plan import GangRequest
from atoll.core.model.reason import ReasonCode
from atoll.core.model.resources import TaskShape
from atoll.core.policies.victim_order import MinimalLoss
from atoll.core.state.running import Running
from atoll.core.state.snapshot import Snapshot


class Term(enum.IntEnum):
    """What a node and the devices chosen there look like once the task is on it."""

    CPU_LEFT = 0
    """Free CPU, 0 to 1000 thousandths of the node's."""
    MEMORY_LEFT = 1
    """Free memory, 0 to 1000."""
    DEVICES_LEFT = 2
    """Devices with nothing on them."""
    BLOCKS_LEFT = 3
    """Free blocks of the shared device, free slices times 12 of the sliced one."""
    DEVICES_BROKEN = 4
    """Devices that had nothing on them before, and of which some blocks are used then."""
    DEVICES_IDLE = 5
    """Devices on the node of a task that asks for none."""
    SLICES_LOST = 6
    """Growth of the MIG fragmentation F."""
    LOSS = 7
    """Growth of the loss to typical tasks, in quanta, rounded down."""
    LOSS_SQUASHED = 8
    """The same as 0 to 100: 50 for no growth, less for a loss that shrinks."""
    NODE_LEFT = 9
    """Free blocks over all devices of the node."""
    ALIGNED = 10
    """How alike what is asked and what is free are: the sum of products of shares, thousandths."""
    CHANCE = 11
    """By chance, 0 to 2^20; with it scores depend on the node itself and the cycle's generator."""


TERMS: Final = len(Term)
FORMS: Final = 5
Weights = NDArray[np.int64]
"""(FORMS, TERMS) per form of a shape and term.

A score is the sum, the smallest wins, and it must stay between -2^31 and 2^31 - 1.
"""


@dataclass(frozen=True, slots=True)
class Strand:
    """Free devices that are lost because CPU is short: those beyond free CPU / `cpu_milli`."""

    cpu_milli: int
    """Per device."""
    weight: float


@dataclass(frozen=True, slots=True)
class Loss:
    """What makes free devices a loss; engine/loss_kernels.py says what the parts are."""

    fragments: float = 0.0
    """Weight; so is `holes`."""
    strand: Strand = Strand(1, 0.0)
    holes: float = 0.0
    patience: float = 0.0
    """Chance that no task comes to fill a hole, beside those of typical tasks."""
    evenness: float = 1.0
    """Exponent of those chances: below 1, rare sizes count for more."""
    keenness: float = 0.0
    """How much sooner a task fills a hole of which it leaves less, per block."""
    wholes: float = 1.0
    """Factor for the chance of whole devices."""
    feeding: float = 0.0
    """0: holes are as tasks with enough CPU fill them; 1: those that the node's free CPU allows."""
    opening: float = 0.0
    """Blocks by which an untouched device counts for more than its hole."""
    openness: float = 0.0
    """Blocks for a device's worth of free blocks on touched devices of a node; grows squared."""
    quantum: float = 0.1
    """Blocks of loss that count as one."""
    scarce_from: float = 1.0
    """CPU scarcity from which the next two begin to count; in full from `scarce_to` on."""
    scarce_to: float = 2.0
    scarce_fragments: float = 0.0
    scarce_strand: Strand = Strand(1, 0.0)


MAY_GO: Final = 0
WHY: Final[tuple[ReasonCode | None, ...]] = (
    None,
    ReasonCode.DEVICE_KIND_ABSENT,
    ReasonCode.PROFILE_ABSENT,
    ReasonCode.CPU_SHORT,
    ReasonCode.MEMORY_SHORT,
    ReasonCode.DEVICES_SHORT,
    ReasonCode.LABELS_MISMATCH,
    ReasonCode.NODE_UNSCHEDULABLE,
    ReasonCode.NODE_SUSPECT,
    ReasonCode.NO_CLUSTER,
    ReasonCode.CLUSTER_SILENT,
    ReasonCode.CLUSTER_CORDONED,
    ReasonCode.CLUSTER_BEHIND,
    ReasonCode.CLUSTER_AVOIDED,
    ReasonCode.ON_LOST_UNSUPPORTED,
    ReasonCode.ANTI_AFFINITY,
    ReasonCode.RESERVED,
    ReasonCode.RENTED,
)
"""Why a node does not take a task, as small numbers."""
WHY_NUMBER: Final = {code: number for number, code in enumerate(WHY) if code is not None}


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """How queues are compared: first those below what they deserve, then by dominant share."""

    unit: NDArray[np.float64]
    """(R) share of the whole that one unit of a resource is; 0 for those that do not count."""
    bias: NDArray[np.float64]
    """(V) added to a queue's share when it holds more than it deserves."""


@dataclass(frozen=True, slots=True)
class Patience:
    """When nodes are cleared for a gang that finds no place, and how many."""

    after_s: float = math.inf
    """Its wait from which on they are."""
    below: float = 0.5
    """Its queue holds less than this part of what it deserves."""
    part: float = 0.25
    """Of the nodes of its cluster, or domain, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """The order of the J jobs that a snapshot shows; the smallest is first, ties by submit, id."""

    outer: NDArray[np.int64]
    """(J) compared before queues are."""
    inner: NDArray[np.int64]
    """(J) compared between jobs of one queue."""
    key: NDArray[np.float64]
    """(J) compared between jobs of one queue that are equal so far."""
    standing: Standing | None = None
    """None: queues do not count, all jobs are as of one."""
    patience: Patience = Patience()
    rebalances: bool = False
    """Borrowers give way to each other, by `standing`."""


class QueueOrder(Protocol):
    """In which order jobs are tried."""

    def ranks(self, snapshot: Snapshot, *, now: float, rng: Generator) -> Ranks:
        """The order as it stands before anything is placed."""
        ...


class Filter(Protocol):
    """Where a task may go at all, whatever is free."""

    def key(
        self, snapshot: Snapshot, request: GangRequest, *, shape: TaskShape, now: float
    ) -> Hashable:
        """What `refuses` depends on: equal keys of one snapshot give equal answers."""
        ...

    def refuses(
        self, snapshot: Snapshot, request: GangRequest, *, shape: TaskShape, now: float
    ) -> NDArray[np.int8]:
        """(N) MAY_GO for the nodes that remain, for others the place in WHY of the reason."""
        ...


class Score(Protocol):
    """Which of the nodes that fit is best."""

    gathers: bool
    """True: gangs that ask for no topology are kept in the narrowest domain that holds them."""

    loss: Loss
    """What LOSS means."""

    def weights(self, *, known: int) -> Weights:
        """Weights of the terms; `known`: how many tasks the typical ones are learnt from."""
        ...


class VictimOrder(Protocol):
    """What it costs to stop running work."""

    @property
    def excess(self) -> float:
        """How much sooner those are stopped whose queue holds more than it deserves.

        Work of a queue with twice what it deserves costs 2^-excess of what `costs` says.
        """
        ...

    def costs(
        self, running: Running, slots: NDArray[np.int64], *, now: float
    ) -> NDArray[np.float64]:
        """(S) cost of stopping each slot now, above 0; the least is stopped."""
        ...


class Objective(enum.StrEnum):
    """What is best, where shares and rights leave a choice."""

    SPEED = "speed"
    """That jobs are through early, and few are stopped."""
    GOODPUT = "goodput"
    """That devices do useful work: what is lost, done again and spent on rescaling counts against
    it, and nothing else does."""


BOOT_GAP_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies of a cycle."""

    order: QueueOrder
    filters: tuple[Filter, ...]
    score: Score
    victims: VictimOrder = field(default_factory=MinimalLoss)
    objective: Objective = Objective.SPEED
    """By which running jobs grow and shrink, and by which quick clusters are taken first."""
    boot_gap_s: float = BOOT_GAP_S
    """Clusters are alike whose jobs begin to run within so many seconds of each other."""
