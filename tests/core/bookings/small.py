"""Small worlds with bookings, and what a plain count over whole seconds says of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from atoll.core.engine.bookings.answers import Accepted, Booked, Move, Placed
from atoll.core.engine.bookings.calendar import Calendar
from atoll.core.model.booking import NodeShare, OccurrenceId, Owners
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, QueueName
from atoll.core.model.inventory import Cluster, Device, Node, NodeInventory
from atoll.core.model.plan import RunFacts, RunTerms, TaskPlacement
from atoll.core.model.reservation import (
    Amount,
    Flexible,
    ReservationId,
    ReservationSpec,
    What,
    When,
    WholeDomains,
    WholeNodes,
)
from atoll.core.model.resources import DeviceGrant, DeviceRequest
from atoll.core.state.ledger import Holding
from atoll.core.state.mig import grant_bits
from atoll.core.state.world import World

GIB = 1 << 30
KIND = "H100"
HORIZON = 24
PER_DEVICE = 1_000
"""Milli-CPU of a node by device."""


@dataclass(frozen=True)
class Run:
    """A run on one node, of so many whole devices, until `end` at the latest."""

    node: int
    devices: tuple[int, ...]
    end: float
    """0: nobody knows."""
    preemptible: bool


@dataclass(frozen=True)
class Small:
    """Nodes by number, each with its cluster and its devices, and what runs."""

    nodes: tuple[Node, ...]
    runs: tuple[Run, ...]

    def world(self) -> World:
        """The same as a world."""
        world = World()
        world.set_clusters([Cluster(ClusterName(name), levels=("rack",)) for name in ("a", "b")])
        world.upsert_nodes(self.nodes)
        world.add_allocations([_holding(self, number, run) for number, run in enumerate(self.runs)])
        return world

    def calendar(self) -> Calendar:
        """An empty calendar at second 0."""
        return Calendar(self.world().look(0.0))

    def node(self, number: int) -> Node:
        """A node by its id."""
        return next(node for node in self.nodes if node.id == number)


@st.composite
def smalls(draw: st.DrawFn, *, mig: bool = False) -> Small:
    """One to four nodes in two clusters, some of which run something."""
    count = draw(st.integers(1, 4))
    nodes = tuple(draw(_nodes(number, mig=mig)) for number in range(1, count + 1))
    runs: list[Run] = []
    for node in nodes:
        whole = [d.index for d in node.inventory.devices if not d.mig]
        busy = draw(st.booleans())
        if whole and busy:
            held = tuple(whole[: draw(st.integers(1, len(whole)))])
            end = float(draw(st.sampled_from((0, 3, 6, 12))))
            runs.append(Run(node.id, held, end, draw(st.booleans())))
    return Small(nodes, tuple(runs))


def specs(*, mig: bool = False) -> st.SearchStrategy[ReservationSpec]:
    """Bookings that are small enough to fit more often than not."""
    units = [
        *(What(amounts=(Amount(DeviceRequest(KIND, n), k),)) for n in (1, 2) for k in (1, 2, 3)),
        What(amounts=(Amount(DeviceRequest(KIND, 1), 3),), split=True),
        What(amounts=(Amount(DeviceRequest(KIND, 1, 40), 2),)),
        What(amounts=(Amount(DeviceRequest(KIND, 1), 1), Amount(DeviceRequest(KIND, 1, 50), 1))),
        What(amounts=(Amount(None, 2, cpu_milli=700, memory_bytes=GIB // 2),)),
        What(amounts=(Amount(DeviceRequest(KIND, 1), 1, cpu_milli=1_500),)),
        What(nodes=WholeNodes(1)),
        What(nodes=WholeNodes(2)),
        What(domains=WholeDomains("rack", 1)),
        What(percent=50, clusters=(ClusterName("a"),)),
    ]
    if mig:
        profiles = ("1g.10gb", "3g.40gb")
        units += [What(amounts=(Amount(DeviceRequest(KIND, 1, profile=p), 2),)) for p in profiles]
    return st.builds(
        _spec,
        st.sampled_from(units),
        start=st.integers(0, HORIZON - 8),
        length=st.integers(1, 8),
        priority=st.integers(0, 2),
        override=st.booleans(),
        flexible=st.booleans(),
    )


def _spec(
    what: What, *, start: int, length: int, priority: int, override: bool, flexible: bool
) -> ReservationSpec:
    when = When(float(length), start_at=float(start))
    if flexible:
        when = When(float(length), flexible=Flexible(float(start), float(HORIZON)))
    owners = Owners(queues=(QueueName("q"),))
    return ReservationSpec("b", what, when, owners, priority=priority, override=override)


def enter(calendar: Calendar, number: int, spec: ReservationSpec, answer: Accepted) -> None:
    """Write down what was accepted, as the service does."""
    for move in answer.moves:
        moved(calendar, move)
    for at, placed in enumerate(answer.placed):
        calendar.add(booked(100 * number + at, spec, placed))


def booked(number: int, spec: ReservationSpec, placed: Placed) -> Booked:
    """A window of a spec."""
    return Booked(
        OccurrenceId(number), ReservationId(number), f"b{number}", placed.start, placed.end,
        placed.parts, spec.what, spec.owners, priority=spec.priority,
        flexible=spec.when.flexible,
    )  # fmt: skip


def moved(calendar: Calendar, move: Move) -> None:
    """Write down what became of a booking that gave way."""
    old = calendar.get(move.id)
    calendar.remove(move.id)
    if not move.cancelled:
        calendar.add(replace(old, start=move.start, end=move.end, parts=move.parts))


def overbooked(small: Small, windows: Iterable[Booked]) -> list[str]:
    """Nodes that have too little for all that is to be there, second by second."""
    faults: list[str] = []
    every = list(windows)
    for second in range(HORIZON * 2):
        for node in small.nodes:
            shares = [s for w in every if w.start <= second < w.end for s in _shares(w, node)]
            shares += [_run_share(small, run) for run in _barring(small, node, second)]
            if not _fits(node, shares):
                faults.append(f"{node.inventory.name} at {second}: {shares}")
    return faults


def is_complete(small: Small, window: Booked) -> bool:
    """Whether a window has all that it is of, counted anew."""
    what, shares = window.what, [s for part in window.parts for s in part.shares]
    if what.nodes is not None:
        return len(shares) == what.nodes.count and all(s.whole for s in shares)
    if what.domains is not None:
        racks = {rack_of(small.node(share.node)) for share in shares}
        members = [n for n in small.nodes if rack_of(n) in racks]
        return len(racks) == 1 and len(members) == len(shares) and all(s.whole for s in shares)
    if what.percent:
        devices = [d.mig for n in small.nodes if n.cluster == "a" for d in n.inventory.devices]
        halves = [-(-devices.count(mode) * what.percent // 100) for mode in (False, True)]
        grants = [g for share in shares for g in share.devices]
        return [sum(bool(g.slice_mask) is mode for g in grants) for mode in (False, True)] == halves
    if len(window.parts) > 1 and not what.split:
        return False
    blocks = sum(g.blocks for s in shares for g in s.devices)
    slices = sum(1 for s in shares for g in s.devices if g.slice_mask)
    wanted = [(a.device, a.count) for a in what.amounts if a.device]
    return blocks == sum(
        d.count * d.blocks * n for d, n in wanted if not d.profile
    ) and slices == sum(n for d, n in wanted if d.profile)


def rack_of(node: Node) -> tuple[str, str]:
    """Cluster and rack."""
    return node.cluster, dict(node.inventory.domains)["rack"]


def free_units(small: Small, windows: Sequence[Booked], node: Node, span: range) -> int:
    """Whole devices, with their part of the node, that nobody has any of in a span."""
    free, parts = {d.index for d in node.inventory.devices}, len(node.inventory.devices)
    for second in span:
        shares = [s for w in windows if w.start <= second < w.end for s in _shares(w, node)]
        shares += [_run_share(small, run) for run in _barring(small, node, second)]
        for share in shares:
            free -= free if share.whole else {g.index for g in share.devices}
        cpu = node.inventory.cpu_milli - sum(share.cpu_milli for share in shares)
        memory = node.inventory.memory_bytes - sum(share.memory_bytes for share in shares)
        parts = min(parts, cpu // PER_DEVICE, memory // GIB)
    return min(len(free), parts)


def is_free(small: Small, windows: Sequence[Booked], node: Node, span: range) -> bool:
    """Whether nobody has anything of a node in any second of a span."""
    return not any(
        _barring(small, node, second)
        or any(w.start <= second < w.end and list(_shares(w, node)) for w in windows)
        for second in span
    )


def _shares(window: Booked, node: Node) -> Iterable[NodeShare]:
    return [s for part in window.parts for s in part.shares if s.node == node.id]


def _barring(small: Small, node: Node, second: int) -> list[Run]:
    """Runs that are there at a second and cannot be stopped."""
    here = (run for run in small.runs if run.node == node.id and not run.preemptible)
    return [run for run in here if not run.end or second < run.end]


def _run_share(small: Small, run: Run) -> NodeShare:
    task = _task(small, run)
    return NodeShare(task.node, task.node_name, task.cpu_milli, task.memory_bytes, task.devices)


def _fits(node: Node, shares: Sequence[NodeShare]) -> bool:
    if any(share.whole for share in shares):
        return len(shares) == 1
    cpu = sum(share.cpu_milli for share in shares)
    memory = sum(share.memory_bytes for share in shares)
    if cpu > node.inventory.cpu_milli or memory > node.inventory.memory_bytes:
        return False
    return all(_device_fits(device, shares) for device in node.inventory.devices)


def _device_fits(device: Device, shares: Sequence[NodeShare]) -> bool:
    grants = [g for share in shares for g in share.devices if g.index == device.index]
    blocks, bits = sum(g.blocks for g in grants), [g for g in grants if g.slice_mask]
    if (blocks and device.mig) or (bits and not (device.mig or device.mig_dynamic)):
        return False
    taken = 0
    for each in (grant_bits(g.profile, g.slice_mask) for g in bits):
        if taken & each:
            return False
        taken |= each
    return blocks <= 100 and not (blocks and bits)


@st.composite
def _nodes(draw: st.DrawFn, number: int, *, mig: bool) -> Node:
    count = draw(st.integers(1, 3))
    # Some are in slices, some whole, some as whoever comes first likes it.
    modes = [draw(st.sampled_from((0, 1, 2))) if mig else 0 for _ in range(count)]
    devices = tuple(
        Device(i, KIND, 80 * GIB, mig=mode == 1, mig_dynamic=mode == 2)
        for i, mode in enumerate(modes)
    )
    inventory = NodeInventory(
        f"n{number}", PER_DEVICE * count, GIB * count, devices,
        domains=(("rack", draw(st.sampled_from(("r1", "r2")))),),
    )  # fmt: skip
    return Node(NodeId(number), ClusterName(draw(st.sampled_from(("a", "a", "b")))), inventory)


def _task(small: Small, run: Run) -> TaskPlacement:
    count = len(run.devices)
    grants = tuple(DeviceGrant(index, 100) for index in run.devices)
    return TaskPlacement(
        0, 0, NodeId(run.node), f"n{run.node}", PER_DEVICE * count, GIB * count, grants
    )


def _holding(small: Small, number: int, run: Run) -> Holding:
    job = JobId(number + 1)
    terms = RunTerms(time_limit_s=run.end, preemptible=run.preemptible)
    facts = RunFacts(job, started_at=0.0, terms=terms)
    attempt, cluster = AttemptId(job << 16 | 1), small.node(run.node).cluster
    return Holding(attempt, QueueName("other"), cluster, (_task(small, run),), facts)
