"""Preemption and reclaim: scenarios that went wrong elsewhere, each with the right outcome."""

from dataclasses import replace

import pytest

from atoll.core.model.plan import GangRequest, GroupRequest, RunTerms
from atoll.core.model.resources import DeviceGrant, DeviceRequest, TaskShape
from atoll.core.model.spec import AntiAffinity

from . import claims
from .claims import Shard, gpus, queue, stopped


def test_priority_stops_the_least_work_that_makes_room() -> None:
    shard = Shard(claims.nodes(2))
    old = shard.submit("a", gpus(8))
    shard.cycle()
    shard.now += 5000
    young = shard.submit("a", gpus(8))
    shard.cycle()
    high = shard.submit("a", gpus(8), priority=10)
    made = shard.cycle()
    assert (stopped(made), made.evictions[0].for_job) == ([young], high)
    assert [n.job for n in made.nominations] == [high]
    assert old in shard.running


def test_the_hold_is_for_the_job_alone_and_it_starts_there_when_its_victim_is_gone() -> None:
    shard = Shard(claims.nodes(1))
    victim = shard.submit("a", gpus(6))
    shard.cycle()
    high = shard.submit("a", gpus(8), priority=10)
    held = shard.cycle().nominations[0]
    small = shard.submit("b", gpus(1))
    assert worlds_placed(shard) == []
    assert shard.end_victims() == [victim]
    made = shard.cycle()
    assert [p.job for p in made.placements] == [high]
    assert made.placements[0].tasks == held.tasks
    assert not shard.world.ledger.nominations
    assert not made.evictions
    assert small not in shard.running


def test_two_queues_that_claim_at_once_do_not_count_one_victim_twice() -> None:
    queues = queue("a", 4), queue("b", 4), queue("c")
    shard = Shard(claims.nodes(1), queues)
    shard.submit("c", gpus(4))
    shard.submit("c", gpus(4))
    shard.cycle()
    first, second = shard.submit("a", gpus(4)), shard.submit("b", gpus(4))
    made = shard.cycle()
    assert len(made.evictions) == 2
    assert {e.for_job for e in made.evictions} == {first, second}
    shard.end_victims()
    shard.cycle()
    assert sorted(shard.running) == [first, second]


def test_one_victim_is_enough_for_two_claimants() -> None:
    shard = Shard(claims.nodes(1), (queue("a", 4), queue("b", 4), queue("c")))
    shard.submit("c", gpus(8))
    shard.cycle()
    first, second = shard.submit("a", gpus(4)), shard.submit("b", gpus(4))
    made = shard.cycle()
    assert len(made.evictions) == 1
    assert sorted(n.job for n in made.nominations) == [first, second]
    shard.end_victims()
    shard.cycle()
    assert sorted(shard.running) == [first, second]


def scattered(*, guarded: tuple[int, ...] = ()) -> Shard:
    """4 nodes of 8 with two 1-GPU jobs on each; those on `guarded` nodes may not be stopped."""
    shard = Shard(claims.nodes(4))
    for node in range(1, 5):
        for device in (0, 5):
            shard.put("a", node, device, terms=RunTerms(preemptible=node not in guarded))
    return shard


def test_a_job_for_a_whole_node_clears_one_node_of_scattered_jobs() -> None:
    shard = scattered()
    high = shard.submit("a", gpus(8), priority=10)
    made = shard.cycle()
    assert len(made.evictions) == 2
    shard.end_victims()
    shard.cycle()
    assert high in shard.running


def test_if_victims_do_not_make_it_fit_nobody_is_stopped_and_a_small_job_runs() -> None:
    shard = scattered(guarded=(1, 2, 3, 4))
    high = shard.submit("a", gpus(8), priority=10)
    small = shard.submit("a", gpus(1))
    made = shard.cycle()
    assert not made.evictions
    assert not made.nominations
    assert small in shard.running
    assert high not in shard.running


