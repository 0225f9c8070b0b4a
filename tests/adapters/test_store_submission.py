"""Submission's side of both stores."""

import asyncio
from dataclasses import replace

import pytest

from atoll.core.model.ids import JobId, QueueName, Tenant
from atoll.core.model.job import Job, Queue, SubmitRequest
from atoll.core.model.lifecycle import JobState, JobWish
from atoll.core.model.reason import ReasonCode
from atoll.ports.store.submission import JobFilter
from tests.adapters.store_builders import (
    NORTH,
    QUEUE,
    SOUTH,
    TENANT,
    cluster_with,
    job,
    lead,
    node,
    node_ids,
    place,
    placement,
    request,
    spec,
    submit,
)
from tests.adapters.store_worlds import Store, StoreWorld

ALL = JobFilter(TENANT)


async def test_a_job_comes_back_whole_but_for_its_secrets(world: StoreWorld) -> None:
    whole = spec(
        labels=(("team", "x"),),
        secrets=(("TOKEN", "hush"),),
        array_id=JobId(1),
        array_index=3,
        priority=7,
        depends_on=(JobId(5),),
        begin_at=12.5,
    )
    [written] = await submit(world.store, spec=whole, trace="00-x", message="m")
    found = await world.store.submission.get_job(TENANT, written.id)
    shown = replace(whole, secrets=(("TOKEN", ""),))
    assert found == replace(written, spec=shown)
    assert await world.store.submission.get_job(Tenant("other"), written.id) is None


async def test_only_a_start_gets_the_secrets(world: StoreWorld) -> None:
    [first] = await submit(world.store, spec=spec(secrets=(("TOKEN", "hush"),)))
    [second] = await submit(world.store)
    specs = await world.store.dispatch.start_specs([first.id, second.id, JobId(999)])
    assert specs.keys() == {first.id, second.id}
    assert specs[first.id].spec.secrets == (("TOKEN", "hush"),)
    assert (specs[second.id].queue, specs[second.id].tenant) == (QUEUE, TENANT)


async def test_an_update_writes_what_may_change_and_raises_the_revision(world: StoreWorld) -> None:
    [written] = await submit(world.store, 1)
    changed = replace(
        written,
        state=JobState.CANCELLED,
        wish=JobWish.CANCEL,
        reason=ReasonCode.USER_CANCEL,
        message="why",
        priority=9,
        ended_at=77.0,
        exit_code=3,
        generation=2,
    )
    async with world.store.submission.begin() as tx:
        locked = await tx.lock_jobs([written.id, JobId(999)])
        assert locked == {written.id: written}
        await tx.update_jobs([replace(changed, name="not mutable", tenant=Tenant("no"))])
    found = await world.store.submission.get_job(TENANT, written.id)
    assert found == replace(changed, revision=2)


async def test_what_a_failed_transaction_wrote_is_gone(world: StoreWorld) -> None:
    [before] = await submit(world.store, 1)

    async def failing() -> None:
        async with world.store.submission.begin() as tx:
            await tx.add_jobs([job(500)])
            await tx.add_requests([request("k", [500])])
            await tx.update_jobs([replace(before, state=JobState.CANCELLED)])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await failing()
    assert await world.store.submission.list_jobs(ALL, before=None, limit=10) == [before]
    async with world.store.submission.begin() as tx:
        assert await tx.add_requests([request("k", [501])]) == [None]
        assert await tx.queued_counts([QUEUE]) == {QUEUE: 1}


async def test_a_submit_begins_with_all_it_needs(world: StoreWorld) -> None:
    async with world.store.submission.begin() as tx:
        await tx.add_queue(Queue(QueueName("a"), TENANT, created_at=5.0))
    await submit(world.store, 3)
    async with world.store.submission.begin() as tx:
        wanted = [QUEUE, QueueName("a"), QueueName("none")]
        intake = await tx.intake(wanted, jobs=2)
        nothing = await tx.intake([QueueName("none")], jobs=0)
        assert intake.queues == await tx.queues(wanted)
        assert intake.now == await tx.now()
    assert intake.queued == {QUEUE: 3, "a": 0}
    assert len(set(intake.ids)) == 2
    assert (nothing.queues, nothing.queued, nothing.ids) == ({}, {}, ())


async def test_ids_rise_and_are_never_given_twice(world: StoreWorld) -> None:
    async def take() -> list[JobId]:
        async with world.store.submission.begin() as tx:
            return await tx.next_job_ids(20)

    taken = await asyncio.gather(*(take() for _ in range(5)))
    assert all(ids == sorted(ids) for ids in taken)
    assert len({number for ids in taken for number in ids}) == 100


async def submit_once(store: Store, body: bytes) -> tuple[JobId, ...] | None:
    """The ids that the call answers with; None when its key was used for something else."""
    async with store.submission.begin() as tx:
        [number] = await tx.next_job_ids(1)
        mine = SubmitRequest(TENANT, "key", body, (number,))
        [standing] = await tx.add_requests([mine])
        if standing is None:
            await tx.add_jobs([job(number)])
            return mine.jobs
    return standing.jobs if standing.body_hash == body else None


async def test_ten_repeated_submits_in_parallel_write_one_job(world: StoreWorld) -> None:
    answers = await asyncio.gather(*(submit_once(world.store, b"same") for _ in range(10)))
    [only] = await world.store.submission.list_jobs(ALL, before=None, limit=10)
    assert answers == [(only.id,)] * 10


