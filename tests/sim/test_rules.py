"""A simulation notices when an invariant is broken: each is broken here, one at a time."""

from dataclasses import replace

import pytest

from atoll.adapters.memory.store_rows import Rows
from atoll.core.model.ids import DEFAULT_SHARD, Epoch, JobId, attempt_id
from atoll.core.model.inventory import Cluster
from atoll.core.model.lifecycle import AttemptState, JobState
from atoll.core.model.resources import DeviceGrant
from atoll.ports.store.common import Fence
from atoll.sim.service import rules
from tests.adapters.store_builders import job
from tests.sim.bench import Bench, C, attempt, decision, held

WHOLE, HALF = DeviceGrant(0, 100), DeviceGrant(0, 50)


def test_what_is_in_order_is_nobodys_fault() -> None:
    bench = Bench()
    first = bench.place(1, HALF)
    bench.place(2, HALF)

    def end(rows: Rows) -> None:
        ended = replace(attempt(first, HALF), state=AttemptState.FINISHED, revision=2)
        rows.attempts.put(first, ended)
        rows.allocations.drop(first)

    bench.commit(end)
    bench.place(3, HALF)
    assert bench.accused == ""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (WHOLE, DeviceGrant(0, 1)),
        (HALF, DeviceGrant(0, 51)),
        (DeviceGrant(0, 0, 0b0011), DeviceGrant(0, 0, 0b0110)),
        (DeviceGrant(0, 0, 0b0011), DeviceGrant(0, 10)),
    ],
)
def test_a_share_of_a_device_has_one_owner(first: DeviceGrant, second: DeviceGrant) -> None:
    bench = Bench()
    bench.place(1, first)
    assert bench.accused == ""
    bench.place(2, second)
    assert bench.accused == rules.ONE_OWNER


def test_a_job_has_one_live_attempt() -> None:
    bench = Bench()
    bench.place(1)
    other = attempt_id(JobId(1), 2)

    def write(rows: Rows) -> None:
        rows.attempts.put(other, attempt(other, DeviceGrant(1, 100)))
        rows.allocations.put(other, held(other, DeviceGrant(1, 100)))

    bench.commit(write)
    assert bench.accused == rules.ONE_LIVE


def test_a_gang_is_held_whole() -> None:
    bench = Bench()
    number = attempt_id(JobId(1), 1)

    def write(rows: Rows) -> None:
        rows.attempts.put(number, attempt(number, WHOLE, DeviceGrant(1, 100)))
        rows.allocations.put(number, held(number, WHOLE))

    bench.commit(write)
    assert bench.accused == rules.WHOLE


def test_an_ended_attempt_holds_nothing() -> None:
    bench = Bench()
    number = bench.place(1)
    ended = replace(attempt(number, WHOLE), state=AttemptState.STOPPED, revision=2)
    bench.commit(lambda rows: rows.attempts.put(number, ended))
    assert bench.accused == rules.HELD


def test_what_runs_is_not_given_away() -> None:
    bench = Bench()
    number = bench.place(1)
    bench.running.add(number)

    def write(rows: Rows) -> None:
        ended = replace(attempt(number, WHOLE), state=AttemptState.LOST, revision=2)
        rows.attempts.put(number, ended)
        rows.allocations.drop(number)

    bench.commit(write)
    assert bench.accused == rules.REALLY


@pytest.mark.parametrize(
    ("before", "after", "legal"),
    [
        (JobState.SUCCEEDED, JobState.QUEUED, False),
        (JobState.HELD, JobState.RUNNING, False),
        (JobState.QUEUED, JobState.SUCCEEDED, False),
        (JobState.ASSIGNED, JobState.SUCCEEDED, True),
        (JobState.QUEUED, JobState.ASSIGNED, True),
    ],
)
def test_a_job_moves_by_the_table(before: JobState, after: JobState, legal: bool) -> None:
    bench = Bench()
    bench.commit(lambda rows: rows.jobs.put(JobId(1), job(1, state=before)))
    bench.commit(lambda rows: rows.jobs.put(JobId(1), job(1, state=after, revision=2)))
    assert bench.accused == ("" if legal else rules.LEGAL)


def test_a_revision_rises() -> None:
    bench = Bench()
    bench.commit(lambda rows: rows.jobs.put(JobId(1), job(1)))
    bench.commit(lambda rows: rows.jobs.put(JobId(1), job(1, state=JobState.HELD)))
    assert bench.accused == rules.RISES


def test_decisions_are_dense_and_given_once() -> None:
    bench = Bench()
    number = bench.place(1)
    bench.commit(lambda rows: rows.decisions.put((C, 1), (decision(1, number), 0.0)))
    assert bench.accused == ""
    bench.commit(lambda rows: rows.decisions.put((C, 3), (decision(3, number), 0.0)))
    assert bench.accused == rules.DENSE


def test_an_older_epoch_does_not_commit() -> None:
    bench = Bench()
    shards = bench.database.tables.shards
    shards[DEFAULT_SHARD] = Fence(DEFAULT_SHARD, Epoch(1, 5), commit_seq=7)
    stale = Fence(DEFAULT_SHARD, Epoch(1, 4), commit_seq=8)
    bench.commit(lambda rows: rows.shards.put(DEFAULT_SHARD, stale))
    assert bench.accused == rules.FENCED


def test_nothing_is_acknowledged_that_was_not_sent() -> None:
    bench = Bench()
    cluster = Cluster(C, head_seq=5, sent_seq=3, acked_seq=4)
    bench.commit(lambda rows: rows.clusters.put(C, cluster))
    assert bench.accused == rules.PREFIX


def test_the_first_violation_comes_with_its_story() -> None:
    bench = Bench()
    bench.place(1)
    bench.place(2)
    first = bench.court.first
    assert first is not None
    assert first.job == 2
    assert [note.text for note in first.story if note.job == 2]
    assert not [note.text for note in first.story if note.job == 1]
    bench.place(3)
    assert bench.court.first is first
