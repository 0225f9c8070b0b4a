"""A few nodes of eight devices, and short ways to ask a calendar about them."""

from dataclasses import replace

from atoll.core.engine.bookings.answers import Accepted, Booked, Refused, Span
from atoll.core.engine.bookings.calendar import Calendar
from atoll.core.model.booking import OccurrenceId, Owners
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, QueueName
from atoll.core.model.inventory import Cluster, Device, Node, NodeInventory
from atoll.core.model.plan import RunFacts, RunTerms, TaskPlacement
from atoll.core.model.reservation import (
    Amount,
    Parts,
    ReservationId,
    ReservationSpec,
    What,
    When,
)
from atoll.core.model.resources import DeviceGrant, DeviceRequest
from atoll.core.state.ledger import Holding
from atoll.core.state.world import World

GIB = 1 << 30
HOUR = 3_600.0
WEST, EAST = ClusterName("west"), ClusterName("east")
NLP, VISION = QueueName("nlp"), QueueName("vision")


def node(number: int, cluster: ClusterName = WEST, **given: object) -> Node:
    """Eight H100; two nodes to a rack."""
    devices = tuple(Device(index, "H100", 80 * GIB) for index in range(8))
    inventory = NodeInventory(
        f"n{number}", 64_000, 512 * GIB, devices, domains=(("rack", f"r{(number - 1) // 2}"),)
    )
    changed = {key: given.pop(key) for key in ("up", "labels", "devices") if key in given}
    inventory = replace(inventory, **changed)  # type: ignore[arg-type]
    return Node(NodeId(number), cluster, inventory, **given)  # type: ignore[arg-type]


def world(*nodes: Node) -> World:
    made = World()
    made.set_clusters([Cluster(name, levels=("rack",)) for name in (WEST, EAST)])
    made.upsert_nodes(nodes or [node(1), node(2), node(3), node(4)])
    return made


def run(made: World, number: int, on: int, *, devices: int = 8, **terms: object) -> None:
    """A run of the vision queue on the first devices of a node, started an hour ago."""
    grants = tuple(DeviceGrant(index, 100) for index in range(devices))
    cpu, memory = 8_000 * devices, 64 * GIB * devices
    task = TaskPlacement(0, 0, NodeId(on), f"n{on}", cpu, memory, grants)
    queue = terms.pop("queue", VISION)
    facts = RunFacts(JobId(number), started_at=-HOUR, terms=RunTerms(**terms))  # type: ignore[arg-type]
    attempt = AttemptId(number << 16 | 1)
    made.add_allocations([Holding(attempt, queue, WEST, (task,), facts)])  # type: ignore[arg-type]


def calendar(made: World | None = None, **given: object) -> Calendar:
    return Calendar((made or world()).look(0.0), **given)  # type: ignore[arg-type]


def h100(units: int, devices: int = 8, **given: object) -> What:
    return What(amounts=(Amount(DeviceRequest("H100", devices), units),), **given)  # type: ignore[arg-type]


def spec(what: What, name: str = "b", **given: object) -> ReservationSpec:
    plain = ReservationSpec(name, what, When(HOUR, start_at=HOUR), Owners(queues=(NLP,)))
    return replace(plain, **given)  # type: ignore[arg-type]


def ask(
    at: Calendar, wanted: ReservationSpec, *spans: tuple[float, float], now: float = 0.0
) -> Accepted | Refused:
    return at.accept(wanted, [Span(a * HOUR, b * HOUR) for a, b in spans], now=now)


def book(
    at: Calendar, number: int, wanted: ReservationSpec, span: tuple[float, float], **given: object
) -> Booked:
    answer = ask(at, wanted, span)
    assert isinstance(answer, Accepted), answer
    placed = answer.placed[0]
    made = Booked(
        OccurrenceId(number), ReservationId(number), wanted.name, placed.start, placed.end,
        placed.parts, wanted.what, wanted.owners, priority=wanted.priority,
        pinned=wanted.pinned, flexible=wanted.when.flexible,
    )  # fmt: skip
    made = replace(made, **given)  # type: ignore[arg-type]
    at.add(made)
    return made


def names(parts: Parts) -> list[str]:
    return [f"{part.cluster}/{share.node_name}" for part in parts for share in part.shares]
