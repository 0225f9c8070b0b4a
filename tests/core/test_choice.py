"""Where a job could run: what each place costs in time and money, and which is best."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from atoll.core.engine.choice.asks import asks_of
from atoll.core.engine.choice.candidates import Asked, candidates
from atoll.core.engine.choice.places import price_hour
from atoll.core.engine.choice.scene import Renting, Scene
from atoll.core.engine.choice.wanting import Hope
from atoll.core.engine.choice.worth import delay_cost, dollars, hour_of, in_words
from atoll.core.engine.timeline.forecast import forecast
from atoll.core.model.burst import (
    MICROS,
    BurstPolicy,
    InstanceId,
    InstanceState,
    Market,
    Offer,
    Rental,
)
from atoll.core.model.burst_wants import Ask, Candidate, TaskAsk
from atoll.core.model.ids import ClusterName, JobId, NodeId, QueueName
from atoll.core.model.inventory import Avoidance, Cluster
from atoll.core.model.plan import GangRequest, GroupRequest, PendingJob, RunTerms
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.model.spec import Spread, Topology
from atoll.core.policies.registry import policies
from atoll.core.state.world import World
from tests.core.worlds import GIB, QUEUES, commit, planned, simple_job, simple_nodes

NORTH, SOUTH, RENTED = (ClusterName(name) for name in ("c1", "c2", "burst-3"))
HOUR, NOW = 3600.0, 1000.0
EVERYBODY = BurstPolicy(None, allowed=True, hour_of_delay=2 * MICROS)
OFFER = Offer(
    "cloud", "eu-1a", "eu-1", "gpu8", Market.SPOT, 64_000, 256 * GIB, "H100", 8,
    price=8 * MICROS, lead_s=360.0,
)  # fmt: skip


def gpus(count: int, *, tasks: int = 1) -> GangRequest:
    shape = TaskShape(1000, GIB, DeviceRequest("H100", count))
    return GangRequest((GroupRequest(tasks, tasks, (shape,)),), terms=RunTerms(HOUR))


def two(*, running: int = 2) -> World:
    """Two clusters of one node with 8 H100 each; runs of an hour fill them in turn."""
    world = World()
    world.set_clusters([Cluster(NORTH), Cluster(SOUTH)])
    (node,) = simple_nodes(1, gpus=8, cpu=64)
    world.upsert_nodes([node, replace(node, id=NodeId(2), cluster=SOUTH)])
    world.upsert_pending([simple_job(number, gpus(8)) for number in range(1, running + 1)])
    commit(world, planned(world.freeze(NOW)))
    for at, holding in enumerate([*world.ledger.holdings.values()]):
        assert holding.run is not None
        world.end_allocations([holding.attempt])
        begun = NOW - at * HOUR / 2
        world.add_allocations([holding._replace(run=holding.run._replace(started_at=begun))])
    return world


def found(
    world: World, pending: PendingJob, *offers: Offer, policy: BurstPolicy = EVERYBODY
) -> tuple[Candidate, ...]:
    world.upsert_pending([pending])
    world.set_burst_policies([policy])
    made = forecast(world.survey(NOW), policies(), rng=np.random.default_rng(0))
    point = made.of(pending)
    hope = Hope(point.start, point.start, point.cluster) if point else Hope()
    renting = Renting(offers, {policy.queue: policy})
    scene = Scene(world.look(NOW), world.run_times.freeze(), policies(), renting)
    return candidates(scene, Asked(pending, made.starts(pending), hope))


def whys(each: tuple[Candidate, ...]) -> Mapping[str, str]:
    return {candidate.offer or candidate.cluster: candidate.why for candidate in each}


def test_the_cluster_whose_run_ends_first_is_best() -> None:
    best, other = found(two(), simple_job(9, gpus(8)))
    starts = sorted([best.start_at - NOW, other.start_at - NOW])
    assert starts == [HOUR / 2, HOUR]
    assert best.start_at < other.start_at
    assert best.finish_at == best.start_at + HOUR
    assert best.delay_cost == round(8 * 2 * MICROS * 1.5)
    assert (best.price, best.total) == (0, best.delay_cost)
    assert best.why == "local in 30 min"


def test_a_slow_boot_makes_a_cluster_later() -> None:
    world = two(running=0)
    world.set_boots({NORTH: 300.0, SOUTH: 2.0})
    best, other = found(world, simple_job(9, gpus(8)))
    assert (best.cluster, best.why) == (SOUTH, "local now")
    assert other.why == "local now; jobs there take 5 min to begin"
    assert other.total > best.total


def test_a_cluster_that_refused_is_later_by_the_time_for_which_it_is_left_alone() -> None:
    world = two(running=0)
    world.set_avoidances([Avoidance(NORTH, None, "", 2, until=NOW + 120.0)])
    best, other = found(world, simple_job(9, gpus(8)))
    assert (best.cluster, other.start_at) == (SOUTH, NOW + 120.0)
    assert other.why == "local in 2 min: it refused such jobs, and gets none for 2 min"
    world.set_avoidances([])
    assert found(world, simple_job(9, gpus(8)))[1].total < other.total


def test_a_closed_cluster_is_named_if_it_could_run_the_job() -> None:
    world = two(running=0)
    world.set_clusters([Cluster(SOUTH, cordoned=True)])
    assert whys(found(world, simple_job(9, gpus(8)))) == {
        NORTH: "local now",
        SOUTH: "not now: the cluster is cordoned",
    }
    assert whys(found(world, simple_job(8, gpus(9)))) == {}


def test_offers_stand_beside_clusters() -> None:
    cheap = replace(OFFER, price=4 * MICROS)
    first, *rest = found(two(), simple_job(9, gpus(8)), cheap)
    assert (first.offer, first.price) == (OFFER.key, 4 * MICROS)
    assert first.why == "on spot in 6 min at $4.00/h, allowed by queue policy"
    assert first.total < rest[0].total
    assert found(two(), simple_job(9, gpus(8)), replace(OFFER, price=20 * MICROS))[-1].offer


def test_what_the_policy_forbids_is_last_and_says_so() -> None:
    policy = replace(EVERYBODY, queue=QUEUES[0], regions=("us-1",))
    *_, last = found(two(), simple_job(9, gpus(8)), OFFER, policy=policy)
    assert not last.allowed
    assert f"the policy of queue {QUEUES[0]} allows regions us-1, not eu-1" in last.why


def rental(state: InstanceState, **given: object) -> Rental:
    fields: dict[str, object] = {"ready_at": NOW + 240.0, "give_up_at": NOW + 1440.0, **given}
    return Rental(InstanceId(3), RENTED, state, OFFER, **fields)  # type: ignore[arg-type]


def with_rented(world: World, each: Rental) -> World:
    world.set_clusters([Cluster(RENTED, inventory_number=1)])
    world.put_rentals([each])
    (node,) = simple_nodes(1, gpus=8, cpu=64)
    world.upsert_nodes([replace(node, id=NodeId(3), cluster=RENTED, inventory_number=1)])
    return world


def test_a_machine_that_boots_for_the_job_is_held() -> None:
    world = with_rented(two(), rental(InstanceState.BOOTING, jobs=(JobId(9),)))
    told = whys(found(world, simple_job(9, gpus(8))))
    assert told[RENTED] == (
        "held on burst-3, which boots: starts in about 4 min; given up in 24 min if it has not come"
    )
    assert RENTED not in whys(found(world, simple_job(10, gpus(8))))


def test_a_rented_machine_costs_the_part_that_is_taken() -> None:
    world = with_rented(two(), rental(InstanceState.READY))
    each = {c.cluster: c for c in found(world, simple_job(9, gpus(2)))}
    assert each[RENTED].why == "rented already, now at $2.00/h, allowed by queue policy"
    assert each[RENTED].price == 2 * MICROS


def test_of_a_group_of_machines_a_gang_pays_those_that_it_takes() -> None:
    each = rental(InstanceState.READY)
    four = replace(each, offer=replace(each.offer, nodes=4, devices=8))
    ask = Ask("H100", 1600, 2000, 2 * GIB, (TaskAsk(2, 800, 1000, GIB),))
    assert price_hour(four, ask) == round(four.offer.price / 2)


def test_a_rented_machine_of_others_is_not_allowed() -> None:
    world = with_rented(two(), rental(InstanceState.READY, queue=QueueName("b")))
    (last,) = [c for c in found(world, simple_job(9, gpus(2))) if c.cluster == RENTED]
    assert (last.allowed, last.why) == (False, "not allowed: it is rented for queue b")


SHAPE = TaskShape(1000, GIB, DeviceRequest("H100", 1, 60))
WIDE = GroupRequest(3, 3, (SHAPE,))


@pytest.mark.parametrize(
    ("request_", "asks"),
    [
        (
            gpus(2, tasks=2),
            (Ask("H100", 400, 2000, 2 * GIB, (TaskAsk(2, 200, 1000, GIB),)),),
        ),
        (
            GangRequest((WIDE,)),
            (Ask("H100", 300, 3000, 3 * GIB, (TaskAsk(3, 100, 1000, GIB),)),),
        ),
        (GangRequest((replace(WIDE, count=1, min_count=1),)), (Ask("H100", 60, 1000, GIB),)),
        (replace(gpus(1), burst=False), ()),
        (replace(gpus(1), reservation="x"), ()),
        (replace(gpus(1), topology=Topology("rack")), ()),
        (GangRequest((replace(WIDE, spread=Spread("node", 1)),)), ()),
        (GangRequest((replace(WIDE, shapes=(replace(SHAPE, labels=(("a", "b"),)),)),)), ()),
    ],
)
def test_what_a_job_takes_of_an_instance(request_: GangRequest, asks: tuple[Ask, ...]) -> None:
    assert asks_of(request_) == asks


def test_times_and_money_are_said_briefly() -> None:
    words = [in_words(s) for s in (0, 40, 360, 3599, 11_400, 7200, 187_200)]
    assert words == ["0 s", "40 s", "6 min", "1 h", "3 h 10 min", "2 h", "2 d 4 h"]
    assert [dollars(m) for m in (0, 3_100_000, 1_234)] == ["$0.00", "$3.10", "$0.0012"]
    assert delay_cost(MICROS, now=10.0, until=10.0 + HOUR / 2) == MICROS // 2
    assert hour_of({}, QUEUES[0], (Ask("H100", 400),)) == 4 * MICROS
    assert hour_of({}, QUEUES[0], ()) == MICROS