async def test_the_same_key_with_another_body_is_told_apart(world: StoreWorld) -> None:
    bodies = [b"one" if turn % 2 else b"two" for turn in range(10)]
    answers = await asyncio.gather(*(submit_once(world.store, body) for body in bodies))
    [only] = await world.store.submission.list_jobs(ALL, before=None, limit=10)
    assert answers.count((only.id,)) == 5
    assert answers.count(None) == 5


async def test_requests_of_many_calls_are_told_apart(world: StoreWorld) -> None:
    async with world.store.submission.begin() as tx:
        assert await tx.add_requests([request("b", [1, 2]), request("a", [])]) == [None, None]
    async with world.store.submission.begin() as tx:
        answers = await tx.add_requests([request("c", [9]), request("a", [8]), request("b", [7])])
        assert await tx.add_requests([]) == []
    assert answers == [None, request("a", []), request("b", [1, 2])]


async def test_jobs_are_listed_newest_first_by_page(world: StoreWorld) -> None:
    jobs = await submit(world.store, 7)
    newest = [each.id for each in reversed(jobs)]
    pages, before = [], None
    while page := await world.store.submission.list_jobs(ALL, before=before, limit=3):
        pages.append([each.id for each in page])
        before = page[-1].id
    assert pages == [newest[:3], newest[3:6], newest[6:]]


async def test_a_list_is_restricted_by_all_that_is_asked_for(world: StoreWorld) -> None:
    names = ("org", "org.a", "org.a.b", "organ", "org_a")
    made: dict[str, Job] = {}
    for name in names:
        given = spec(queue=name, labels=(("at", name), ("k", "v")))
        [made[name]] = await submit(world.store, spec=given)
    [other] = await submit(world.store, tenant=Tenant("other"))
    [done] = await submit(world.store, state=JobState.FAILED, spec=spec(array_id=JobId(3)))

    async def found(**wanted: object) -> set[JobId]:
        asked = replace(ALL, **wanted)  # type: ignore[arg-type]
        jobs = await world.store.submission.list_jobs(asked, before=None, limit=100)
        return {each.id for each in jobs}

    ids = {name: each.id for name, each in made.items()}
    assert await found() == {*ids.values(), done.id}
    assert await found(tenant=Tenant("other")) == {other.id}
    assert await found(queue="org") == {ids["org"], ids["org.a"], ids["org.a.b"]}
    assert await found(labels=(("k", "v"), ("at", "organ"))) == {ids["organ"]}
    assert await found(states=frozenset({JobState.FAILED})) == {done.id}
    assert await found(states=frozenset({JobState.QUEUED})) == set(ids.values())
    assert await found(states=frozenset({JobState.QUEUED, JobState.FAILED})) == await found()
    assert await found(ids=(ids["org"], other.id, JobId(999))) == {ids["org"]}
    assert await found(array_id=JobId(3)) == {done.id}
    assert await found(cluster="north") == set()


async def test_jobs_are_found_by_cluster_with_their_last_attempt(world: StoreWorld) -> None:
    await cluster_with(world.store, node("n1"))
    [ran, waits] = await submit(world.store, 2)
    at = (await node_ids(world.store))["n1"]
    await place(world.store, await lead(world.store), placement(ran, at))
    asked = replace(ALL, cluster=NORTH)
    [found] = await world.store.submission.list_jobs(asked, before=None, limit=10)
    assert (found.id, found.attempts) == (ran.id, 1)
    last = await world.store.submission.last_attempts([ran.id, waits.id])
    assert list(last) == [ran.id]
    assert last[ran.id].id == found.attempt
    assert await world.store.submission.get_attempt(last[ran.id].id) == last[ran.id]


async def test_live_jobs_are_counted_as_they_move(world: StoreWorld) -> None:
    jobs = await submit(world.store, 5)
    await submit(world.store, 2, spec=spec(queue="other"))
    async with world.store.submission.begin() as tx:
        await tx.update_jobs([
            replace(jobs[0], state=JobState.HELD),
            replace(jobs[1], state=JobState.RUNNING),
            replace(jobs[2], state=JobState.CANCELLED),
        ])
        assert await tx.queued_counts([QUEUE, QueueName("none")]) == {QUEUE: 3, "none": 0}
        assert await tx.live_jobs_in(QUEUE) == 4
    await world.store.upkeep.maintain()
    counts = await world.store.submission.queue_counts([QUEUE, QueueName("none")])
    assert counts == {
        QUEUE: {JobState.QUEUED: 2, JobState.HELD: 1, JobState.RUNNING: 1},
        "none": {},
    }


async def test_cordons_mark_clusters_and_nodes(world: StoreWorld) -> None:
    await cluster_with(world.store, node("n1"))
    async with world.store.submission.begin() as tx:
        assert await tx.set_cluster_cordon(NORTH, on=True, reason="move")
        assert not await tx.set_cluster_cordon(SOUTH, on=True, reason="")
        marked = await tx.set_node_cordon(NORTH, "n1", on=True, reason="fan")
        assert await tx.set_node_cordon(NORTH, "none", on=True, reason="fan") is None
    [cluster] = await world.store.submission.clusters()
    [found] = await world.store.submission.nodes(NORTH, after=("", ""), limit=10)
    assert (cluster.cordoned, cluster.cordon_reason, cluster.schedulable) == (True, "move", False)
    assert (found.id, found.cordoned, found.cordon_reason) == (marked, True, "fan")
    async with world.store.submission.begin() as tx:
        await tx.set_node_cordon(NORTH, "n1", on=False, reason="")
    [found] = await world.store.submission.nodes("", after=("", ""), limit=10)
    assert found.schedulable
