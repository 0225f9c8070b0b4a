"""Rented machines in the cycle: last, held while they boot, left before they end."""

from dataclasses import replace

import pytest

from atoll.core.engine.cycle import CycleLimits
from atoll.core.engine.rented import passes
from atoll.core.model.burst import BurstPolicy, InstanceState
from atoll.core.model.ids import ClusterName, JobId, QueueName, Tenant, job_of
from atoll.core.model.inventory import Cluster, ClusterState
from atoll.core.model.job import Queue
from atoll.core.model.lifecycle import StopCause
from atoll.core.model.reason import ReasonCode
from atoll.core.model.spec import AntiAffinity
from tests.core.rented_worlds import ANYBODY, Shard, job, machine, node_of, places

BOOTING, READY, DRAINING = (
    InstanceState.BOOTING,
    InstanceState.READY,
    InstanceState.DRAINING,
)


def test_what_there_is_without_renting_goes_first_then_the_cheapest_machine() -> None:
    shard = Shard()
    shard.rent(machine(2), machine(1))
    shard.submit(job(1), job(2), job(3), job(4))
    made = shard.at(1.0)
    assert places(made) == {1: "c1", 2: "burst-1", 3: "burst-2"}
    assert [w.jobs for w in made.waiting] == [1]


def test_nobody_gets_a_machine_who_may_not_use_it_and_is_told_why() -> None:
    shard = Shard(nodes=0)
    shard.world.set_burst_policies([ANYBODY, BurstPolicy(QueueName("b"), allowed=False)])
    shard.rent(machine(1, queue=QueueName("a.x")))
    shard.submit(job(1, burst=False, queue=QueueName("a.x")), job(2), job(3, queue=QueueName("b")))
    made = shard.at(1.0)
    assert not made.placements
    told = {(str(w.queue), w.request.burst): w.reasons[0] for w in made.waiting}
    assert {each.code for each in told.values()} == {ReasonCode.RENTED}
    assert "it may not run on rented machines" in told["a.x", False].message
    assert "it is rented for queue a.x" in told["a", True].message
    assert "it is rented for queue a.x" in told["b", True].message
    shard.rent(machine(1))
    made = shard.at(2.0)
    assert places(made) == {2: "burst-1"}
    told = {(str(w.queue), w.request.burst): w.reasons[0] for w in made.waiting}
    assert "the policy of queue b does not allow renting" in told["b", True].message


def test_a_job_below_the_queue_that_pays_may_use_its_machine() -> None:
    shard = Shard(nodes=0)
    shard.rent(machine(1, queue=QueueName("a")))
    shard.submit(job(1, queue=QueueName("a.x.y")))
    assert places(shard.at(1.0)) == {1: "burst-1"}


def test_a_gang_stays_inside_one_machine_and_charges_its_queue() -> None:
    shard = Shard(nodes=0)
    shard.world.set_queues([Queue(QueueName("a"), Tenant(""), device_limit=200)])
    shard.rent(machine(1), machine(2))
    shard.submit(job(1, 1, tasks=3), job(2, 1, tasks=2), job(3, 1))
    made = shard.at(1.0)
    assert places(made) == {2: "burst-1"}
    codes = {w.request.groups[0].count: w.reasons[0].code for w in made.waiting}
    assert codes[1] is ReasonCode.QUEUE_LIMIT


def test_local_capacity_that_frees_first_keeps_the_job_at_home() -> None:
    shard = Shard()
    shard.submit(job(1))
    assert places(shard.at(1.0)) == {1: "c1"}
    shard.submit(job(2), job(3))
    shard.rent(machine(1, BOOTING, jobs=(JobId(2),)))
    made = shard.at(2.0)
    assert not made.placements
    (nomination,) = made.nominations
    assert (nomination.job, nomination.cluster, nomination.until) == (2, "burst-1", 900.0)
    assert nomination.victims == ()
    shard.end(1)
    assert places(shard.at(3.0)) == {2: "c1"}
    assert shard.held() == {}


def test_the_job_starts_there_as_soon_as_the_machine_has_joined() -> None:
    shard = Shard(nodes=0)
    shard.submit(job(2), job(3))
    shard.rent(machine(1, BOOTING, jobs=(JobId(3),)))
    shard.at(1.0)
    assert shard.held() == {3: "burst-1"}
    assert not shard.at(2.0).nominations
    shard.rent(machine(1, BOOTING, jobs=(JobId(3),)), joined=True)
    made = shard.at(300.0)
    assert places(made) == {3: "burst-1"}
    assert sum(w.jobs for w in made.waiting) == 1
    assert shard.held() == {}


