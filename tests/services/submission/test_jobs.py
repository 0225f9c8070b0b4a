import asyncio
from typing import Any

import pytest

from atoll.api.common.v1 import common_pb2 as common
from atoll.api.submission.v1 import submission_pb2 as api
from atoll.core.model.errors import (
    Aborted,
    ErrorCode,
    FailedPrecondition,
    InvalidInput,
    NotFound,
)
from atoll.core.model.ids import DEFAULT_SHARD
from atoll.core.model.lifecycle import JobWish
from tests.services.submission.worlds import TENANT, Caller, World, attempt_of, node, refusal, spec

QUEUED, HELD, ASSIGNED, CANCELLED = (
    common.JOB_STATE_QUEUED,
    common.JOB_STATE_HELD,
    common.JOB_STATE_ASSIGNED,
    common.JOB_STATE_CANCELLED,
)


def page(size: int = 0, token: str = "") -> common.PageRequest:
    return common.PageRequest(page_size=size, page_token=token)


async def listed(caller: Caller, **wanted: Any) -> list[int]:
    """Ids of all pages, three jobs a page."""
    found: list[int] = []
    token = ""
    while True:
        answer = await caller.ListJobs(api.ListJobsRequest(page=page(3, token), **wanted))
        assert len(answer.jobs) <= 3
        found.extend(job.id for job in answer.jobs)
        token = answer.next_page_token
        if not token:
            return found


async def cancelled(caller: Caller, *numbers: int) -> list[api.Job]:
    answer = await caller.CancelJobs(api.CancelJobsRequest(job_ids=numbers))
    return list(answer.jobs)


async def test_pages_show_every_job_once_newest_first(ann: Caller) -> None:
    numbers = await ann.submit(*(spec(f"j{i}") for i in range(10)))
    assert await listed(ann) == sorted(numbers, reverse=True)


async def test_jobs_that_arrive_between_pages_shift_nothing(ann: Caller) -> None:
    numbers = await ann.submit(*(spec(f"j{i}") for i in range(4)))
    first = await ann.ListJobs(api.ListJobsRequest(page=page(2)))
    await ann.submit(spec("late"))
    request = api.ListJobsRequest(page=page(2, first.next_page_token))
    second = await ann.ListJobs(request)
    assert [job.id for job in (*first.jobs, *second.jobs)] == sorted(numbers, reverse=True)


async def test_a_last_page_that_is_full_has_no_next(ann: Caller) -> None:
    await ann.submit(spec("a"), spec("b"))
    answer = await ann.ListJobs(api.ListJobsRequest(page=page(2)))
    assert not answer.next_page_token


async def test_filters(world: World, ann: Caller) -> None:
    await ann.CreateQueue(api.CreateQueueRequest(queue=api.Queue(name="org")))
    await ann.CreateQueue(api.CreateQueueRequest(queue=api.Queue(name="org.team")))
    plain, team, org = await ann.submit(
        spec("a", labels={"x": "1"}),
        spec("b", queue="org.team", labels={"x": "1", "y": "2"}),
        spec("c", queue="org"),
    )
    array = await ann.submit(spec("d", array=2))
    await cancelled(ann, plain)
    await world.add_cluster("alpha", node())
    await world.place(org, "alpha")
    assert await listed(ann, queue="org") == [org, team]
    assert await listed(ann, labels={"x": "1"}) == [team, plain]
    assert await listed(ann, labels={"x": "1", "y": "2"}) == [team]
    assert await listed(ann, states=[CANCELLED, ASSIGNED]) == [org, plain]
    assert await listed(ann, array_id=array[0]) == array[::-1]
    assert await listed(ann, job_ids=[plain, org, 1 << 40]) == [org, plain]
    assert await listed(ann, cluster="alpha") == [org]
    assert await listed(ann, queue="or") == []


async def test_a_token_of_another_query_is_refused(ann: Caller) -> None:
    await ann.submit(*(spec(f"j{i}") for i in range(4)))
    token = (await ann.ListJobs(api.ListJobsRequest(page=page(2)))).next_page_token
    for request in (
        api.ListJobsRequest(page=page(2, token), queue="default"),
        api.ListJobsRequest(page=page(2, "nonsense")),
    ):
        found = await refusal(ann.ListJobs(request))
        assert found.code is ErrorCode.BAD_PAGE_TOKEN
    await ann.ListJobs(api.ListJobsRequest(page=page(3, token)))  # another size is no other query