def test_only_the_node_whose_jobs_may_all_be_stopped_is_cleared() -> None:
    shard = scattered(guarded=(1, 2, 4))
    shard.submit("a", gpus(8), priority=10)
    made = shard.cycle()
    assert {task.node_name for n in made.nominations for task in n.tasks} == {"n3"}
    assert len(made.evictions) == 2


def test_a_job_beyond_quota_is_reclaimed_once_and_then_nobody_for_ever() -> None:
    """Quotas 150/150/0, a job of 250 of A's; then jobs of 50 in B and C."""
    shard = Shard(claims.nodes(300, gpus=1), (queue("a", 150), queue("b", 150), queue("c")))
    shard.order = "fair_share"
    big = shard.submit("a", gpus(1, tasks=250))
    shard.cycle()
    assert big in shard.running
    first = shard.submit("b", gpus(1, tasks=50))
    made = shard.cycle()
    assert [p.job for p in made.placements] == [first]
    assert not made.evictions
    second = shard.submit("b", gpus(1, tasks=50))
    made = shard.cycle()
    assert stopped(made) == [big]
    assert [n.job for n in made.nominations] == [second]
    shard.end_victims()
    made = shard.cycle()
    assert second in shard.running
    rest = shard.submit("c", gpus(1, tasks=50)), shard.submit("c", gpus(1, tasks=50))
    assert shard.settle() == 0
    # 200 are left, the 250 cannot come back, and C runs on what is left.
    assert big not in shard.running
    assert all(job in shard.running for job in rest)
    third = shard.submit("b", gpus(1, tasks=50))
    assert shard.settle() == 0
    assert third in shard.running
    assert sum(len(made.evictions) for made in shard.plans) == 1


def test_work_inside_quota_is_never_reclaimed() -> None:
    shard = Shard(claims.nodes(1), (queue("a", 4), queue("b", 8)))
    inside = shard.submit("a", gpus(4))
    shard.cycle()
    borrowed = shard.submit("a", gpus(4))
    shard.cycle()
    claim = shard.submit("b", gpus(8))
    assert not shard.cycle().evictions
    small = shard.submit("b", gpus(4))
    assert stopped(shard.cycle()) == [borrowed]
    assert claim not in shard.running
    assert inside in shard.running
    shard.end_victims()
    shard.cycle()
    assert small in shard.running


def test_a_claimant_beyond_its_quota_takes_nothing() -> None:
    shard = Shard(claims.nodes(1), (queue("a", 2), queue("b")))
    shard.submit("b", gpus(8))
    shard.cycle()
    shard.submit("a", gpus(4))
    assert not shard.cycle().evictions


def test_a_queue_below_an_organisation_claims_what_the_organisation_deserves() -> None:
    shard = Shard(claims.nodes(1), (queue("x", 4), queue("y")))
    lent = shard.submit("y.team", gpus(8))
    shard.cycle()
    shard.submit("x.team", gpus(4))
    assert stopped(shard.cycle()) == [lent]


def test_guaranteed_immune_and_not_preemptible_work_is_no_victim() -> None:
    shard = Shard(claims.nodes(1))
    victim = shard.submit("a", gpus(8))
    shard.cycle()
    first = shard.submit("a", gpus(4), priority=1)
    shard.cycle()
    shard.end_victims()
    shard.cycle()
    shard.end(first)
    shard.cycle()
    assert victim in shard.running
    again = shard.submit("a", gpus(4), priority=1)
    assert not shard.cycle().evictions
    wake = shard.world.next_wakeup(shard.now)
    assert wake is not None
    shard.now = wake
    assert shard.world.has_work(shard.now)
    assert stopped(shard.cycle()) == [victim]
    assert again in [n.job for n in shard.plans[-1].nominations]


def test_a_hold_that_ends_unused_goes_back_to_its_victims_queue_first() -> None:
    shard = Shard(claims.nodes(1))
    victim = shard.submit("a", gpus(8))
    shard.cycle()
    high = shard.submit("b", gpus(8), priority=10)
    held = shard.cycle().nominations[0]
    shard.end_victims()
    other = shard.submit("c", gpus(8), priority=5)
    shard.now = held.until + 1
    made = shard.cycle()
    assert [p.job for p in made.placements] == [victim]
    assert {high, other}.isdisjoint(shard.running)


