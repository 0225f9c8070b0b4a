"""Both clients against a fake control plane: the same verbs, the same behaviour."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from atoll.api.common.v1 import common_pb2
from atoll.api.placement.v1 import placement_pb2
from atoll.api.submission.v1 import submission_pb2 as pb
from atoll.client import AsyncClient, AsyncJob, Client, Job, TimedOut
from atoll.core.model.errors import (
    AlreadyExists,
    DomainError,
    ErrorCode,
    FailedPrecondition,
    InvalidInput,
    NotFound,
    Unavailable,
)
from atoll.core.model.lifecycle import JobState
from atoll.core.model.reason import ReasonCode
from tests.client.both import Both
from tests.client.fake import Server
from tests.client.story import in_turn, later
from tests.client.world import World

SPEC = {"name": "hello", "run": "echo hello"}
REQUEST = "0b1c2d3e-0000-4000-8000-000000000001"
DOWN = Unavailable("down", code=ErrorCode.UNAVAILABLE)


def verbs(kind: type) -> dict[str, list[str]]:
    return {
        name: list(inspect.signature(method).parameters)
        for name, method in vars(kind).items()
        if not name.startswith("_") and callable(method)
    }


@pytest.mark.parametrize(("sync", "aio"), [(Client, AsyncClient), (Job, AsyncJob)])
def test_both_clients_have_the_same_verbs(sync: type, aio: type) -> None:
    for one, other in zip(sync.__mro__[:2], aio.__mro__[:2], strict=True):
        assert verbs(one) == verbs(other)


def test_a_submit_gives_a_job(both: Both, world: World) -> None:
    job = both.do(both.client.submit(SPEC))
    assert (job.id, job.name, job.state, job.done) == (1, "hello", JobState.QUEUED, False)
    assert both.do(job.refresh()).info.submitted_at == 1.0
    assert world.metadata["x-atoll-principal"] == "tester"
    assert world.metadata["x-atoll-tenant"] == "default"


def test_a_list_of_specs_and_an_array_give_a_list_of_jobs(both: Both) -> None:
    jobs = both.do(both.client.submit([SPEC, {"run": "x", "array": 3}]))
    assert [job.id for job in jobs] == [1, 2, 3, 4]
    assert [job.name for job in jobs] == ["hello", "x", "x", "x"]


def test_a_file_is_submitted_by_its_path(both: Both, tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text("run: python train.py\n")
    assert both.do(both.client.submit(path)).name == "train"
    assert both.do(both.client.submit(str(path))).name == "train"


def test_one_spec_that_makes_several_jobs_belongs_into_a_list(both: Both, world: World) -> None:
    with pytest.raises(InvalidInput, match="in a list"):
        both.do(both.client.submit({"run": "x", "array": 3}))
    assert not world.jobs


def test_a_wrong_spec_is_never_sent(both: Both, world: World) -> None:
    with pytest.raises(InvalidInput) as caught:
        both.do(both.client.submit({"run": "x", "resources": {"accelerators": "H100:0.333"}}))
    assert caught.value.violations[0].field == "resources.accelerators"
    assert not world.calls["SubmitJobs"]


def test_a_submit_whose_reply_is_lost_makes_its_job_once(both: Both, world: World) -> None:
    world.lost_replies["SubmitJobs"] = 2
    assert both.do(both.client.submit(SPEC)).id == 1
    assert (world.calls["SubmitJobs"], len(world.jobs)) == (3, 1)


def test_the_same_request_id_finds_the_same_job(both: Both, world: World) -> None:
    ids = {both.do(both.client.submit(SPEC, request_id=REQUEST)).id for _ in range(2)}
    assert ids == {1}


def test_reads_are_repeated_a_bounded_number_of_times(both: Both, world: World) -> None:
    world.failures["GetJob"] = [DOWN] * 3
    both.do(both.client.submit(SPEC))
    assert both.do(both.client.get(1)).id == 1
    world.failures["GetJob"] = [DOWN] * 50
    before = world.calls["GetJob"]
    with pytest.raises(Unavailable, match="down"):
        both.do(both.client.get(1))
    assert world.calls["GetJob"] - before == 5


@pytest.mark.parametrize("verb", ["hold", "release"])
def test_what_a_repetition_could_harm_is_not_repeated(both: Both, world: World, verb: str) -> None:
    job = both.do(both.client.submit(SPEC))
    method = f"{verb.capitalize()}Job"
    world.failures[method] = [DOWN]
    with pytest.raises(Unavailable):
        both.do(getattr(job, verb)())
    assert world.calls[method] == 1


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (NotFound("no queue x", code=ErrorCode.QUEUE_NOT_FOUND), NotFound),
        (AlreadyExists("other body", code=ErrorCode.REQUEST_REUSED), AlreadyExists),
        (FailedPrecondition("not now", code=ErrorCode.WRONG_STATE), FailedPrecondition),
    ],
)
def test_refusals_are_typed(both: Both, world: World, error: DomainError, kind: type) -> None:
    world.failures["SubmitJobs"] = [error]
    with pytest.raises(kind) as caught:
        both.do(both.client.submit(SPEC))
    assert isinstance(caught.value, DomainError)
    assert (caught.value.code, caught.value.message) == (error.code, error.message)


def test_nobody_there_is_unavailable_with_the_address(both: Both, server: Server) -> None:
    server.stop()
    with pytest.raises(Unavailable) as caught:
        both.do(both.client.get(1))
    assert caught.value.metadata == {"address": server.address}


def test_a_list_goes_over_all_pages(both: Both, world: World) -> None:
    both.do(both.client.submit([{"run": "x", "array": 25}]))
    found = list(both.each(both.client.list(page_size=10)))
    assert [job.id for job in found] == list(range(25, 0, -1))
    assert world.calls["ListJobs"] == 3


def test_a_list_is_read_only_as_far_as_it_is_wanted(both: Both, world: World) -> None:
    both.do(both.client.submit([{"run": "x", "array": 25}]))
    jobs = both.each(both.client.list(page_size=10))
    assert next(jobs).id == 25
    assert world.calls["ListJobs"] == 1


def test_a_list_keeps_to_its_filters(both: Both, world: World) -> None:
    both.do(both.client.submit([{"run": "x", "labels": {"k": "v"}}, {"run": "y"}]))
    world.end(2)
    labelled = both.each(both.client.list(labels={"k": "v"}))
    ended = both.each(both.client.list(states=[JobState.SUCCEEDED]))
    assert ([job.id for job in labelled], [job.id for job in ended]) == ([1], [2])


def test_a_job_is_held_released_and_cancelled(both: Both) -> None:
    job = both.do(both.client.submit(SPEC))
    assert both.do(job.hold()).state is JobState.HELD
    assert both.do(job.release()).state is JobState.QUEUED
    assert both.do(job.set_priority(-7)).info.priority == -7
    assert both.do(job.cancel()).state is JobState.CANCELLED


def test_a_wait_ends_with_the_job(both: Both, world: World) -> None:
    job = both.do(both.client.submit(SPEC))
    later(lambda: world.end(job.id, 3))
    done = both.do(job.wait(20))
    assert (done.state, done.exit_code) == (JobState.FAILED, 3)


def test_a_wait_for_a_job_that_has_ended_returns_at_once(both: Both, world: World) -> None:
    job = both.do(both.client.submit(SPEC))
    world.end(job.id)
    assert both.do(job.wait(20)).state is JobState.SUCCEEDED
    assert both.do(job.wait(0.001)).done, "known already"


def test_a_wait_raises_at_its_timeout(both: Both) -> None:
    job = both.do(both.client.submit(SPEC))
    with pytest.raises(TimedOut) as caught:
        both.do(job.wait(0.2))
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.code is ErrorCode.TIMED_OUT


def test_a_wait_goes_over_a_broken_watch(both: Both, world: World) -> None:
    job = both.do(both.client.submit(SPEC))
    world.watch_breaks_after = [1, 1]
    in_turn(
        (lambda: world.watches >= 1, lambda: world.place(job.id)),
        (lambda: world.watches >= 2, lambda: world.start(job.id)),
        (lambda: world.watches >= 3, lambda: world.end(job.id)),
    )
    assert both.do(job.wait(20)).state is JobState.SUCCEEDED
    assert not world.watch_breaks_after, "both breaks have happened"


def test_a_wait_for_no_job_is_not_found(both: Both, world: World) -> None:
    job = both.do(both.client.submit(SPEC))
    del world.jobs[1]
    with pytest.raises(NotFound):
        both.do(job.wait(20))


def test_jobs_come_out_as_they_end(both: Both, world: World) -> None:
    jobs = both.do(both.client.submit([SPEC, SPEC, SPEC]))
    order = both.each(both.client.as_completed(jobs, 20))
    for job_id in (2, 3, 1):
        world.end(job_id)
        assert next(order).id == job_id
    assert list(order) == []


def test_waiting_reads_only_the_jobs_that_have_ended(both: Both, world: World) -> None:
    jobs = both.do(both.client.submit([SPEC] * 3))
    order = both.each(both.client.as_completed(jobs, 20))
    for job_id in (1, 2, 3):
        world.end(job_id)
        next(order)
    assert world.calls["ListJobs"] <= 4


def test_states_follow_a_job_to_its_end(both: Both, world: World) -> None:
    job = both.do(both.client.submit(SPEC))
    states = both.each(job.states())
    assert next(states).state is JobState.QUEUED
    world.place(1)
    assert next(states).state is JobState.ASSIGNED
    world.start(1)
    assert next(states).state is JobState.RUNNING
    world.end(1)
    assert next(states).state is JobState.SUCCEEDED
    assert list(states) == []
    assert job.done


def test_awaiting_a_job_waits_for_it(config: Any, world: World) -> None:
    import asyncio

    async def run() -> JobState:
        async with AsyncClient(config=config) as client:
            job = await client.submit(SPEC)
            world.end(job.id)
            return (await job).state

    assert asyncio.run(run()) is JobState.SUCCEEDED


def test_an_explanation_is_typed(both: Both, world: World) -> None:
    answer = placement_pb2.ExplainJobResponse(
        state=common_pb2.JOB_STATE_QUEUED, summary="waits", jobs_ahead=2, as_of=9.0
    )
    answer.reasons.add(code="DEVICES_SHORT", needed=8, available=4, unit="devices")
    answer.reasons.add(code="OF_A_NEWER_SERVER", message="?")
    answer.tallies.add(cluster="here", nodes=3, counts={"DEVICES_SHORT": 3})
    world.explanations[1] = answer
    found = both.do(both.client.explain(1))
    assert (found.state, found.summary, found.jobs_ahead) == (JobState.QUEUED, "waits", 2)
    assert [reason.code for reason in found.reasons] == [
        ReasonCode.DEVICES_SHORT,
        "OF_A_NEWER_SERVER",
    ]
    assert isinstance(found.reasons[0].code, ReasonCode)
    assert found.tallies[0].counts == {"DEVICES_SHORT": 3}


def test_queues_are_created_changed_listed_and_deleted(both: Both) -> None:
    client = both.client
    both.do(client.create_queue("team.a", description="ours", max_queued_jobs=5))
    both.do(client.create_queue("team.b"))
    changed = both.do(client.update_queue("team.a", device_limit_blocks=400))
    assert (changed.description, changed.max_queued_jobs, changed.device_limit_blocks) == (
        "ours", 5, 400,
    )  # fmt: skip
    assert [queue.name for queue in both.each(client.queues())] == ["team.a", "team.b"]
    both.do(client.delete_queue("team.b"))
    with pytest.raises(NotFound):
        both.do(client.get_queue("team.b"))


def test_clusters_and_nodes_are_listed_and_cordoned(both: Both, world: World) -> None:
    world.clusters.append(pb.Cluster(name="here", devices={"H100": 8}, free_blocks={"H100": 750}))
    node = pb.Node(cluster="here", id=1, device_use=[pb.DeviceUse(index=0, blocks=50)])
    node.inventory.name = "n0"
    world.nodes.append(node)
    (cluster,) = both.do(both.client.clusters())
    (found,) = both.each(both.client.nodes("here"))
    assert (cluster.devices, cluster.free_blocks) == ({"H100": 8}, {"H100": 750})
    assert (found.inventory.name, found.device_use[0].blocks) == ("n0", 50)
    both.do(both.client.cordon("here", "n0", reason="fans"))
    assert world.cordons == [("here", "n0", "fans")]
    both.do(both.client.uncordon("here", "n0"))
    assert world.cordons == []
