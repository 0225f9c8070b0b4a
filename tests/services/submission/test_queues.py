import asyncio
import math
from typing import Any

import pytest

from atoll.api.common.v1 import common_pb2 as common
from atoll.api.submission.v1 import submission_pb2 as api
from atoll.core.model.errors import (
    Aborted,
    AlreadyExists,
    ErrorCode,
    FailedPrecondition,
    InvalidInput,
    NotFound,
)
from atoll.core.model.inventory import Device, NodeInventory
from tests.services.submission.worlds import Caller, World, names, refusal, spec


async def create(caller: Caller, name: str, **fields: Any) -> api.Queue:
    queue = api.Queue(name=name, **fields)
    made: api.Queue = (await caller.CreateQueue(api.CreateQueueRequest(queue=queue))).queue
    return made


async def get(caller: Caller, name: str) -> api.Queue:
    found: api.Queue = (await caller.GetQueue(api.GetQueueRequest(name=name))).queue
    return found


async def update(caller: Caller, *mask: str, **fields: Any) -> api.Queue:
    request = api.UpdateQueueRequest(queue=api.Queue(**fields), update_mask=mask)
    changed: api.Queue = (await caller.UpdateQueue(request)).queue
    return changed


async def delete(caller: Caller, name: str, etag: str = "") -> None:
    await caller.DeleteQueue(api.DeleteQueueRequest(name=name, etag=etag))


async def test_a_queue_is_there_as_it_was_created(ann: Caller) -> None:
    made = await create(
        ann, "org.team", description="ours", max_queued_jobs=5, device_limit_blocks=800
    )
    assert made == await get(ann, "org.team")
    assert (made.description, made.max_queued_jobs, made.device_limit_blocks) == ("ours", 5, 800)
    assert (made.etag, dict(made.job_counts)) == ("1", {})
    assert made.created_at > 0


async def test_live_jobs_are_counted_by_state(ann: Caller) -> None:
    numbers = await ann.submit(spec("a"), spec("b"), spec("c"))
    await ann.HoldJob(api.HoldJobRequest(job_id=numbers[0]))
    await ann.CancelJobs(api.CancelJobsRequest(job_ids=numbers[1:2]))
    assert dict((await get(ann, "default")).job_counts) == {"QUEUED": 1, "HELD": 1}


async def test_a_name_is_taken_once_by_anyone(world: World, ann: Caller) -> None:
    await create(ann, "team")
    for caller in (ann, world.caller("bob", "lab")):
        found = await refusal(create(caller, "team"))
        assert isinstance(found, AlreadyExists)
        assert found.code is ErrorCode.QUEUE_EXISTS


@pytest.mark.parametrize("name", ["", "a b", "a..b", ".a", "a.", "a/b", "é", "x" * 257])
async def test_names_are_paths(ann: Caller, name: str) -> None:
    found = await refusal(create(ann, name))
    assert isinstance(found, InvalidInput)
    assert found.violations[0].field == "queue.name"


async def test_a_queue_is_required(ann: Caller) -> None:
    found = await refusal(ann.CreateQueue(api.CreateQueueRequest()))
    assert isinstance(found, InvalidInput)


async def test_only_the_fields_of_the_mask_change(ann: Caller) -> None:
    await create(ann, "team", description="old", max_queued_jobs=5, device_limit_blocks=100)
    changed = await update(
        ann, "max_queued_jobs", name="team", description="new", max_queued_jobs=7
    )
    assert (changed.description, changed.max_queued_jobs) == ("old", 7)
    assert (changed.device_limit_blocks, changed.etag) == (100, "2")
    changed = await update(ann, name="team", description="new")
    assert (changed.description, changed.max_queued_jobs) == ("new", 0)
    assert changed.device_limit_blocks == 0


async def test_an_unknown_field_in_the_mask_is_refused(ann: Caller) -> None:
    found = await refusal(update(ann, "colour", name="default"))
    assert isinstance(found, InvalidInput)
    assert found.code is ErrorCode.UNKNOWN_FIELD


async def test_one_of_two_updates_with_the_same_etag_wins(ann: Caller) -> None:
    await create(ann, "team")
    calls = [update(ann, name="team", etag="1", max_queued_jobs=count) for count in range(1, 6)]
    answers = await asyncio.gather(*(refusal_or(call) for call in calls))
    assert sorted(answers) == ["ETAG_MISMATCH"] * 4 + ["ok"]


