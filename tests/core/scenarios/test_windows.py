"""Bookings in the cycle: who keeps out, who goes in, and who stops for them."""

from dataclasses import replace

import pytest

from atoll.core.engine.cycle import CycleLimits
from atoll.core.engine.verify import refused
from atoll.core.model.booking import OnEnd, Owners, user_mark
from atoll.core.model.ids import ClusterName, JobId, QueueName, Tenant
from atoll.core.model.job import Queue
from atoll.core.model.plan import Claim, Plan
from atoll.core.model.reason import ReasonCode
from tests.core.booked_worlds import LEFT, WHOLE, Shard, job, placed, stopped, window

BOTH = [(1, WHOLE), (2, WHOLE)]


def test_what_ends_by_the_start_runs_and_what_does_not_waits_until_the_end() -> None:
    shard = Shard()
    shard.book(window(1, 1000.0, 2000.0, BOTH, lend=False))
    shard.submit(job(1, gpus=4, limit=900), job(2, gpus=4, limit=901))
    assert placed(shard.at(100.0)) == [1]
    assert placed(shard.at(1000.0)) == []
    assert placed(shard.at(2000.0)) == [2]


def test_an_owner_is_not_kept_out_and_nobody_else_is_told_anything_but_why() -> None:
    shard = Shard()
    shard.book(window(1, 1000.0, 2000.0, BOTH, lend=False))
    shard.submit(job(1, "nlp.vision", gpus=4), job(2, "nlpx", gpus=4))
    made = shard.at(900.0)
    assert placed(made) == [1]
    (why,) = made.waiting[0].reasons
    assert why.code is ReasonCode.RESERVED
    assert why.message == "held from 00:16 until 00:33 for queue nlp, booking b1: 2 nodes"
    (why,) = shard.at(1500.0).waiting[0].reasons
    assert why.message.startswith("held until 00:33 for queue nlp, booking b1")


def test_who_runs_when_a_booking_comes_is_stopped_with_its_grace_before_the_start() -> None:
    shard = Shard()
    shard.submit(job(1, gpus=4, grace=60), job(2, gpus=4, firm=True), job(3, gpus=1))
    assert placed(shard.at(0.0)) == [1, 2]
    shard.book(window(1, 1000.0, 2000.0, BOTH, lend=False))
    shard.submit(job(4, "nlp", gpus=4, tasks=2, inside="b1"))
    assert stopped(shard.at(934.0)) == []
    assert shard.world.next_wakeup(934.0) == 935.0
    assert stopped(shard.at(935.0)) == [1]
    assert shard.world.next_wakeup(935.0) == 995.0
    assert stopped(shard.at(995.0)) == [2]
    assert placed(shard.at(1000.0)) == [4]


def test_the_owners_queued_jobs_start_in_the_cycle_of_the_start() -> None:
    shard = Shard()
    shard.book(window(1, 1000.0, 2000.0, BOTH))
    shard.submit(job(1, "nlp", gpus=4, tasks=2, inside="b1"))
    why = shard.at(10.0).waiting[0].reasons[0]
    assert (why.code, why.message) == (ReasonCode.BOOKING_NOT_OPEN, "booking b1 opens at 00:16")
    assert dict(why.metadata)["opens_at"] == "1000.000"
    assert shard.world.next_wakeup(995.0) == 1000.0
    assert shard.world.has_work(1000.0)
    assert placed(shard.at(1000.0)) == [1]


def test_a_job_that_asks_for_a_booking_stays_inside_its_part_of_a_node() -> None:
    shard = Shard(nodes=1)
    shard.book(window(1, 100.0, 200.0, [(1, LEFT)]))
    shard.submit(job(1, "nlp", gpus=2, cpu=4, inside="b1"), job(2, "nlp", gpus=1, inside="b1"))
    made = shard.at(100.0)
    assert placed(made) == [1]
    assert [grant.index for grant in shard.tasks(1)[0].devices] == [0, 1]
    assert made.waiting[0].reasons[0].message.startswith("booking b1 is open until 00:03")


def test_others_run_beside_a_booking_of_a_part_of_a_node() -> None:
    shard = Shard(nodes=1)
    shard.book(window(1, 100.0, 200.0, [(1, LEFT)], lend=False))
    shard.submit(job(1, gpus=1, cpu=3), job(2, gpus=1, cpu=2), job(3, gpus=1, cpu=1))
    assert placed(shard.at(0.0)) == [1, 3]
    assert {g.index for n in (1, 3) for t in shard.tasks(n) for g in t.devices} == {2, 3}


def test_what_ends_before_a_booked_part_begins_may_have_it() -> None:
    shard = Shard(nodes=1)
    shard.book(window(1, 100.0, 200.0, [(1, LEFT)], lend=False))
    shard.submit(job(1, gpus=3, cpu=6, limit=100), job(2, gpus=1, cpu=2))
    assert placed(shard.at(0.0)) == [1, 2]
    assert stopped(shard.at(95.0)) == []


