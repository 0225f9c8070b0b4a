import asyncio

import pytest

from atoll.api.common.v1 import common_pb2 as common
from atoll.api.submission.v1 import submission_pb2 as api
from atoll.core.model.errors import AlreadyExists, ErrorCode, InvalidInput, NotFound
from atoll.core.model.ids import JobId
from atoll.core.model.trace import job_trace
from tests.services.submission.worlds import (
    Caller,
    Stores,
    World,
    gpu_spec,
    node,
    refusal,
    spec,
    uuid,
)


async def test_a_submitted_job_is_there_as_it_was_given(ann: Caller) -> None:
    (number,) = await ann.submit(
        spec("train", labels={"team": "a"}, priority_class="high", time_limit_s=60)
    )
    job = await ann.job(number)
    assert (job.spec.name, job.spec.queue, job.spec.labels["team"]) == ("train", "default", "a")
    assert (job.state, job.principal, job.tenant) == (common.JOB_STATE_QUEUED, "ann", "default")
    assert (job.priority, job.attempts, job.etag) == (1_000, 0, "1")
    assert job.submitted_at > 0
    assert job.spec.groups[0].min_count == 1


async def test_ids_are_in_the_order_of_the_specs(ann: Caller) -> None:
    numbers = await ann.submit(spec("a"), spec("b", array=3), spec("c"))
    jobs = [await ann.job(number) for number in numbers]
    assert [job.spec.name for job in jobs] == ["a", "b", "b", "b", "c"]
    assert [job.array_id for job in jobs] == [0, numbers[1], numbers[1], numbers[1], 0]
    assert [job.array_index for job in jobs] == [0, 0, 1, 2, 0]


async def test_the_values_of_secrets_never_come_back(world: World, ann: Caller) -> None:
    (number,) = await ann.submit(spec(secrets={"TOKEN": "hunter2"}))
    shown = [await ann.job(number), await ann.ListJobs(api.ListJobsRequest())]
    shown.append(await ann.CancelJobs(api.CancelJobsRequest(job_ids=[number])))
    assert "hunter2" not in repr(shown)
    assert dict((await ann.job(number)).spec.secrets) == {"TOKEN": ""}
    kept = await world.stores.dispatch.start_specs([JobId(number)])
    assert dict(kept[JobId(number)].spec.secrets) == {"TOKEN": "hunter2"}


async def test_a_repeated_call_finds_its_jobs(ann: Caller) -> None:
    request = api.SubmitJobsRequest(jobs=[spec("a"), spec("b")], request_id=uuid())
    first = await ann.SubmitJobs(request)
    again = await ann.SubmitJobs(request)
    assert list(again.job_ids) == list(first.job_ids)
    assert (first.replayed, again.replayed) == (False, True)
    assert len((await ann.ListJobs(api.ListJobsRequest())).jobs) == 2


async def test_the_same_key_with_another_body_is_refused(ann: Caller) -> None:
    key = uuid()
    await ann.submit(spec("a", labels={"x": "1", "y": "2"}), key=key)
    found = await refusal(ann.submit(spec("a", labels={"x": "1", "y": "3"}), key=key))
    assert isinstance(found, AlreadyExists)
    assert found.code is ErrorCode.REQUEST_REUSED


async def test_the_order_of_map_entries_makes_no_other_body(ann: Caller) -> None:
    key = uuid()
    forwards = {f"k{i}": "v" for i in range(20)}
    backwards = dict(reversed(forwards.items()))
    first = await ann.submit(spec("a", labels=forwards), key=key)
    assert await ann.submit(spec("a", labels=backwards), key=key) == first


async def test_one_key_in_parallel_makes_one_job(ann: Caller) -> None:
    key = uuid()
    answers = await asyncio.gather(*(ann.submit(spec("a"), key=key) for _ in range(10)))
    assert len({tuple(answer) for answer in answers}) == 1
    assert len((await ann.ListJobs(api.ListJobsRequest())).jobs) == 1


async def test_one_key_in_parallel_over_two_servers_makes_one_job(
    stores: Stores, world: World, ann: Caller
) -> None:
    other = World(stores)
    await other.start()
    try:
        key = uuid()
        callers = [ann, other.caller("ann")] * 5
        answers = await asyncio.gather(*(caller.submit(spec("a"), key=key) for caller in callers))
        assert len({tuple(answer) for answer in answers}) == 1
    finally:
        await other.close()


async def test_a_key_belongs_to_its_tenant(world: World, ann: Caller) -> None:
    bob = world.caller("bob", "lab")
    queue = api.Queue(name="lab-default")
    await bob.CreateQueue(api.CreateQueueRequest(queue=queue))
    key = uuid()
    first = await ann.submit(spec("a"), key=key)
    second = await bob.submit(spec("b", queue="lab-default"), key=key)
    assert first != second