async def refusal_or(call: Any) -> str:
    outcome = (await asyncio.gather(call, return_exceptions=True))[0]
    if isinstance(outcome, BaseException):
        return (await refusal(_raised(outcome))).code.value
    return "ok"


async def _raised(error: BaseException) -> None:
    raise error


async def test_a_queue_with_live_jobs_is_not_deleted(ann: Caller) -> None:
    await create(ann, "team")
    numbers = await ann.submit(spec("a", queue="team"))
    found = await refusal(delete(ann, "team"))
    assert isinstance(found, FailedPrecondition)
    assert (found.code, found.metadata["jobs"]) == (ErrorCode.QUEUE_NOT_EMPTY, "1")
    await ann.CancelJobs(api.CancelJobsRequest(job_ids=numbers))
    await delete(ann, "team")
    assert isinstance(await refusal(get(ann, "team")), NotFound)
    assert (await ann.job(numbers[0])).spec.queue == "team"  # its history stays


async def test_a_delete_with_an_old_etag_is_refused(ann: Caller) -> None:
    await create(ann, "team")
    await update(ann, name="team", description="new")
    assert isinstance(await refusal(delete(ann, "team", etag="1")), Aborted)
    await delete(ann, "team", etag="2")


async def test_submits_and_a_delete_never_leave_a_job_without_its_queue(ann: Caller) -> None:
    for round_number in range(5):
        name = f"team{round_number}"
        await create(ann, name)
        submits = [ann.submit(spec("a", queue=name)) for _ in range(4)]
        outcomes = await asyncio.gather(*submits, delete(ann, name), return_exceptions=True)
        deleted = outcomes[-1] is None
        written = [outcome for outcome in outcomes[:-1] if isinstance(outcome, list)]
        assert deleted != bool(written)


async def test_pages_by_name(world: World, ann: Caller) -> None:
    for name in ("b", "a.x", "c", "a"):
        await create(ann, name)
    await create(world.caller("bob", "lab"), "lab")
    page = common.PageRequest(page_size=3)
    first = await ann.ListQueues(api.ListQueuesRequest(page=page))
    page.page_token = first.next_page_token
    second = await ann.ListQueues(api.ListQueuesRequest(page=page))
    found = [*names(first.queues), *names(second.queues)]
    assert found == ["a", "a.x", "b", "c", "default"]
    assert not second.next_page_token


async def test_nobody_touches_queues_of_another_tenant(world: World, ann: Caller) -> None:
    bob = world.caller("bob", "lab")
    for call in (
        get(bob, "default"),
        update(bob, name="default", description="mine"),
        delete(bob, "default"),
    ):
        assert isinstance(await refusal(call), NotFound)


async def test_a_token_that_is_none_is_refused(ann: Caller) -> None:
    page = common.PageRequest(page_token="bm90IGEgdG9rZW4")
    found = await refusal(ann.ListQueues(api.ListQueuesRequest(page=page)))
    assert found.code is ErrorCode.BAD_PAGE_TOKEN


async def test_shares_are_there_as_they_were_given(ann: Caller) -> None:
    made = await create(
        ann, "org", weight=2.5, deserved_blocks={"H100": 800, "A100": 0}, preempts=False,
        kind_limit_blocks={"H100": 900},
    )  # fmt: skip
    assert (made.weight, made.preempts) == (2.5, False)
    assert dict(made.deserved_blocks) == {"H100": 800}
    assert dict(made.kind_limit_blocks) == {"H100": 900}
    plain = await get(ann, "default")
    assert (plain.weight, plain.preempts, dict(plain.deserved_blocks)) == (1.0, True, {})


async def test_one_kind_changes_and_the_others_stay(ann: Caller) -> None:
    await create(ann, "org", deserved_blocks={"H100": 800, "A100": 100})
    changed = await update(ann, "deserved_blocks.A100", name="org")
    assert dict(changed.deserved_blocks) == {"H100": 800}
    changed = await update(ann, "deserved_blocks.T4", name="org", deserved_blocks={"T4": 5, "x": 1})
    assert dict(changed.deserved_blocks) == {"H100": 800, "T4": 5}
    changed = await update(ann, "deserved_blocks", name="org", deserved_blocks={"T4": 7})
    assert dict(changed.deserved_blocks) == {"T4": 7}