def test_lent_capacity_comes_back_to_an_owner_and_no_more_than_it_needs() -> None:
    shard = Shard()
    shard.book(window(1, 100.0, 1000.0, BOTH))
    shard.submit(job(1, gpus=4, grace=30), job(2, gpus=4, grace=30), job(3, gpus=4, firm=True))
    assert placed(shard.at(50.0)) == [1, 2]
    assert stopped(shard.at(100.0)) == []
    shard.submit(job(4, "nlp", gpus=2))
    made = shard.at(200.0)
    assert len(stopped(made)) == 1
    assert [held.job for held in made.nominations] == [4]
    assert shard.at(201.0).evictions == ()
    assert placed(shard.at(230.0)) == [4]


def test_who_waits_for_the_start_finds_lent_places_empty_then() -> None:
    shard = Shard()
    shard.book(window(1, 1000.0, 2000.0, BOTH))
    shard.submit(job(1, gpus=4, grace=30), job(2, gpus=4, grace=30))
    shard.at(0.0)
    shard.submit(job(3, "nlp", gpus=4, inside="b1"))
    assert stopped(shard.at(500.0)) == []
    assert shard.world.next_wakeup(500.0) == 965.0
    assert len(stopped(shard.at(965.0))) == 1
    assert placed(shard.at(1000.0)) == [3]
    assert len(shard.running()) == 2


def test_maintenance_lends_to_nobody() -> None:
    shard = Shard()
    shard.book(window(1, 1000.0, 2000.0, BOTH, owners=Owners(), lend=True))
    shard.submit(job(1, "nlp", gpus=4, limit=100))
    assert placed(shard.at(950.0)) == []
    (why,) = shard.at(1000.0).waiting[0].reasons
    assert why.message.startswith("held until 00:33 for maintenance, booking b1")


@pytest.mark.parametrize(
    ("on_end", "told_at"),
    [(OnEnd.STOP, 1965.0), (OnEnd.GRACE, 2065.0), (OnEnd.CONTINUE, None)],
)
def test_owners_runs_leave_at_the_end_as_the_booking_says(
    on_end: OnEnd, told_at: float | None
) -> None:
    shard = Shard()
    shard.book(window(1, 1000.0, 2000.0, BOTH, on_end=on_end, end_grace_s=100.0))
    shard.submit(job(1, "nlp", gpus=4, grace=30, inside="b1"))
    shard.at(1000.0)
    times = [1964.0, 1965.0, 2000.0, 2064.0, 2065.0, 3000.0]
    told = [now for now in times if stopped(shard.at(now))]
    assert told == ([told_at] if told_at is not None else [])


def test_owners_runs_leave_though_nobody_was_there_at_the_end() -> None:
    shard = Shard()
    shard.book(window(1, 1000.0, 2000.0, BOTH))
    shard.submit(job(1, "nlp", gpus=4, grace=30, inside="b1"))
    assert placed(shard.at(1000.0)) == [1]
    assert len(stopped(shard.at(2500.0))) == 1


def test_who_comes_after_the_end_is_nobody_s_guest() -> None:
    shard = Shard()
    shard.book(window(1, 1000.0, 2000.0, BOTH))
    shard.at(1999.0)
    shard.submit(job(1, "nlp", gpus=4, grace=30))
    assert placed(shard.at(2000.0)) == [1]
    assert [stopped(shard.at(now)) for now in (2001.0, 3000.0, 5700.0)] == [[], [], []]
    assert not shard.world.freeze(5700.0).windows


def test_who_cannot_be_stopped_enters_only_if_it_is_through_by_the_end() -> None:
    shard = Shard()
    shard.book(window(1, 100.0, 200.0, BOTH))
    shard.submit(job(1, "nlp", gpus=4, firm=True, limit=101), job(2, "nlp", gpus=4, limit=101))
    assert placed(shard.at(100.0)) == [2]


def test_owners_are_known_by_their_marks() -> None:
    shard = Shard()
    shard.book(window(1, 100.0, 200.0, BOTH, owners=Owners(users=("ann",)), lend=False))
    shard.submit(job(1, gpus=4), job(2, gpus=4, marks=(user_mark("ann"),)))
    assert placed(shard.at(100.0)) == [2]
    shard.world.mark({JobId(1): (user_mark("ann"),)})
    assert placed(shard.at(101.0)) == [1]


