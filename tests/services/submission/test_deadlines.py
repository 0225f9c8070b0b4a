"""What jobs with deadlines are told at submit, and which of them are refused."""

from atoll.api.common.v1 import common_pb2 as common
from atoll.api.submission.v1 import submission_pb2 as api
from atoll.core.model.deadline import Chance, Verdict
from atoll.core.model.errors import ErrorCode, InvalidInput
from atoll.core.model.ids import ClusterName
from tests.services.submission.worlds import Caller, World, refusal, spec, uuid

SOON, FAR = 2_000_000_000.0, 2_100_000_000.0
YES = Verdict(Chance.GUARANTEED, SOON, ClusterName("north"))
PERHAPS = Verdict(Chance.LIKELY, FAR, why="others are in its way")
NO = Verdict(Chance.CANNOT, FAR, why="not even alone")


async def test_the_reply_tells_each_job_with_a_deadline(world: World, ann: Caller) -> None:
    world.desk.given = [YES, PERHAPS]
    jobs = [spec("a", deadline_at=SOON), spec("b"), spec("c", deadline_at=SOON)]
    done = await ann.SubmitJobs(api.SubmitJobsRequest(jobs=jobs))
    assert [each.chance for each in done.deadlines] == [
        common.DEADLINE_CHANCE_GUARANTEED,
        common.DEADLINE_CHANCE_UNSPECIFIED,
        common.DEADLINE_CHANCE_LIKELY,
    ]
    assert (done.deadlines[0].earliest_at, done.deadlines[0].cluster) == (SOON, "north")
    assert done.deadlines[2].why == "others are in its way"
    shown = [await ann.job(number) for number in done.job_ids]
    assert [job.guaranteed for job in shown] == [True, False, False]
    assert shown[0].spec.deadline_at == SOON


async def test_jobs_without_a_deadline_are_nobodys_question(world: World, ann: Caller) -> None:
    world.desk.given = []
    done = await ann.SubmitJobs(api.SubmitJobsRequest(jobs=[spec("a")]))
    assert not done.deadlines
    assert world.desk.asked == []


async def test_what_cannot_be_is_refused_with_the_earliest_time(world: World, ann: Caller) -> None:
    world.desk.given = [YES, NO]
    jobs = [spec("a", deadline_at=SOON), spec("b", deadline_at=SOON)]
    found = await refusal(ann.SubmitJobs(api.SubmitJobsRequest(jobs=jobs)))
    assert isinstance(found, InvalidInput)
    assert found.code is ErrorCode.DEADLINE_INFEASIBLE
    (violation,) = found.violations
    assert violation.field == "jobs[1].deadline_at"
    assert "2036-07-18T13:20:00+00:00" in violation.message
    assert not (await ann.ListJobs(api.ListJobsRequest())).jobs


async def test_best_effort_takes_what_cannot_be(world: World, ann: Caller) -> None:
    world.desk.given = [NO]
    request = api.SubmitJobsRequest(jobs=[spec("a", deadline_at=SOON, best_effort=True)])
    done = await ann.SubmitJobs(request)
    assert done.deadlines[0].chance == common.DEADLINE_CHANCE_CANNOT
    assert not (await ann.job(done.job_ids[0])).guaranteed


async def test_without_a_leader_nothing_is_guaranteed_and_the_job_is_taken(
    world: World, ann: Caller
) -> None:
    assert world.desk.given is None
    done = await ann.SubmitJobs(api.SubmitJobsRequest(jobs=[spec("a", deadline_at=SOON)]))
    assert done.deadlines[0].chance == common.DEADLINE_CHANCE_LIKELY
    assert "nobody could be asked" in done.deadlines[0].why
    assert not (await ann.job(done.job_ids[0])).guaranteed


async def test_a_check_keeps_nothing(world: World, ann: Caller) -> None:
    world.desk.given = [YES]
    request = api.SubmitJobsRequest(jobs=[spec("a", deadline_at=SOON)], validate_only=True)
    done = await ann.SubmitJobs(request)
    assert done.deadlines[0].chance == common.DEADLINE_CHANCE_GUARANTEED
    assert [keep for _, _, keep in world.desk.asked] == [False]


async def test_every_member_of_an_array_is_asked_for_and_what_waits_says_so(
    world: World, ann: Caller
) -> None:
    world.desk.given = [YES, YES, PERHAPS]
    after = spec("b", deadline_at=SOON, depends_on=[common.Dependency(name="a")])
    jobs = [spec("a", deadline_at=SOON, array=2), after]
    done = await ann.SubmitJobs(api.SubmitJobsRequest(jobs=jobs))
    assert len(done.deadlines) == 3
    assert [waits for _, waits, _ in world.desk.asked] == [False, False, True]


async def test_a_repeated_call_finds_its_jobs_whatever_is_answered_by_then(
    world: World, ann: Caller
) -> None:
    request = api.SubmitJobsRequest(jobs=[spec("a", deadline_at=SOON)], request_id=uuid())
    world.desk.given = [YES, NO]
    first = await ann.SubmitJobs(request)
    again = await ann.SubmitJobs(request)
    assert list(again.job_ids) == list(first.job_ids)
    assert again.replayed
    assert not again.deadlines
