"""What could never run is refused with numbers; what could is let through."""

from dataclasses import replace

import pytest
from hypothesis import given

from atoll.core.engine.capacity import CapacitySummary, fits_ever
from atoll.core.model.ids import ClusterName
from atoll.core.model.inventory import Cluster, ClusterState, Device, Node
from atoll.core.model.plan import GangRequest, GroupRequest
from atoll.core.model.reason import ReasonCode
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.model.spec import Topology
from tests.core.worlds import GB, GIB, Given, cpus, givens, planned, simple_nodes, single, world_of

C1 = Cluster(ClusterName("c1"))


def capacity(nodes: list[Node], *clusters: Cluster) -> CapacitySummary:
    return CapacitySummary.of(nodes, clusters or (C1,))


def with_rack(node: Node, rack: str) -> Node:
    return replace(node, inventory=replace(node.inventory, domains=(("rack", rack),)))


@pytest.mark.parametrize(
    ("shape", "code", "needed", "available"),
    [
        (TaskShape(9000, 0), ReasonCode.CPU_SHORT, 9000, 8000),
        (TaskShape(0, 65 * GIB), ReasonCode.MEMORY_SHORT, 65 * GIB, 64 * GIB),
        (TaskShape(0, 0, DeviceRequest("H100", 5)), ReasonCode.DEVICES_SHORT, 5, 4),
        (TaskShape(0, 0, DeviceRequest("B200", 1)), ReasonCode.DEVICE_KIND_ABSENT, 0, 0),
        (
            TaskShape(0, 0, DeviceRequest("H100", 1, profile="1g.10gb")),
            ReasonCode.DEVICE_KIND_ABSENT,
            0,
            0,
        ),
        (TaskShape(0, 0, labels=(("zone", "a"),)), ReasonCode.LABELS_MISMATCH, 0, 0),
        (
            TaskShape(0, 0, DeviceRequest("", 1, blocks=0, memory_bytes=81 * GB)),
            ReasonCode.DEVICES_SHORT,
            0,
            0,
        ),
    ],
    ids=lambda value: value.value if isinstance(value, ReasonCode) else "",
)
def test_a_task_that_no_node_holds_is_refused_with_the_shortfall(
    shape: TaskShape, code: ReasonCode, needed: int, available: int
) -> None:
    found = fits_ever(capacity(simple_nodes(3, gpus=4)), single(shape))
    assert [(r.code, r.needed, r.available, r.count) for r in found] == [
        (code, needed, available, 3)
    ]


def test_a_gang_that_is_too_wide_is_refused_with_what_the_largest_cluster_has() -> None:
    shape = TaskShape(1000, 0, DeviceRequest("H100", 8))
    nodes = simple_nodes(18, gpus=8)
    more = [replace(n, id=n.id + 100, cluster=ClusterName("c2")) for n in simple_nodes(5, gpus=8)]  # type: ignore[arg-type]
    both = capacity(nodes + more, C1, Cluster(ClusterName("c2")))
    found = fits_ever(both, GangRequest((GroupRequest(64, 64, (shape,)),)))
    assert [(r.code, r.needed, r.available) for r in found] == [
        (ReasonCode.GANG_TOO_WIDE, 64, 18),
        (ReasonCode.GANG_TOO_WIDE, 64, 5),
    ]
    assert "8 H100" in found[0].message
    assert "c1" in found[0].message
    assert fits_ever(both, GangRequest((GroupRequest(64, 18, (shape,)),))) == ()


def test_a_required_rack_bounds_a_gang() -> None:
    nodes = [with_rack(n, f"r{n.id % 2}") for n in simple_nodes(5)]
    gang = GangRequest((GroupRequest(4, 4, (TaskShape(8000, 0),)),), Topology("rack"))
    found = fits_ever(capacity(nodes), gang)
    assert [(r.code, r.needed, r.available) for r in found] == [(ReasonCode.GANG_TOO_WIDE, 4, 3)]
    assert fits_ever(capacity(nodes), replace(gang, topology=Topology("rack", False))) == ()


def test_an_alternative_that_fits_is_enough() -> None:
    shapes = (TaskShape(0, 0, DeviceRequest("B200", 1)), TaskShape(1000, 0))
    assert fits_ever(capacity(simple_nodes(1)), GangRequest((GroupRequest(1, 1, shapes),))) == ()


def test_what_is_down_or_cordoned_may_come_back() -> None:
    node = simple_nodes(1)[0]
    closed = replace(node, cordoned=True, inventory=replace(node.inventory, up=False))
    silent = replace(C1, state=ClusterState.SILENT)
    assert fits_ever(capacity([closed], silent), cpus(8)) == ()


def test_retired_clusters_and_absent_nodes_do_not_count() -> None:
    node = simple_nodes(1, cpu=64)[0]
    small = replace(simple_nodes(2)[1], cluster=ClusterName("c2"))
    clusters = (replace(C1, state=ClusterState.RETIRED), Cluster(ClusterName("c2")))
    assert fits_ever(capacity([node, small], *clusters), cpus(9))
    gone = replace(node, present=False)
    assert fits_ever(capacity([gone, *simple_nodes(3)[2:]]), cpus(9))


def test_a_guard_that_no_cluster_has_is_refused() -> None:
    found = fits_ever(capacity(simple_nodes(1)), replace(cpus(1), needs_guard=True))
    assert [r.code for r in found] == [ReasonCode.ON_LOST_UNSUPPORTED]


def test_before_any_node_is_known_nothing_is_refused() -> None:
    assert fits_ever(capacity([]), cpus(1000)) == ()


def test_slices_are_counted_by_what_a_device_can_be_cut_into() -> None:
    mig = tuple(Device(i, "H100", 80 * GB, mig=True) for i in range(2))
    node = simple_nodes(1)[0]
    known = capacity([replace(node, inventory=replace(node.inventory, devices=mig))])
    fits = {
        ("1g.10gb", 14): True,
        ("1g.10gb", 15): False,
        ("1g.10gb+me", 2): True,
        ("1g.10gb+me", 3): False,
        ("3g.40gb", 4): True,
        ("1g.5gb", 1): False,
    }
    for (profile, count), expected in fits.items():
        shape = TaskShape(0, 0, DeviceRequest("H100", count, profile=profile))
        assert (fits_ever(known, single(shape)) == ()) == expected


@given(givens())
def test_whatever_is_placed_could_have_been_known_to_fit(case: Given) -> None:
    summary = CapacitySummary.of(case.nodes, case.clusters)
    for placement in planned(world_of(case).freeze(1.0)).placements:
        assert fits_ever(summary, placement.request) == ()
