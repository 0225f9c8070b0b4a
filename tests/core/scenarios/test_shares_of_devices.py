"""Shares of devices by percent and by memory, on whole cards and on MIG slices."""

from collections import Counter

import pytest

from atoll.client.spec import parse_spec, to_proto
from atoll.core.engine.capacity import CapacitySummary, fits_ever
from atoll.core.engine.verify import refused
from atoll.core.model.errors import InvalidInput
from atoll.core.model.ids import ClusterName, NodeId
from atoll.core.model.inventory import Cluster, Device, Node, NodeInventory
from atoll.core.model.plan import GangRequest, PendingJob, Plan, request_of
from atoll.core.model.reason import ReasonCode
from atoll.wire.spec import spec_from_proto

from ..worlds import planned, simple_job, simple_world

MIB = 1 << 20
GIB = 1 << 30
CARD = 46_068 * MIB
H100 = 81_559 * MIB


def node(number: int, *devices: Device) -> Node:
    inventory = NodeInventory(f"n{number}", 64_000, 256 * GIB, devices)
    return Node(NodeId(number), ClusterName("c1"), inventory)


def asked(accelerator_memory: str, accelerators: str | None = None) -> GangRequest:
    """What a user's spec comes to."""
    resources = {"accelerator_memory": accelerator_memory, "memory": "1MiB", "cpus": "10m"}
    if accelerators:
        resources["accelerators"] = accelerators
    spec = parse_spec({"run": "true", "resources": resources})
    return request_of(spec_from_proto(to_proto(spec, now=0.0)))


def jobs(count: int, request: GangRequest) -> list[PendingJob]:
    return [simple_job(number, request) for number in range(1, count + 1)]


def grants(made: Plan) -> list[tuple[int, int, str]]:
    return [
        (grant.index, grant.blocks, grant.profile)
        for placement in made.placements
        for task in placement.tasks
        for grant in task.devices
    ]


def test_24_requests_of_2000_mib_on_cards_of_46068_mib_take_5_blocks_and_20_to_a_card() -> None:
    cards = [Device(index, "L40S", CARD) for index in range(2)]
    world = simple_world([node(1, *cards)], jobs(24, asked("2000MiB", "L40S")))
    made = planned(world.freeze(0.0))
    assert Counter(blocks for _, blocks, _ in grants(made)) == {5: 24}
    full = simple_world([node(1, *cards)], jobs(41, asked("2000MiB", "L40S")))
    assert Counter(index for index, _, _ in grants(planned(full.freeze(0.0)))) == {0: 20, 1: 20}
    assert refused(made.placements, world.ledger) == {}


def test_the_21st_request_waits_for_a_card() -> None:
    world = simple_world([node(1, Device(0, "L40S", CARD))], jobs(24, asked("2000MiB", "L40S")))
    made = planned(world.freeze(0.0))
    assert len(made.placements) == 20
    (waiting,) = made.waiting
    assert (waiting.jobs, waiting.reasons[0].code) == (4, ReasonCode.DEVICES_SHORT)


@pytest.mark.parametrize("share", ["0.1111", "0.111111111", "1/9"])
def test_nine_requests_of_a_ninth_are_refused_with_the_nearest_whole_percents(share: str) -> None:
    for _ in range(9):
        with pytest.raises(InvalidInput, match=r"whole percents: use 0\.11 or 0\.12"):
            parse_spec({"run": "true", "resources": {"accelerators": f"L40S:{share}"}})


def test_a_fraction_that_is_whole_percents_is_a_share() -> None:
    spec = parse_spec({"run": "true", "resources": {"accelerators": "L40S:1/4"}})
    (shape,) = to_proto(spec, now=0.0).groups[0].shapes
    assert (shape.device.count, shape.device.blocks) == (1, 25)


@pytest.mark.parametrize(
    ("memory", "profile"),
    [
        ("10GiB", "1g.10gb"),
        ("10GB", "1g.10gb"),
        ("11GiB", "1g.20gb"),
        ("40GiB", "3g.40gb"),
        ("80GiB", "7g.80gb"),
    ],
)
def test_a_request_equal_to_a_profiles_memory_fits_the_profile(memory: str, profile: str) -> None:
    for kind in ("H100", None):
        sliced = Device(0, "H100", H100, mig=True)
        world = simple_world([node(1, sliced)], jobs(1, asked(memory, kind)))
        made = planned(world.freeze(0.0))
        assert [name for _, _, name in grants(made)] == [profile]
        assert refused(made.placements, world.ledger) == {}


def test_seven_tasks_share_a_sliced_device() -> None:
    sliced = Device(0, "H100", H100, mig=True)
    world = simple_world([node(1, sliced)], jobs(9, asked("10GiB", "H100")))
    made = planned(world.freeze(0.0))
    assert [name for _, _, name in grants(made)] == ["1g.10gb"] * 7


def test_a_whole_card_is_taken_before_a_slice_is_cut() -> None:
    both = (Device(0, "H100", H100), Device(1, "H100", H100, mig=True))
    world = simple_world([node(1, *both)], jobs(1, asked("10GiB", "H100")))
    assert grants(planned(world.freeze(0.0))) == [(0, 13, "")]


def test_more_memory_than_any_profile_has_never_fits() -> None:
    request, sliced = asked("90GiB", "H100"), node(1, Device(0, "H100", H100, mig=True))
    capacity = CapacitySummary.of([sliced], [Cluster(ClusterName("c1"))])
    assert fits_ever(capacity, request)
    assert not fits_ever(capacity, asked("80GiB", "H100"))


def test_of_a_kind_without_slices_only_shares_are_tried() -> None:
    (group,) = asked("10GiB", "L40S").groups
    assert [shape.device and shape.device.profile for shape in group.shapes] == [""]
