"""Jobs in columns, and how they are kept as the store has them."""

import random
from dataclasses import replace

import numpy as np
import pytest

from atoll.burst.usecases import demand_table
from atoll.burst.usecases.demand_table import DemandTable, of_queue
from atoll.burst.usecases.follower import Follower
from atoll.core.model.burst import BurstPolicy
from atoll.core.model.ids import ClusterName, JobId, QueueName
from atoll.core.model.lifecycle import JobState
from atoll.core.model.messages import ChangeKind
from atoll.ports.store.common import Change
from atoll.ports.store.demand import DemandRow
from tests.adapters.store_builders import submit
from tests.services.burst.worlds import World

KINDS = ("H100", "A100", "")
QUEUES = ("nlp", "nlp.exams", "vision")


def made(job: int, rng: random.Random) -> DemandRow:
    """A job somewhere in its life."""
    started = rng.choice((0.0, 5.0))
    ended = rng.choice((0.0, 9.0)) if started else 0.0
    return DemandRow(
        JobId(job),
        QueueName(rng.choice(QUEUES)),
        rng.choice(KINDS[:2] if ended else KINDS),
        rng.choice((0.25, 1.0, 8.0)),
        submitted_at=1.0,
        started_at=started,
        ended_at=ended,
        limit_s=rng.choice((0.0, 60.0)),
        waits=not started and rng.random() < 0.3,
        cluster=ClusterName(rng.choice(("north", "south")) if started else ""),
        after=(JobId(1),) if not started and rng.random() < 0.3 else (),
        begin_at=rng.choice((0.0, 20.0, 40.0)) if not started else 0.0,
    )


def test_who_came_is_counted_over_or_not_where_renting_is_allowed() -> None:
    table, usual = DemandTable(), DemandRow(JobId(1), QueueName("nlp"), "H100", 1.0, 5.0, 0.0)
    over = replace(usual, job=JobId(2), started_at=6.0, ended_at=7.0)
    before = replace(usual, job=JobId(3), submitted_at=4.0)
    other = replace(usual, job=JobId(4), queue=QueueName("vision"))
    table.put([usual, over, before, other], now=8.0)
    nlp = BurstPolicy(QueueName("nlp"), allowed=True)
    assert table.came(4.0, {nlp.queue: nlp}) == 2
    assert table.came(4.0, {None: replace(nlp, queue=None)}) == 3
    assert table.came(4.0, {}) == 0


@pytest.mark.parametrize("seed", range(5))
def test_sums_are_those_of_the_rows_whatever_happens_to_jobs(seed: int) -> None:
    rng, table = random.Random(seed), DemandTable()
    rows: dict[JobId, DemandRow] = {}
    for now in range(10, 60):
        some = [made(rng.randrange(40), rng) for _ in range(8)]
        table.put(some, now=now)
        rows |= {row.job: row for row in some}
        table.standing.pass_time(now)
        waits = [r for r in rows.values() if not r.started_at and not r.waits_at(now)]
        assert {kind: each.jobs for kind, each in table.standing.waits.items()} == {
            kind: sum(r.kind == kind for r in waits) for kind in {r.kind for r in waits}
        }
        runs = [r for r in rows.values() if r.started_at and not r.ended_at]
        assert {key: each.devices for key, each in table.standing.runs.items()} == {
            key: sum(r.devices for r in runs if (r.kind, r.cluster) == key)
            for key in {(r.kind, r.cluster) for r in runs}
        }
        assert all(table.get(job) == row for job, row in rows.items())
    below = of_queue(table.columns(), "nlp", "H100")
    mine = [r for r in rows.values() if r.queue != "vision" and r.kind == "H100"]
    assert sorted(below.ints("job")) == sorted(r.job for r in mine)


def test_what_has_ended_counts_as_what_it_ran_on() -> None:
    table = DemandTable()
    runs = DemandRow(JobId(1), QueueName("nlp"), "H100", 4.0, 1.0, 2.0)
    table.put([runs], now=3.0)
    table.put([replace(runs, kind="", devices=0.0, ended_at=3.0)], now=3.0)
    assert table.get(JobId(1)) == replace(runs, ended_at=3.0)


def test_memory_is_bounded_by_what_ended_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand_table, "FIRST_ROWS", 2)
    table = DemandTable()
    ended = [
        DemandRow(JobId(n), QueueName("nlp"), "H100", 1.0, 1.0, 1.0, ended_at=float(n))
        for n in range(1, 101)
    ]
    table.put(ended, now=200.0)
    table.drop_ended(20.0, most=50)
    assert sorted(table.columns().ints("job")) == list(range(51, 101))
    # Their places are taken again.
    table.put(ended[:20], now=200.0)
    assert len(table) == 70
    assert np.array_equal(np.sort(table.columns().ints("job"))[:20], np.arange(1, 21))


async def test_a_follower_reads_all_once_and_then_what_changed() -> None:
    world = World()
    jobs = await submit(world.store, 5)
    follower = Follower(3600.0)
    store, now = world.store.burst, world.clock.now()
    table = await follower.follow(store, now=now)
    assert (len(table), follower.full_reads) == (5, 1)
    async with world.store.submission.begin() as tx:
        gone = replace(jobs[0], state=JobState.CANCELLED, ended_at=now)
        await tx.update_jobs([gone])
        await tx.changed([Change(ChangeKind.JOBS, ids=(gone.id,))])
    await submit(world.store, 2)
    table = await follower.follow(store, now=now)
    assert (len(table), follower.full_reads) == (7, 1)
    assert table.standing.waits[""].jobs == 6
    table = await follower.follow(store, now=now + 7200.0)
    assert len(table) == 6
    # Changes that were pruned are a gap: everything is read anew.
    world.database.changes_lost = world.database.seq + 1
    await submit(world.store)
    table = await follower.follow(store, now=now + 7200.0)
    assert (len(table), follower.full_reads) == (7, 2)
