"""Jobs that a new job may wait for: those that exist, and can still succeed."""

from collections.abc import Sequence

from atoll.core.model.errors import ErrorCode, FieldViolation, InvalidInput
from atoll.core.model.ids import JobId, Tenant
from atoll.core.model.lifecycle import TERMINAL_JOB, JobState
from atoll.ports.store.submission import JobFilter, SubmissionStore
from atoll.submission.usecases.drafts import Draft

MOST_IN_A_CALL = 10_000


async def check_dependencies(
    store: SubmissionStore, tenant: Tenant, drafts: Sequence[Draft]
) -> None:
    """Raise InvalidInput for dependencies that do not exist, or have failed already.

    One that fails a moment later is the placement leader's to notice, as for any waiting job.
    """
    wanted = sorted({job for draft in drafts for job in draft.spec.depends_on})
    if not wanted:
        return
    if len(wanted) > MOST_IN_A_CALL:
        raise InvalidInput((
            FieldViolation("jobs", f"wait for {len(wanted):,} jobs, at most {MOST_IN_A_CALL:,}"),
        ))
    only = JobFilter(tenant, ids=tuple(wanted))
    found = await store.list_jobs(only, before=None, limit=len(wanted))
    states = {job.id: job.state for job in found}
    violations = [
        violation
        for i, draft in enumerate(drafts)
        for violation in _violations(f"jobs[{i}].depends_on", draft.spec.depends_on, states)
    ]
    if violations:
        raise InvalidInput(tuple(violations))


def _violations(
    at: str, wanted: Sequence[JobId], states: dict[JobId, JobState]
) -> list[FieldViolation]:
    found = []
    for job in wanted:
        state = states.get(job)
        if state is None:
            found.append(FieldViolation(at, f"there is no job {job}", ErrorCode.JOB_NOT_FOUND))
        elif state in TERMINAL_JOB and state is not JobState.SUCCEEDED:
            told = f"job {job} is {state.value} and can never succeed"
            found.append(FieldViolation(at, told, ErrorCode.WRONG_STATE))
    return found