def test_a_reservation_of_a_blocked_job_does_not_start_across_a_booking() -> None:
    shard = Shard(nodes=1)
    shard.book(window(1, 300.0, 400.0, [(1, WHOLE)], lend=False))
    shard.submit(job(1, gpus=4, limit=100))
    shard.at(0.0)
    shard.submit(job(2, gpus=4, limit=250))
    (promise,) = shard.at(1.0).promises
    assert promise.start == 400.0


def test_verify_refuses_whoever_breaks_a_booking() -> None:
    shard = Shard()
    shard.submit(job(1, gpus=4), job(2, gpus=1, cpu=1, limit=50), job(3, gpus=1, cpu=7, firm=True))
    free = shard.world.freeze(0.0)
    assert free.now == 0.0
    made = Shard()
    made.submit(job(1, gpus=4), job(2, gpus=1, cpu=1, limit=50), job(3, gpus=1, cpu=7, firm=True))
    found = made.cycle(0.0)
    shard.book(window(1, 60.0, 90.0, [(1, WHOLE)], lend=False))
    assert sorted(refused(found.placements, shard.world.ledger, now=0.0)) == _on(found, 1, {1, 3})
    shard.book(window(1, 60.0, 90.0, [(2, LEFT)]))
    assert sorted(refused(found.placements, shard.world.ledger, now=0.0)) == _on(found, 2, {3})


def _on(made: Plan, node: int, jobs: set[int]) -> list[int]:
    here = {p.job for p in made.placements if any(t.node == node for t in p.tasks)}
    return sorted(here & jobs)


def test_a_booked_hour_is_charged_used_or_not_and_never_twice() -> None:
    shard, nlp = Shard(), QueueName("nlp")
    shard.world.set_queues([Queue(nlp, Tenant(""), device_limit=500)])
    shard.book(window(1, 100.0, 200.0, [(1, WHOLE)], charge=(nlp,)))
    assert charged(shard, 99.0) == 0
    # It is not through by the end, so its place is on the other node.
    shard.submit(job(1, "nlp", gpus=2, limit=500, firm=True))
    made = shard.at(100.0)
    assert [why.code for why in made.waiting[0].reasons] == [ReasonCode.QUEUE_LIMIT]
    assert charged(shard, 100.0) == 4
    shard.submit(job(2, "nlp.x", gpus=2), job(3, "nlp", gpus=2, inside="b1"))
    assert placed(shard.at(101.0)) == [2, 3]
    assert charged(shard, 101.0) == 4


def charged(shard: Shard, now: float) -> float:
    """Devices that count for the queue."""
    used: list[int] = shard.world.freeze(now).limits.used.tolist()
    return used[0] / 5600


def test_a_booking_that_is_dropped_keeps_nobody_out() -> None:
    shard = Shard()
    maintenance = window(1, 10.0, 900.0, BOTH, owners=Owners())
    shard.book(maintenance)
    shard.submit(job(1, gpus=4))
    assert placed(shard.at(20.0)) == []
    assert not shard.world.has_work(21.0)
    shard.world.drop_windows([maintenance.id])
    assert shard.world.has_work(22.0)
    assert placed(shard.at(22.0)) == [1]
    assert shard.world.ledger.booked.all() == {}
    assert QueueName("nlp") not in shard.world.freeze(23.0).windows.by_queue


def test_devices_of_a_guaranteed_deadline_are_there_when_its_job_needs_them() -> None:
    claim = Claim("deadline-1", 100.0, 300.0, ClusterName("c1"), "H100", 400, (QueueName("nlp"),))
    shard = Shard(nodes=1, limits=CycleLimits(claims=(claim,)))
    shard.submit(job(1, gpus=2, limit=100, firm=True), job(2, gpus=2, limit=150, firm=True))
    made = shard.at(0.0)
    assert placed(made) == [1]
    why = made.waiting[0].reasons[0].message
    assert why.startswith("kept until 00:05 for a job of queue nlp whose deadline is guaranteed")
    promised = replace(job(3, "nlp", gpus=4, limit=200, firm=True), guaranteed=True)
    shard.submit(promised, job(4, "nlp", gpus=4, limit=200, firm=True, at=-1.0))
    assert placed(shard.at(50.0)) == []
    assert placed(shard.at(100.0)) == [3]


def test_a_claim_lends_to_those_that_may_be_stopped_and_takes_it_back_for_its_job() -> None:
    claim = Claim("deadline-1", 100.0, 300.0, ClusterName("c1"), "H100", 400, (QueueName("nlp"),))
    shard = Shard(nodes=1, limits=CycleLimits(claims=(claim,)))
    shard.submit(job(1, gpus=4))
    assert placed(shard.at(0.0)) == [1]
    assert stopped(shard.at(100.0)) == []
    shard.submit(replace(job(2, "nlp", gpus=4, limit=100), guaranteed=True))
    assert stopped(shard.at(101.0)) == [1]
    assert placed(shard.at(101.5)) == [2]