def test_what_is_held_is_not_charged_and_nobody_is_stopped_for_who_has_it() -> None:
    shard = Shard()
    shard.world.set_queues([Queue(QueueName("a"), Tenant(""), device_limit=400)])
    shard.submit(job(1))
    shard.at(1.0)
    shard.submit(job(2, priority=9), job(3, queue=QueueName("b")))
    shard.rent(machine(1, BOOTING, jobs=(JobId(2),)))
    made = shard.at(2.0)
    assert (made.evictions, [n.job for n in made.nominations]) == ((), [2])
    assert not shard.at(3.0).evictions
    shard.world.reconsider()
    snapshot = shard.world.freeze(4.0)
    assert snapshot.limits.used.tolist() == [200 * 56]
    assert {2, 3} <= set(snapshot.queue.job.tolist())


def test_several_jobs_hold_what_fits_of_one_machine_in_their_order() -> None:
    shard = Shard(nodes=0)
    shard.submit(job(1, 1), job(2, 1, priority=5), job(3, 2, priority=1), job(4, 1))
    shard.rent(machine(1, BOOTING, jobs=tuple(map(JobId, (1, 2, 3, 4)))))
    shard.at(1.0)
    assert shard.held() == {1: "burst-1", 2: "burst-1"}


def test_jobs_that_are_kept_apart_do_not_hold_one_machine() -> None:
    shard = Shard(nodes=0)
    apart = [
        replace(each, request=replace(each.request, anti_affinity=AntiAffinity("x")))
        for each in (job(1, 1), job(2, 1))
    ]
    shard.submit(*apart)
    shard.rent(machine(1, BOOTING, jobs=(JobId(1), JobId(2))))
    shard.at(1.0)
    assert shard.held() == {1: "burst-1"}
    shard.at(2.0)
    assert shard.held() == {1: "burst-1"}


@pytest.mark.parametrize("state", [DRAINING, InstanceState.TERMINATING, InstanceState.FAILED])
def test_the_hold_ends_with_the_machine(state: InstanceState) -> None:
    shard = Shard(nodes=0)
    shard.submit(job(2))
    shard.rent(machine(1, BOOTING, jobs=(JobId(2),)))
    shard.at(1.0)
    shard.rent(machine(1, state, jobs=(JobId(2),)))
    assert shard.held() == {}
    made = shard.at(2.0)
    assert (made.nominations, made.placements) == ((), ())


def test_the_hold_ends_when_the_machine_is_given_up_and_begins_again_when_it_is_not() -> None:
    shard = Shard(nodes=0)
    shard.submit(job(2))
    late = machine(1, BOOTING, jobs=(JobId(2),))
    shard.rent(late)
    shard.at(1.0)
    assert shard.world.next_wakeup(1.0) == 900.0
    assert not shard.at(900.0).nominations
    assert shard.held() == {}
    shard.rent(replace(late, give_up_at=1200.0))
    assert shard.world.has_work(901.0)
    shard.at(901.0)
    assert shard.world.ledger.nominations[JobId(2)].until == 1200.0


def test_a_machine_that_joins_smaller_than_it_was_offered_is_free_for_others() -> None:
    shard = Shard(nodes=0)
    shard.submit(job(1), job(2, 1))
    rental = machine(1, BOOTING, jobs=(JobId(1),))
    shard.rent(rental)
    shard.at(1.0)
    ready = replace(rental, state=READY)
    shard.rent(ready)
    node = node_of(ready, joined=True)
    smaller = replace(node.inventory, devices=node.inventory.devices[:1])
    shard.world.upsert_nodes([replace(node, inventory=smaller, revision=3)])
    made = shard.at(2.0)
    assert (made.released, made.placements) == ((1,), ())
    assert places(shard.at(3.0)) == {2: "burst-1"}


def test_a_gang_starts_on_the_machines_of_one_instance_never_on_those_of_two() -> None:
    shard = Shard(nodes=0)
    shard.submit(job(1, tasks=2))
    shard.rent(machine(1), machine(2))
    assert not shard.at(1.0).placements
    shard.rent(machine(3, nodes=2))
    (placement,) = shard.at(2.0).placements
    assert placement.cluster == "burst-3"
    assert [task.node_name for task in placement.tasks] == ["burst-3-0", "burst-3-1"]


