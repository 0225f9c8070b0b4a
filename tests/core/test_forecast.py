"""When queued jobs will start: points, causes, and what forecasts are worth."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.engine.timeline.forecast import Cause, Forecast, Point, forecast
from atoll.core.engine.timeline.track_record import TrackRecord, from_text
from atoll.core.model.booking import NodeShare, OccurrenceId, Owners, Window
from atoll.core.model.ids import ClusterName, JobId, NodeId, QueueName, Tenant
from atoll.core.model.job import Queue
from atoll.core.model.plan import GangRequest, GroupRequest, PendingJob, RunTerms
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.model.spec import Topology
from atoll.core.policies.fair_share import FairShareSettings
from atoll.core.policies.registry import policies
from atoll.core.state.run_times import EndedRun, ended_run
from atoll.core.state.world import World
from tests.core.worlds import (
    GIB,
    QUEUES,
    Given,
    commit,
    givens,
    planned,
    simple_job,
    simple_nodes,
    simple_world,
    singles,
    world_of,
)

HOUR = 3600.0
NOW = 1000.0


def gpus(count: int, *, tasks: int = 1, limit_s: float = HOUR, rack: bool = False) -> GangRequest:
    shape = TaskShape(1000, GIB, DeviceRequest("H100", count))
    topology = Topology("rack") if rack else None
    return GangRequest((GroupRequest(tasks, tasks, (shape,)),), topology, terms=RunTerms(limit_s))


def foretold(world: World, now: float = NOW, *, order: str = "fair_share") -> Forecast:
    return forecast(world.survey(now), policies(order=order), rng=np.random.default_rng(0))


def point(world: World, job: int, now: float = NOW, *, order: str = "fair_share") -> Point:
    pending = world.pending(JobId(job))
    assert pending is not None
    found = foretold(world, now, order=order).of(pending)
    assert found is not None
    return found


def busy(requests: Sequence[GangRequest], *, nodes: int = 1) -> World:
    """Nodes of 8 H100 on which some jobs have been running since NOW."""
    jobs = [simple_job(number, each) for number, each in enumerate(requests, 1)]
    world = simple_world(simple_nodes(nodes, gpus=8, cpu=64), jobs)
    snapshot = world.freeze(NOW)
    made = planned(snapshot)
    commit(world, made)
    for holding in [*world.ledger.holdings.values()]:
        world.end_allocations([holding.attempt])
        assert holding.run is not None
        world.add_allocations([holding._replace(run=holding.run._replace(started_at=NOW))])
    return world


def test_a_job_with_room_and_nobody_before_it_starts_now() -> None:
    world = simple_world(simple_nodes(2, gpus=8), [simple_job(1, gpus(8))])
    assert point(world, 1) == Point(NOW, ClusterName("c1"), Cause.TURN, 0.0)


def test_a_job_waits_for_the_run_that_holds_its_place() -> None:
    world = busy([gpus(8)])
    world.upsert_pending([simple_job(9, gpus(8))])
    found = point(world, 9)
    assert (found.start, found.cause) == (NOW + HOUR, Cause.ROOM)


def test_those_before_it_run_first_as_many_at_a_time_as_there_is_room() -> None:
    world = busy([gpus(4), gpus(4)])
    world.upsert_pending([simple_job(number, gpus(4)) for number in range(10, 16)])
    starts = [point(world, number).start - NOW for number in range(10, 16)]
    for at, start in enumerate(starts):
        assert start == pytest.approx((1 + at // 2) * HOUR, rel=0.06)
    assert point(world, 15).cause is Cause.AHEAD


def test_a_gang_waits_for_a_domain_of_its_own() -> None:
    nodes = simple_nodes(4, gpus=8)
    racked = [
        replace(n, inventory=replace(n.inventory, domains=(("rack", f"r{n.id % 2}"),)))
        for n in nodes
    ]
    world = simple_world(racked, [simple_job(1, gpus(8)), simple_job(2, gpus(8))])
    made = planned(world.freeze(NOW))
    commit(world, made)
    held = {task.node for placement in made.placements for task in placement.tasks}
    scattered = len({node % 2 for node in held}) == 2
    world.upsert_pending([
        simple_job(5, gpus(8, tasks=2)),
        simple_job(6, gpus(8, tasks=2, rack=True)),
    ])
    assert point(world, 5).start == NOW
    assert (point(world, 6).start > NOW) is True
    assert scattered or point(world, 6).cause is Cause.AHEAD


def test_what_has_no_place_anywhere_has_no_start() -> None:
    world = simple_world(simple_nodes(1, gpus=8), [simple_job(1, gpus(9)), simple_job(2, gpus(1))])
    pending = world.pending(JobId(1))
    assert pending is not None
    assert foretold(world).of(pending) is None
    assert point(world, 2).start == NOW


def test_a_full_queue_waits_for_its_own_runs_and_says_so() -> None:
    world = busy([gpus(2)], nodes=2)
    world.set_queues([Queue(QUEUES[0], Tenant(""), device_limit=200)])
    world.upsert_pending([
        simple_job(9, gpus(2)),
        replace(simple_job(10, gpus(2)), queue=QUEUES[3]),
    ])
    found = point(world, 9)
    assert (found.cause, found.name) == (Cause.LIMIT, QUEUES[0])
    assert found.start == pytest.approx(NOW + HOUR, rel=0.04)
    assert point(world, 10).start == NOW


def booked(world: World, start: float, end: float, **given: object) -> None:
    share = NodeShare(NodeId(1), "n1", whole=True)
    window = Window(OccurrenceId(7), "exam", start, end, ClusterName("c1"), (share,), lend=False)
    world.set_windows([replace(window, **given)])  # type: ignore[arg-type]


def test_who_stands_before_a_booking_of_others_waits_for_its_end() -> None:
    world = simple_world(simple_nodes(1, gpus=8), [simple_job(1, gpus(8))])
    booked(world, NOW + 60, NOW + 5 * HOUR, owners=Owners(queues=(QUEUES[3],)))
    found = point(world, 1)
    assert (found.cause, found.name, found.start) == (Cause.BOOKING, "exam", NOW + 5 * HOUR)
    world.upsert_nodes(simple_nodes(2, gpus=8))
    assert point(world, 1).start == NOW


def test_who_asks_for_a_booking_waits_for_its_begin() -> None:
    inside = replace(gpus(8), reservation="exam")
    world = simple_world(simple_nodes(2, gpus=8), [simple_job(1, inside)])
    pending = world.pending(JobId(1))
    assert pending is not None
    assert foretold(world).of(pending) is None
    booked(world, NOW + HOUR, NOW + 5 * HOUR, owners=Owners(queues=(QUEUES[0],)))
    found = point(world, 1)
    assert (found.cause, found.name, found.start) == (Cause.BOOKING, "exam", NOW + HOUR)
    assert point(world, 1, NOW + 2 * HOUR).start == NOW + 2 * HOUR


def test_the_urgent_go_first_where_urgency_counts() -> None:
    world = busy([gpus(8)])
    world.upsert_pending([
        simple_job(9, gpus(8, limit_s=40 * HOUR)),
        simple_job(10, gpus(1, limit_s=60.0)),
    ])
    urgent = policies(shares=FairShareSettings(urgency=0.14, size_s=0.0))
    made = forecast(world.survey(NOW), urgent, rng=np.random.default_rng(0))
    pending = [world.pending(JobId(number)) for number in (9, 10)]
    starts = [found.start for each in pending if each and (found := made.of(each))]
    assert starts[1] < starts[0]


def test_runs_are_expected_to_last_as_long_as_their_like_did() -> None:
    world = busy([gpus(8, limit_s=10 * HOUR)])
    world.upsert_pending([simple_job(9, gpus(8))])
    (run,) = world.ledger.holdings.values()
    before = point(world, 9).start
    ended = ended_run(run.queue, run.tasks, limit_s=10 * HOUR, ran_s=0.5 * HOUR)
    world.run_times.note([ended] * 30)
    assert before == NOW + 10 * HOUR
    assert NOW + 0.4 * HOUR < point(world, 9).start < NOW + 2 * HOUR
    # It has outlived that, but not what its user asked for.
    assert point(world, 9, NOW + 9 * HOUR).start == NOW + 10 * HOUR


def test_of_jobs_without_a_limit_only_the_past_tells() -> None:
    world = busy([gpus(8, limit_s=0.0)])
    world.upsert_pending([simple_job(9, gpus(8))])
    (run,) = world.ledger.holdings.values()
    guess = point(world, 9).start
    world.run_times.note(
        [replace(ended_run(run.queue, run.tasks, limit_s=0.0, ran_s=5 * HOUR))] * 9
    )
    assert guess == NOW + HOUR
    assert point(world, 9).start == pytest.approx(NOW + 5 * HOUR, rel=0.01)


def test_queues_get_their_parts_side_by_side() -> None:
    world = busy([gpus(8)])
    world.set_queues([Queue(QUEUES[3], Tenant(""), weight=1.0), Queue(QUEUES[0], Tenant(""))])
    mine = [simple_job(number, gpus(8)) for number in range(10, 14)]
    others = [replace(simple_job(number, gpus(8)), queue=QUEUES[3]) for number in range(20, 24)]
    world.upsert_pending([*mine, *others])
    # The other queue has had nothing yet; then they take turns.
    assert point(world, 20).start <= point(world, 10).start
    assert point(world, 11).start < point(world, 23).start
    assert point(world, 13).start > point(world, 22).start


def test_a_class_of_many_jobs_is_told_by_a_few() -> None:
    world = busy([gpus(8)])
    world.upsert_pending([simple_job(number, gpus(8)) for number in range(10, 1010)])
    assert len(world.survey(NOW).snapshot.queue.job) < 40
    starts = [point(world, number).start for number in (10, 11, 300, 301, 700, 1009)]
    assert starts == sorted(starts)
    assert starts[-1] - NOW == pytest.approx(1000 * HOUR, rel=0.06)
    assert starts[2] - NOW == pytest.approx(291 * HOUR, rel=0.06)


def more_work(case: Given, number: int) -> PendingJob:
    like = case.jobs[number % len(case.jobs)]
    return replace(like, id=JobId(500 + number), priority=2)


@settings(max_examples=25, deadline=None)
@given(givens(singles()), st.integers(0, 40), st.sampled_from((0.0, 2 * HOUR)))
def test_more_work_before_a_job_never_makes_it_earlier(
    case: Given, number: int, later: float
) -> None:
    world = world_of(case)
    commit(world, planned(world.freeze(NOW), most=4))
    before = {
        job.id: foretold(world, NOW + later, order="priority_fifo").of(job) for job in case.jobs
    }
    world.upsert_pending([more_work(case, number)])
    after = foretold(world, NOW + later, order="priority_fifo")
    for job in case.jobs:
        was, now = before[job.id], after.of(job)
        if world.pending(job.id) is not None and now is not None:
            assert was is not None
            assert now.start >= was.start - 1e-6


def test_a_record_learns_and_survives_as_text() -> None:
    record, rng = TrackRecord(), np.random.default_rng(3)
    for number in range(1, 1500):
        record.tell({JobId(number): 5000.0 * number + 600.0}, now=5000.0 * number)
        # Jobs really wait about twice as long as was told.
        record.started([JobId(number)], now=5000.0 * number + 1200.0 * rng.lognormal(0.0, 0.5))
    record.tell({JobId(9000): 100.0}, now=0.0)
    half, most = record.quantiles_s(600.0)
    assert 1000.0 < half < 1450.0 < most
    covered = record.coverage()
    assert covered.count == 1499
    assert covered.within == pytest.approx((0.5, 0.9), abs=0.06)
    again = from_text(record.to_text())
    assert again.quantiles_s(600.0) == pytest.approx((half, most), rel=1e-3)
    assert again.coverage() == covered
    assert list(again.followed) == [9000]
    again.gone([JobId(9000)])
    assert not list(again.followed)
    assert from_text("").coverage().count == 0


def test_of_many_jobs_at_once_only_some_are_followed() -> None:
    record = TrackRecord()
    for first in range(0, 100_000, 5000):
        chosen = record.chosen(JobId(first + number) for number in range(1, 5001))
        assert 200 <= len(chosen) <= 256 or len(list(record.followed)) > 3800
        record.tell(dict.fromkeys(chosen, 10.0), now=0.0)
    assert len(list(record.followed)) <= 4096


def test_runs_of_new_queues_find_room() -> None:
    world = simple_world(simple_nodes(1))
    runs = [EndedRun(QueueName(f"q{n}"), 1, 100.0, 10.0 + n) for n in range(40)]
    world.run_times.note(runs)
    view = world.run_times.freeze()
    owners = view.owners([QueueName("q39"), QueueName("unknown")])
    expected = view.expected(owners, np.ones(2, np.int64), np.full(2, 100.0))
    assert owners[1] == 0
    assert expected[0, 1] > 20.0