async def test_a_repeated_call_that_would_be_refused_by_now_finds_its_jobs(ann: Caller) -> None:
    await ann.CreateQueue(api.CreateQueueRequest(queue=api.Queue(name="brief")))
    key = uuid()
    (number,) = await ann.submit(spec("a", queue="brief"), key=key)
    await ann.CancelJobs(api.CancelJobsRequest(job_ids=[number]))
    await ann.DeleteQueue(api.DeleteQueueRequest(name="brief"))
    assert await ann.submit(spec("a", queue="brief"), key=key) == [number]
    found = await refusal(ann.submit(spec("a", queue="brief"), key=uuid()))
    assert found.code is ErrorCode.QUEUE_NOT_FOUND


async def test_a_refused_call_does_not_use_up_its_key(ann: Caller) -> None:
    key = uuid()
    found = await refusal(ann.submit(spec("a", queue="later"), key=key))
    assert isinstance(found, NotFound)
    await ann.CreateQueue(api.CreateQueueRequest(queue=api.Queue(name="later")))
    assert len(await ann.submit(spec("a", queue="later"), key=key)) == 1


async def test_nothing_is_written_when_one_of_many_is_wrong(ann: Caller) -> None:
    bad = spec("c")
    bad.groups[0].shapes[0].cpu_milli = -1
    found = await refusal(ann.submit(spec("a"), spec("b"), bad))
    assert isinstance(found, InvalidInput)
    assert [v.field for v in found.violations] == ["jobs[2].groups[0].shapes[0].cpu_milli"]
    assert not (await ann.ListJobs(api.ListJobsRequest())).jobs


async def test_calls_committed_together_have_outcomes_of_their_own(ann: Caller) -> None:
    calls = [ann.submit(spec(f"j{i}", queue="none" if i % 3 else "default")) for i in range(30)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    written = [answer for answer in answers if isinstance(answer, list)]
    assert [isinstance(answer, list) for answer in answers] == [i % 3 == 0 for i in range(30)]
    numbers = {number for answer in written for number in answer}
    listed = (await ann.ListJobs(api.ListJobsRequest())).jobs
    assert {job.id for job in listed} == numbers
    assert len(numbers) == 10


async def test_check_only_writes_nothing(ann: Caller) -> None:
    answer = await ann.SubmitJobs(api.SubmitJobsRequest(jobs=[spec()], validate_only=True))
    assert not answer.job_ids
    assert not (await ann.ListJobs(api.ListJobsRequest())).jobs
    request = api.SubmitJobsRequest(jobs=[spec(queue="none")], validate_only=True)
    assert (await refusal(ann.SubmitJobs(request))).code is ErrorCode.QUEUE_NOT_FOUND


async def test_a_queue_of_another_tenant_is_not_found(world: World, ann: Caller) -> None:
    found = await refusal(world.caller("bob", "lab").submit(spec()))
    assert found.code is ErrorCode.QUEUE_NOT_FOUND


async def test_a_full_queue_refuses_whole_calls(ann: Caller) -> None:
    queue = api.Queue(name="small", max_queued_jobs=3)
    await ann.CreateQueue(api.CreateQueueRequest(queue=queue))
    numbers = await ann.submit(spec("a", queue="small"), spec("b", queue="small"))
    found = await refusal(ann.submit(spec("c", queue="small", array=2)))
    assert found.code is ErrorCode.QUEUE_FULL
    assert found.metadata == {"queue": "small", "queued": "2", "limit": "3"}
    await ann.submit(spec("d", queue="small"))
    await ann.CancelJobs(api.CancelJobsRequest(job_ids=numbers[:1]))
    await ann.submit(spec("e", queue="small"))


async def test_parallel_calls_never_overfill_a_queue(ann: Caller) -> None:
    queue = api.Queue(name="small", max_queued_jobs=7)
    await ann.CreateQueue(api.CreateQueueRequest(queue=queue))
    calls = [ann.submit(spec("a", queue="small")) for _ in range(20)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(answer, list) for answer in answers) == 7


async def test_dependencies_by_id_and_by_name(ann: Caller) -> None:
    (first,) = await ann.submit(spec("first"))
    after = [common.Dependency(name="b"), common.Dependency(id=first)]
    numbers = await ann.submit(spec("a", depends_on=after), spec("b"))
    waits = (await ann.job(numbers[0])).spec.depends_on
    assert [dependency.id for dependency in waits] == [first, numbers[1]]


async def test_a_dependency_has_to_exist_and_be_able_to_succeed(world: World, ann: Caller) -> None:
    (number,) = await ann.submit(spec("gone"))
    await ann.CancelJobs(api.CancelJobsRequest(job_ids=[number]))
    waits = [common.Dependency(id=number), common.Dependency(id=1 << 40)]
    found = await refusal(ann.submit(spec("a"), spec("b", depends_on=waits)))
    assert isinstance(found, InvalidInput)
    assert [(v.field, v.code) for v in found.violations] == [
        ("jobs[1].depends_on", ErrorCode.WRONG_STATE),
        ("jobs[1].depends_on", ErrorCode.JOB_NOT_FOUND),
    ]


async def test_a_dependency_on_another_tenants_job_does_not_exist(
    world: World, ann: Caller
) -> None:
    (number,) = await ann.submit(spec("secret-project"))
    bob = world.caller("bob", "lab")
    await bob.CreateQueue(api.CreateQueueRequest(queue=api.Queue(name="lab")))
    waits = [common.Dependency(id=number)]
    found = await refusal(bob.submit(spec("b", queue="lab", depends_on=waits)))
    assert found.code is ErrorCode.JOB_NOT_FOUND


async def test_a_cycle_is_named(ann: Caller) -> None:
    call = ann.submit(
        spec("a", depends_on=[common.Dependency(name="b")]),
        spec("b", depends_on=[common.Dependency(name="a")]),
    )
    found = await refusal(call)
    assert found.code is ErrorCode.DEPENDENCY_CYCLE
    assert "a -> b -> a" in found.message


async def test_without_a_cluster_nothing_is_impossible(ann: Caller) -> None:
    await ann.submit(gpu_spec(kind="H100", count=64, blocks=100))


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (gpu_spec(kind="H100", count=9, blocks=100), "9 H100"),
        (gpu_spec(kind="TPU", count=1, blocks=100), "no TPU"),
        (spec(cpu_milli=65_000), "65 CPUs"),
        (gpu_spec(kind="H100", count=8, blocks=100, min_count=3), "needs 3 tasks"),
        (spec(on_lost=common.ON_LOST_REQUEUE), "on_lost: hold"),
    ],
    ids=["more devices than a node has", "no such kind", "cpu", "gang", "no guard"],
)
async def test_what_no_cluster_could_ever_run_is_refused_with_numbers(
    world: World, ann: Caller, wanted: common.JobSpec, told: str
) -> None:
    await world.add_cluster("alpha", node("n1", gpus=8), node("n2", gpus=8))
    found = await refusal(ann.submit(spec("fits"), wanted))
    assert isinstance(found, InvalidInput)
    assert found.code is ErrorCode.NEVER_FITS
    assert found.violations[0].field == "jobs[1]"
    assert told in found.message