def test_machines_of_one_instance_are_held_for_a_gang_while_they_boot() -> None:
    shard = Shard(nodes=0)
    shard.submit(job(1, tasks=2), job(2))
    shard.rent(machine(1, BOOTING, nodes=3, jobs=(JobId(1), JobId(2))))
    held = {n.job: {t.node_name for t in n.tasks} for n in shard.at(1.0).nominations}
    assert sorted(map(len, held.values())) == [1, 2]
    assert len(set().union(*held.values())) == 3
    shard.rent(machine(1, READY, nodes=3, jobs=(JobId(1), JobId(2))))
    assert places(shard.at(2.0)) == {1: "burst-1", 2: "burst-1"}
    shard.rent(machine(1, DRAINING, nodes=3, stop_at=50.0), joined=True)
    assert {job_of(each.attempt) for each in shard.at(50.0).evictions} == {1, 2}


def test_a_job_at_its_limit_does_not_keep_a_machine_that_has_joined() -> None:
    shard = Shard(nodes=0)
    shard.submit(job(1))
    shard.rent(machine(1, BOOTING, jobs=(JobId(1),)))
    shard.at(1.0)
    shard.world.set_queues([Queue(QueueName("a"), Tenant(""), device_limit=100)])
    shard.rent(machine(1, READY, jobs=(JobId(1),)))
    assert shard.at(2.0).released == (1,)
    shard.submit(job(2, queue=QueueName("b")))
    assert places(shard.at(3.0)) == {2: "burst-1"}


def test_a_machine_that_is_given_back_takes_nothing_and_is_left_in_time() -> None:
    shard = Shard(nodes=0)
    shard.submit(job(1, firm=True))
    shard.rent(machine(1))
    assert places(shard.at(1.0)) == {1: "burst-1"}
    shard.submit(job(2, 1))
    shard.rent(machine(1, DRAINING, stop_at=50.0), joined=True)
    made = shard.at(10.0)
    assert (made.placements, made.evictions) == ((), ())
    assert shard.world.next_wakeup(10.0) == 50.0
    assert shard.world.has_work(50.0)
    (eviction,) = shard.at(50.0).evictions
    assert (job_of(eviction.attempt), eviction.cause) == (1, StopCause.DRAIN)
    assert not shard.world.has_work(51.0)
    assert not shard.at(52.0).evictions


def test_a_stop_that_was_not_heard_is_told_again() -> None:
    shard = Shard(nodes=0)
    shard.submit(job(1))
    shard.rent(machine(1))
    shard.at(1.0)
    shard.rent(machine(1, DRAINING, stop_at=5.0), joined=True)
    assert shard.cycle(5.0).evictions == shard.cycle(6.0).evictions
    assert shard.world.has_work(6.0)


@pytest.mark.parametrize("state", [ClusterState.SILENT, ClusterState.BOOTING])
def test_nothing_starts_on_a_machine_that_does_not_answer(state: ClusterState) -> None:
    shard = Shard(nodes=0)
    shard.rent(machine(1))
    shard.world.set_clusters([Cluster(ClusterName("burst-1"), state=state, inventory_number=1)])
    shard.submit(job(1))
    made = shard.at(1.0)
    assert not made.placements
    assert made.waiting[0].reasons[0].code is ReasonCode.RENTED


def test_nothing_starts_before_the_agent_has_said_what_there_is() -> None:
    shard = Shard(nodes=0)
    shard.rent(machine(1), joined=False)
    shard.world.set_clusters([Cluster(ClusterName("burst-1"))])
    shard.submit(job(1))
    assert not shard.at(1.0).placements
    shard.world.set_clusters([Cluster(ClusterName("burst-1"), inventory_number=1)])
    assert shard.world.has_work(2.0)
    assert places(shard.at(2.0)) == {1: "burst-1"}


def test_who_had_no_turn_is_tried_in_the_next_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "MOST_TRIED", 1)
    shard = Shard(nodes=0)
    shard.rent(machine(1))
    shard.submit(job(1, 3), job(2, 1))
    made = shard.at(1.0)
    assert [w.again for w in made.waiting] == [False, True]
    assert places(shard.at(2.0)) == {2: "burst-1"}


def test_no_more_is_placed_in_a_cycle_than_it_may() -> None:
    shard = Shard(nodes=1, limits=CycleLimits(max_placements=2))
    shard.rent(machine(1), machine(2))
    shard.submit(*(job(n) for n in range(1, 4)))
    assert places(shard.at(1.0)) == {1: "c1", 2: "burst-1"}
    assert places(shard.at(2.0)) == {3: "burst-2"}