async def test_a_state_that_nobody_knows_is_refused(ann: Caller) -> None:
    unknown: Any = 99
    found = await refusal(ann.ListJobs(api.ListJobsRequest(states=[unknown])))
    assert isinstance(found, InvalidInput)


async def test_nobody_sees_or_touches_jobs_of_another_tenant(world: World, ann: Caller) -> None:
    (number,) = await ann.submit(spec())
    bob = world.caller("bob", "lab")
    assert await listed(bob) == []
    for call in (
        bob.GetJob(api.GetJobRequest(job_id=number)),
        bob.CancelJobs(api.CancelJobsRequest(job_ids=[number])),
        bob.HoldJob(api.HoldJobRequest(job_id=number)),
        bob.ReleaseJob(api.ReleaseJobRequest(job_id=number)),
        bob.SetJobPriority(api.SetJobPriorityRequest(job_id=number, priority=5)),
    ):
        assert isinstance(await refusal(call), NotFound)
    assert (await ann.job(number)).etag == "1"


async def test_a_waiting_job_is_cancelled_at_once(ann: Caller) -> None:
    queued, held = await ann.submit(spec("a"), spec("b"))
    await ann.HoldJob(api.HoldJobRequest(job_id=held))
    for job in await cancelled(ann, queued, held):
        assert (job.state, job.reason, job.cancelling) == (CANCELLED, "USER_CANCEL", False)
        assert job.ended_at > 0


async def test_a_placed_job_gets_the_wish(world: World, ann: Caller) -> None:
    (number,) = await ann.submit(spec())
    await world.add_cluster("alpha", node())
    await world.place(number, "alpha")
    (job,) = await cancelled(ann, number)
    assert (job.state, job.cancelling, job.cluster) == (ASSIGNED, True, "alpha")
    assert job.attempt == f"{number}.1"
    assert (await world.stored(number)).wish is JobWish.CANCEL
    (again,) = await cancelled(ann, number)
    assert again.etag == job.etag  # the wish stands already


async def test_ended_jobs_are_shown_as_they_are_in_the_order_asked(ann: Caller) -> None:
    first, second = await ann.submit(spec("a"), spec("b"))
    (before,) = await cancelled(ann, first)
    after = await cancelled(ann, second, first, second)
    assert [job.id for job in after] == [second, first, second]
    assert after[1].ended_at == before.ended_at


async def test_cancelling_is_all_or_nothing(ann: Caller) -> None:
    (number,) = await ann.submit(spec())
    found = await refusal(cancelled(ann, number, 1 << 40, 1 << 41))
    assert isinstance(found, NotFound)
    assert str(1 << 40) in found.message
    assert str(1 << 41) in found.message
    assert (await ann.job(number)).state == QUEUED


async def test_many_cancels_of_the_same_jobs_do_not_deadlock(ann: Caller) -> None:
    numbers = await ann.submit(*(spec(f"j{i}") for i in range(40)))
    calls = [cancelled(ann, *(numbers if i % 2 else numbers[::-1])) for i in range(12)]
    for jobs in await asyncio.gather(*calls):
        assert {job.state for job in jobs} == {CANCELLED}


async def test_hold_and_release(ann: Caller) -> None:
    (number,) = await ann.submit(spec())
    held = (await ann.HoldJob(api.HoldJobRequest(job_id=number, etag="1"))).job
    assert (held.state, held.etag) == (HELD, "2")
    again = (await ann.HoldJob(api.HoldJobRequest(job_id=number))).job
    assert again.etag == "2"
    free = (await ann.ReleaseJob(api.ReleaseJobRequest(job_id=number, etag="2"))).job
    assert (free.state, free.etag) == (QUEUED, "3")
    assert (await ann.ReleaseJob(api.ReleaseJobRequest(job_id=number))).job.etag == "3"


