"""The ledger: what is taken can be given back, and nothing has two owners."""

import pytest

from atoll.core.model.errors import ErrorCode
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, QueueName, attempt_id
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.resources import DeviceGrant
from atoll.core.state.ledger import AlreadyTaken, Difference, Holding, Ledger, NotHeld
from atoll.core.state.mig import MEDIA_BIT
from atoll.core.state.node_table import NodeTable
from atoll.ports.store.common import Allocation
from tests.core.worlds import GIB, simple_nodes

C1 = ClusterName("c1")
Q = QueueName("q")


def attempt(job: int) -> AttemptId:
    return attempt_id(JobId(job), 1)


def held(number: int, node: int, *grants: DeviceGrant, cpu: int = 1000) -> Holding:
    task = TaskPlacement(0, 0, NodeId(node), f"n{node}", cpu, GIB, tuple(grants))
    return Holding(attempt(number), Q, C1, (task,))


def ledger(gpus: int = 2) -> Ledger:
    table = NodeTable()
    table.upsert(simple_nodes(2, gpus=gpus))
    return Ledger(table)


def rows(*holdings: Holding) -> list[Allocation]:
    made = []
    for holding in holdings:
        for task in holding.tasks:
            made.append(
                Allocation(
                    holding.attempt,
                    task.rank,
                    task.node,
                    cpu_milli=task.cpu_milli,
                    memory_bytes=task.memory_bytes,
                )
            )
            made.extend(
                Allocation(holding.attempt, task.rank, task.node, device=grant)
                for grant in task.devices
            )
    return made


def test_what_is_allocated_is_taken_from_what_is_free() -> None:
    books = ledger()
    books.allocate([held(1, 2, DeviceGrant(1, blocks=30))])
    nodes = books.table.nodes
    assert nodes.cpu_free.tolist() == [8000, 7000]
    assert nodes.memory_free.tolist() == [64 * GIB, 63 * GIB]
    assert nodes.blocks_free.tolist() == [[100, 100], [100, 70]]


def test_a_slice_takes_its_bits_and_its_media_engine() -> None:
    books = ledger()
    grant = DeviceGrant(0, slice_mask=0b1000000, profile="1g.10gb+me")
    books.allocate([held(1, 1, grant)])
    assert books.table.nodes.slices[0, 0] == 0b1000000 | MEDIA_BIT
    books.release([attempt(1)])
    assert books.table.nodes.slices[0, 0] == 0


def test_the_same_allocation_again_changes_nothing() -> None:
    books = ledger()
    one = held(1, 1, DeviceGrant(0, blocks=100))
    assert books.allocate([one]) == (one,)
    assert books.allocate([one]) == ()
    assert books.table.nodes.cpu_free[0] == 7000


@pytest.mark.parametrize(
    "second",
    [
        held(2, 1, DeviceGrant(0, blocks=51)),
        held(2, 1, DeviceGrant(0, slice_mask=1, profile="1g.10gb")),
        held(1, 1, DeviceGrant(1, blocks=50)),
    ],
    ids=["more blocks than there are", "slices of a device in blocks", "the attempt holds others"],
)
def test_a_second_owner_is_refused_and_nothing_is_taken(second: Holding) -> None:
    books = ledger()
    books.allocate([held(1, 1, DeviceGrant(0, blocks=50))])
    before = books.table.nodes.blocks_free.tolist(), books.table.nodes.cpu_free.tolist()
    with pytest.raises(AlreadyTaken) as error:
        books.allocate([held(3, 2, DeviceGrant(0, blocks=100)), second])
    assert error.value.code is ErrorCode.PLAN_INVALID
    assert (books.table.nodes.blocks_free.tolist(), books.table.nodes.cpu_free.tolist()) == before
    assert list(books.holdings) == [attempt(1)]


def test_overlapping_slices_are_refused_and_disjoint_ones_are_not() -> None:
    books = ledger()
    books.allocate([held(1, 1, DeviceGrant(0, slice_mask=0b11, profile="2g.20gb"))])
    books.allocate([held(2, 1, DeviceGrant(0, slice_mask=0b1100, profile="2g.20gb"))])
    with pytest.raises(AlreadyTaken):
        books.allocate([held(3, 1, DeviceGrant(0, slice_mask=0b10, profile="1g.10gb"))])


def test_what_is_not_held_cannot_be_released() -> None:
    books = ledger()
    books.allocate([held(1, 1)])
    with pytest.raises(NotHeld):
        books.release([AttemptId(99)])
    books.release([attempt(1)])
    with pytest.raises(NotHeld):
        books.release([attempt(1)])


def test_a_shrinking_inventory_leaves_less_than_nothing() -> None:
    books = ledger()
    books.allocate([held(1, 1, DeviceGrant(1, blocks=100), cpu=8000)])
    books.table.upsert([*simple_nodes(1, cpu=4, gpus=1)])
    assert books.table.nodes.cpu_free[0] == -4000
    assert books.table.nodes.blocks_free[0].tolist() == [100, -100]
    books.release([attempt(1)])
    assert books.table.nodes.cpu_free[0] == 4000
    assert books.table.nodes.blocks_free[0].tolist() == [100, 0]


def test_an_allocation_on_an_unknown_node_counts_once_the_node_is_known() -> None:
    books = ledger()
    books.allocate([held(1, 3, DeviceGrant(3, blocks=100))])
    assert books.table.nodes.cpu_free[2] == -1000
    books.table.upsert(simple_nodes(3, gpus=4)[2:])
    assert books.table.nodes.cpu_free[2] == 7000
    assert books.table.nodes.blocks_free[2].tolist() == [100, 100, 100, 0]


def test_ledger_and_rows_agree_after_allocations() -> None:
    books = ledger()
    both = [held(1, 1, DeviceGrant(0, blocks=100)), held(2, 2, DeviceGrant(1, blocks=30))]
    books.allocate(both)
    assert books.differences(rows(*both)) == ()


def test_a_difference_is_told_with_both_numbers() -> None:
    books = ledger()
    books.allocate([held(1, 1, DeviceGrant(0, blocks=100))])
    other = held(1, 1, DeviceGrant(0, blocks=60))
    assert books.differences(rows(other)) == (
        Difference(attempt(1), NodeId(1), "device 0", 100, 60),
    )


def test_missing_and_surplus_rows_are_differences() -> None:
    books = ledger()
    books.allocate([held(1, 1)])
    found = books.differences(rows(held(2, 2)))
    assert [(d.attempt, d.what, d.ledger, d.rows) for d in found] == [
        (attempt(1), "cpu_milli", 1000, 0),
        (attempt(1), "memory_bytes", GIB, 0),
        (attempt(2), "cpu_milli", 0, 1000),
        (attempt(2), "memory_bytes", 0, GIB),
    ]