@pytest.mark.parametrize("mask", ["weight.H100", "deserved_blocks.", "kind_limit_blocks.H100.x.y"])
async def test_a_mask_names_a_kind_only_where_there_are_kinds(ann: Caller, mask: str) -> None:
    await create(ann, "org")
    if mask.startswith("kind"):  # kinds may have dots
        changed = await update(ann, mask, name="org", kind_limit_blocks={"H100.x.y": 5})
        assert dict(changed.kind_limit_blocks) == {"H100.x.y": 5}
    else:
        found = await refusal(update(ann, mask, name="org"))
        assert found.code is ErrorCode.UNKNOWN_FIELD


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ({"weight": 0.0}, "queue.weight"),
        ({"weight": -1.0}, "queue.weight"),
        ({"weight": math.nan}, "queue.weight"),
        ({"weight": math.inf}, "queue.weight"),
        ({"deserved_blocks": {"H100": -1}}, "queue.deserved_blocks[H100]"),
        ({"kind_limit_blocks": {"H100": -1}}, "queue.kind_limit_blocks[H100]"),
        ({"deserved_blocks": {"a b": 1}}, "queue.deserved_blocks"),
        (
            {"deserved_blocks": {"H100": 900}, "kind_limit_blocks": {"H100": 800}},
            "queue.deserved_blocks['H100']",
        ),
        ({"deserved_blocks": {"a": 50, "b": 60}, "device_limit_blocks": 100}, "queue.deserved"),
    ],
)
async def test_a_share_that_makes_no_sense_is_named(
    ann: Caller, fields: dict[str, Any], at: str
) -> None:
    found = await refusal(create(ann, "org", **fields))
    assert isinstance(found, InvalidInput)
    assert found.violations[0].field.startswith(at)


async def test_what_a_queue_deserves_is_within_the_limits_that_it_has_already(ann: Caller) -> None:
    await create(ann, "org", kind_limit_blocks={"H100": 800})
    found = await refusal(
        update(ann, "deserved_blocks.H100", name="org", deserved_blocks={"H100": 900})
    )
    assert "deserves 9 H100, but its limit is 8" in found.message


async def test_children_deserve_no_more_than_their_parent_states(ann: Caller) -> None:
    await create(ann, "org", deserved_blocks={"H100": 1000})
    await create(ann, "org.a", deserved_blocks={"H100": 600, "A100": 500})
    # What has no row deserves what is below it, and so does what states nothing of a kind.
    await create(ann, "org.b.c", deserved_blocks={"H100": 400})
    found = await refusal(create(ann, "org.d", deserved_blocks={"H100": 1}))
    assert isinstance(found, InvalidInput)
    assert found.violations[0].field == "queue.deserved_blocks['H100']"
    assert "below org would deserve 10.01 H100 together, but org deserves 10" in found.message
    found = await refusal(update(ann, "deserved_blocks", name="org", deserved_blocks={"H100": 999}))
    assert "below org would deserve 10 H100 together, but org deserves 9.99" in found.message
    changed = await update(ann, "deserved_blocks", name="org.a", deserved_blocks={"H100": 599})
    assert dict(changed.deserved_blocks) == {"H100": 599}
    await create(ann, "org.d", deserved_blocks={"H100": 1})


async def test_siblings_made_at_once_do_not_exceed_their_parent(ann: Caller) -> None:
    await create(ann, "org", deserved_blocks={"H100": 100})
    calls = [create(ann, f"org.{n}", deserved_blocks={"H100": 60}) for n in range(5)]
    assert sorted(await asyncio.gather(*(refusal_or(call) for call in calls))) == [
        *["INVALID_FIELD"] * 4, "ok",
    ]  # fmt: skip


async def test_a_kind_that_no_cluster_has_is_taken_and_told(world: World, ann: Caller) -> None:
    device = Device(0, "H100", 1 << 36)
    await world.add_cluster("here", NodeInventory("n", 1000, 1 << 30, devices=(device,)))
    request = api.CreateQueueRequest(
        queue=api.Queue(name="org", deserved_blocks={"H100": 100, "B300": 100})
    )
    answer = await ann.CreateQueue(request)
    assert list(answer.notes) == ["no cluster has B300 now; there are H100"]
    assert dict(answer.queue.deserved_blocks) == {"H100": 100, "B300": 100}
