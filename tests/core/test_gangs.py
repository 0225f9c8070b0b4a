"""A gang that fits is found: compared with a search through everything."""

from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from atoll.core.engine.verify import verify
from atoll.core.model.inventory import Node
from atoll.core.model.plan import GangRequest, GroupRequest
from atoll.core.model.resources import DeviceRequest, TaskShape
from tests.core.worlds import GIB, planned, simple_job, simple_nodes, simple_world

Amounts = tuple[int, int, int]
"""Cores, GiB, devices."""

OFFERS = st.tuples(st.integers(2, 12), st.integers(2, 12), st.integers(0, 4))
GROUPS = st.tuples(
    st.integers(1, 3), st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2))
)


@given(st.lists(OFFERS, min_size=1, max_size=4), st.lists(GROUPS, min_size=2, max_size=4))
@settings(max_examples=200)
def test_a_small_gang_is_placed_exactly_when_there_is_a_way(
    offers: list[Amounts], groups: list[tuple[int, Amounts]]
) -> None:
    tasks = [amounts for count, amounts in groups for _ in range(count)]
    # Sums that cannot fit are not worth a search by hand.
    assume(all(sum(t[i] for t in tasks) <= sum(o[i] for o in offers) for i in range(3)))
    request = GangRequest(tuple(GroupRequest(n, n, (shape(each),)) for n, each in groups))
    world = simple_world([node(i, o) for i, o in enumerate(offers, 1)], [simple_job(1, request)])
    made = planned(world.freeze(1.0))
    verify(made, world.ledger)
    assert bool(made.placements) == fits(tuple(offers), sorted(tasks, reverse=True), set())


def fits(free: tuple[Amounts, ...], tasks: list[Amounts], dead: set[object]) -> bool:
    if not tasks:
        return True
    key = (tuple(sorted(free)), len(tasks))
    if key in dead:
        return False
    need = tasks[0]
    for at, have in enumerate(free):
        left = tuple(h - n for h, n in zip(have, need, strict=True))
        if min(left) >= 0 and fits((*free[:at], left, *free[at + 1 :]), tasks[1:], dead):  # type: ignore[arg-type]
            return True
    dead.add(key)
    return False


def node(number: int, offer: Amounts) -> Node:
    cores, gib, devices = offer
    made = simple_nodes(number, cpu=cores, gpus=devices)[number - 1]
    return replace(made, inventory=replace(made.inventory, memory_bytes=gib * GIB))


def shape(amounts: Amounts) -> TaskShape:
    cores, gib, devices = amounts
    device = DeviceRequest("H100", devices) if devices else None
    return TaskShape(cores * 1000, gib * GIB, device)