async def test_what_fits_somewhere_is_let_in(world: World, ann: Caller) -> None:
    await world.add_cluster("alpha", node("n1", gpus=1))
    await world.add_cluster("beta", node("n1", gpus=8), can_guard=True)
    await ann.submit(gpu_spec(kind="H100", count=8, blocks=100))
    await ann.submit(gpu_spec(kind="", count=1, blocks=25))
    await ann.submit(spec(on_lost=common.ON_LOST_REQUEUE))


async def test_slices_are_written_in_one_way(world: World, ann: Caller) -> None:
    numbers = await ann.submit(
        gpu_spec("a", kind="H100", count=1, profile="1g.10gb"),
        gpu_spec("b", kind="H100", count=1, profile="1g.10gb", blocks=100),
    )
    stored = [await world.stored(number) for number in numbers]
    assert stored[0].spec.groups == stored[1].spec.groups


async def test_an_unknown_profile_is_refused(ann: Caller) -> None:
    found = await refusal(ann.submit(gpu_spec(kind="H100", count=1, profile="1g.11gb")))
    assert isinstance(found, InvalidInput)
    assert found.violations[0].field == "jobs[0].groups[0].shapes[0].device.profile"


async def test_the_proto_bounds_a_call(ann: Caller) -> None:
    found = await refusal(ann.submit())
    assert isinstance(found, InvalidInput)
    found = await refusal(ann.submit(*[spec()] * 1_001))
    assert isinstance(found, InvalidInput)
    found = await refusal(ann.submit(spec(), key="not-a-uuid"))
    assert isinstance(found, InvalidInput)
    assert found.violations[0].field == "request_id"


async def test_a_thousand_jobs_go_in_one_call(ann: Caller) -> None:
    numbers = await ann.submit(*(spec(f"j{i}") for i in range(1_000)))
    assert len(set(numbers)) == 1_000


async def test_a_spec_has_a_size(ann: Caller) -> None:
    big = spec()
    big.groups[0].run = "x" * 150_000
    big.groups[0].setup = "x" * 150_000
    found = await refusal(ann.submit(big))
    assert (found.code, found.metadata["field"]) == (ErrorCode.TOO_LARGE, "jobs[0]")


async def test_the_callers_trace_is_kept_with_the_job(world: World, ann: Caller) -> None:
    parent = f"00-{'a' * 32}-{'b' * 16}-01"
    ann.metadata = (*ann.metadata, ("traceparent", parent))
    (number,) = await ann.submit(spec())
    assert (await world.stored(number)).trace == parent
    assert (await ann.job(number)).trace == job_trace(parent, JobId(number))
