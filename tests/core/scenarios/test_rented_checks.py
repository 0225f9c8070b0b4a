"""What is true of rented machines beside the cycle: shares, the check before a commit, answers."""

from dataclasses import replace

import numpy as np
import pytest

from atoll.core.engine.explain import explain
from atoll.core.engine.trial import try_out
from atoll.core.engine.verify import refused, verify
from atoll.core.model.burst import InstanceState
from atoll.core.model.errors import DomainError
from atoll.core.model.ids import ClusterName, JobId, QueueName
from atoll.core.model.inventory import Cluster, ClusterState
from atoll.core.model.plan import Plan
from atoll.core.model.reason import ReasonCode
from atoll.core.policies.registry import policies
from tests.core.rented_worlds import ANYBODY, Shard, job, machine, places

BOOTING, READY, DRAINING = (
    InstanceState.BOOTING,
    InstanceState.READY,
    InstanceState.DRAINING,
)


def test_shares_are_of_what_there_is_without_renting() -> None:
    shard = Shard()
    before = shard.world.freeze(0.0).shares
    shard.rent(machine(1))
    shard.submit(job(1), job(2))
    shard.at(1.0)
    assert shard.where(2) == "burst-1"
    after = shard.world.freeze(1.0)
    assert np.array_equal(before.capacity, after.shares.capacity)
    assert after.shares.held[0, 2:].sum() == 200 * 56


def test_the_check_before_a_commit_refuses_what_may_not_be() -> None:
    shard = Shard(nodes=0)
    shard.rent(machine(1))
    shard.submit(job(1))
    made, ledger = shard.cycle(1.0), shard.world.ledger
    shard.world.set_burst_policies([replace(ANYBODY, killed=True)])
    assert "renting is switched off" in refused(made.placements, ledger)[JobId(1)]
    shard.world.set_burst_policies([ANYBODY])
    shard.world.put_rentals([machine(1, DRAINING)])
    assert "takes no work" in refused(made.placements, ledger)[JobId(1)]
    shard.world.put_rentals([machine(1, BOOTING, jobs=(JobId(2),))])
    assert "is kept for others" in refused(made.placements, ledger)[JobId(1)]


def test_the_check_before_a_commit_refuses_holds_for_others() -> None:
    shard = Shard(nodes=0)
    shard.submit(job(1))
    shard.rent(machine(1, BOOTING, jobs=(JobId(1),)))
    made = shard.cycle(1.0)
    wrong = Plan(nominations=tuple(replace(n, job=JobId(7)) for n in made.nominations))
    with pytest.raises(DomainError, match="is not rented for job 7"):
        verify(wrong, shard.world.ledger)


def test_a_snapshot_stays_as_it_was() -> None:
    shard = Shard(nodes=0)
    shard.rent(machine(1))
    snapshot = shard.world.freeze(1.0)
    shard.world.put_rentals([machine(1, DRAINING), machine(2)])
    shard.world.set_burst_policies([])
    assert [r.state for r in snapshot.rentals.values] == [READY]
    assert snapshot.rentals.not_allowed(0, QueueName("a"), job(1).request) == ""


def test_a_forgotten_machine_leaves_nothing_behind() -> None:
    shard = Shard()
    shard.rent(machine(1))
    shard.world.put_rentals([machine(1, InstanceState.TERMINATED)])
    shard.submit(job(1), job(2))
    assert places(shard.at(1.0)) == {1: "c1"}
    shard.world.forget_rental(ClusterName("burst-1"))
    assert not shard.world.rentals
    assert places(shard.at(2.0)) == {}
    assert shard.world.freeze(3.0).shares.capacity[0] == 8000


def test_nobody_is_told_of_a_machine_that_was_forgotten() -> None:
    shard = Shard()
    shard.rent(machine(1))
    shard.submit(job(1))
    shard.at(1.0)
    shard.world.set_clusters([Cluster(ClusterName("burst-1"), state=ClusterState.RETIRED)])
    shard.world.forget_rental(ClusterName("burst-1"))
    found = explain(shard.world.look(2.0), job(9), policies(), now=2.0)
    assert [tally.cluster for tally in found.tallies] == ["c1"]
    assert [reason.code for reason in found.reasons] == [ReasonCode.DEVICES_SHORT]


def test_people_are_told_of_a_machine_that_they_could_use() -> None:
    shard = Shard(nodes=0)
    shard.rent(machine(1))
    look, wanted = shard.world.look(1.0), job(9)
    assert explain(look, wanted, policies(), now=1.0).fits_now
    rng = np.random.default_rng(0)
    assert try_out(look, wanted, policies(), now=1.0, rng=rng).cluster == "burst-1"
    may_not = job(9, burst=False)
    found = explain(look, may_not, policies(), now=1.0)
    assert (found.fits_now, found.reasons[0].code) == (False, ReasonCode.RENTED)
    assert dict(found.tallies[0].counts) == {"RENTED": 1}
    assert try_out(look, may_not, policies(), now=1.0, rng=rng).cluster is None


def test_the_check_before_a_commit_knows_what_a_job_may_cost() -> None:
    shard = Shard(nodes=0)
    shard.rent(machine(1))
    free = job(1)
    shard.submit(free)
    made, ledger = shard.cycle(1.0), shard.world.ledger
    tight = replace(free.request, burst_max_cost=1)
    (placement,) = made.placements
    wrong = placement._replace(request=tight)
    assert "without a time limit" in refused([wrong], ledger)[JobId(1)]
    shard.world.put_rentals([machine(1, jobs=(JobId(1),))])
    assert refused([wrong], ledger) == {}