def test_a_later_job_of_higher_priority_inherits_the_hold() -> None:
    shard = Shard(claims.nodes(1))
    shard.submit("a", gpus(8))
    shard.cycle()
    high = shard.submit("a", gpus(8), priority=10)
    shard.cycle()
    higher = shard.submit("a", gpus(8), priority=20)
    made = shard.cycle()
    assert not made.evictions
    assert made.released == (high,)
    assert [n.job for n in made.nominations] == [higher]
    shard.end_victims()
    shard.cycle()
    assert list(shard.running) == [higher]


def test_a_nomination_holds_devices_that_are_still_in_use() -> None:
    shard = Shard(claims.nodes(1))
    shard.submit("a", gpus(8))
    shard.cycle()
    shard.submit("a", gpus(2), priority=3)
    held = shard.cycle().nominations[0]
    assert held.tasks[0].devices == (DeviceGrant(0, blocks=100), DeviceGrant(1, blocks=100))
    shard.end_victims()
    small = [shard.submit("a", gpus(2)) for _ in range(4)]
    shard.cycle()
    assert sum(job in shard.running for job in small) == 3


def test_a_gang_for_racks_clears_one_rack() -> None:
    shard = Shard(claims.nodes(4))
    jobs = [shard.submit("a", gpus(8)) for _ in range(4)]
    shard.cycle()
    high = shard.submit("b", gpus(8, tasks=2), priority=1)
    made = shard.cycle()
    assert len(made.evictions) == 2
    assert len(made.nominations[0].tasks) == 2
    shard.end_victims()
    shard.cycle()
    assert high in shard.running
    assert sum(job in shard.running for job in jobs) == 2


def test_a_limit_of_its_queue_is_made_room_in_by_its_own_lower_work() -> None:
    shard = Shard(claims.nodes(2), (queue("a", limit=8),))
    low = shard.submit("a", gpus(8))
    shard.submit("b", gpus(4))
    shard.cycle()
    high = shard.submit("a", gpus(8), priority=2)
    assert stopped(shard.cycle()) == [low]
    shard.end_victims()
    shard.cycle()
    assert high in shard.running


def worlds_placed(shard: Shard) -> list[int]:
    return [p.job for p in shard.cycle().placements]


def test_a_job_that_is_kept_apart_from_others_starts_on_its_own_hold() -> None:
    shard = Shard(claims.nodes(2))
    for _ in range(2):
        shard.submit("a", gpus(8))
    shard.cycle()
    apart = replace(gpus(8), anti_affinity=AntiAffinity("a/set", "node"))
    high = [shard.submit("a", apart, priority=1) for _ in range(2)]
    for _ in range(4):
        shard.cycle()
        shard.end_victims()
    shard.cycle()
    assert sorted(shard.running) == high


@pytest.mark.parametrize("kinds", [("",), ("A100", "H100"), ("H100", "A100")])
def test_victims_of_any_kind_that_the_job_may_take_are_found(kinds: tuple[str, ...]) -> None:
    shard = Shard(claims.nodes(1))
    low = shard.submit("a", gpus(8))
    shard.cycle()
    shapes = tuple(TaskShape(0, 0, DeviceRequest(kind, 2)) for kind in kinds)
    shard.submit("a", GangRequest((GroupRequest(1, 1, shapes),)), priority=1)
    assert stopped(shard.cycle()) == [low]


def test_work_without_devices_stops_for_work_without_devices() -> None:
    shard = Shard(claims.nodes(1, gpus=0))
    small = GangRequest((GroupRequest(1, 1, (TaskShape(4000, 0),)),))
    low = [shard.submit("a", small) for _ in range(2)]
    shard.cycle()
    shard.submit("a", small, priority=1)
    assert len(stopped(shard.cycle())) == 1
    assert len(low) == len(shard.running)