async def test_an_old_etag_changes_nothing(ann: Caller) -> None:
    (number,) = await ann.submit(spec())
    await ann.HoldJob(api.HoldJobRequest(job_id=number))
    for call in (
        ann.HoldJob(api.HoldJobRequest(job_id=number, etag="1")),
        ann.ReleaseJob(api.ReleaseJobRequest(job_id=number, etag="1")),
        ann.SetJobPriority(api.SetJobPriorityRequest(job_id=number, priority=1, etag="x")),
    ):
        found = await refusal(call)
        assert isinstance(found, Aborted)
        assert (found.code, found.metadata["etag"]) == (ErrorCode.ETAG_MISMATCH, "2")


async def test_a_placed_job_cannot_be_held(world: World, ann: Caller) -> None:
    (number,) = await ann.submit(spec())
    await world.add_cluster("alpha", node())
    await world.place(number, "alpha")
    for call in (
        ann.HoldJob(api.HoldJobRequest(job_id=number)),
        ann.ReleaseJob(api.ReleaseJobRequest(job_id=number)),
    ):
        found = await refusal(call)
        assert isinstance(found, FailedPrecondition)
        assert (found.code, found.metadata["state"]) == (ErrorCode.WRONG_STATE, "ASSIGNED")


async def test_priorities(ann: Caller) -> None:
    (number,) = await ann.submit(spec())
    request = api.SetJobPriorityRequest(job_id=number, priority=77, etag="1")
    job = (await ann.SetJobPriority(request)).job
    assert (job.priority, job.etag, job.spec.priority_class) == (77, "2", "normal")
    request.etag = ""
    assert (await ann.SetJobPriority(request)).job.etag == "2"  # nothing to change
    await cancelled(ann, number)
    assert (await refusal(ann.SetJobPriority(request))).code is ErrorCode.WRONG_STATE
    request.priority = 2_000_000
    assert isinstance(await refusal(ann.SetJobPriority(request)), InvalidInput)


async def test_changes_reach_the_leader_and_the_history(world: World, ann: Caller) -> None:
    store = world.stores.placement
    before = await store.load(DEFAULT_SHARD)
    since = await world.stores.submission.events_now()
    first, second = await ann.submit(spec("a"), spec("b"))
    await ann.HoldJob(api.HoldJobRequest(job_id=first))
    await ann.SetJobPriority(api.SetJobPriorityRequest(job_id=second, priority=5))
    await cancelled(ann, first)
    delta = await store.catch_up(DEFAULT_SHARD, before.cursor)
    assert {view.pending.id for view in delta.jobs} == {first, second}
    page = await world.stores.submission.events_after(since, tenant=TENANT)
    told = [(e.job, e.event and e.event.value, e.message, e.principal) for e in page.events]
    assert told == [
        (first, None, "", "ann"),
        (second, None, "", "ann"),
        (first, "HELD", "", "ann"),
        (second, None, "priority 0 -> 5", "ann"),
        (first, "CANCELLED", "", "ann"),
    ]


@pytest.mark.parametrize("number", [0, -1])
async def test_an_id_is_positive(ann: Caller, number: int) -> None:
    assert isinstance(await refusal(ann.job(number)), InvalidInput)


async def test_an_unknown_job_is_not_found(ann: Caller) -> None:
    found = await refusal(ann.job(1 << 40))
    assert (found.code, found.metadata["job"]) == (ErrorCode.JOB_NOT_FOUND, str(1 << 40))


async def test_a_cancel_and_a_placement_of_the_same_job_never_both_win(
    world: World, ann: Caller
) -> None:
    await world.add_cluster("alpha", node())
    numbers = await ann.submit(*(spec(f"j{i}") for i in range(5)))
    for number in numbers:
        await asyncio.gather(
            cancelled(ann, number), world.place(number, "alpha"), return_exceptions=True
        )
        job = await world.stored(number)
        attempt = await world.stores.submission.get_attempt(attempt_of(number))
        ended_here = job.state.value == "CANCELLED" and attempt is None
        wished = job.wish is JobWish.CANCEL and job.attempt == attempt_of(number)
        assert ended_here or wished
