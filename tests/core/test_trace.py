"""Traces of jobs are their own, and follow from the submit and the number alone."""

import pytest

from atoll.core.model.ids import JobId
from atoll.core.model.trace import job_trace

SUBMIT = f"00-{'a' * 32}-{'b' * 16}-01"


def test_jobs_of_one_call_have_traces_of_their_own() -> None:
    found = {job_trace(SUBMIT, JobId(n)) for n in range(1, 1001)}
    assert len({trace.split("-")[1] for trace in found}) == 1000
    assert {tuple(map(len, trace.split("-"))) for trace in found} == {(2, 32, 16, 2)}
    assert job_trace(SUBMIT, JobId(1)) in found


def test_a_job_is_kept_when_its_submit_is() -> None:
    assert job_trace(SUBMIT, JobId(1)).endswith("-01")
    assert job_trace(f"{SUBMIT[:-2]}00", JobId(1)).endswith("-00")


@pytest.mark.parametrize("submit", ["", "x", "00-a-b"])
def test_without_a_submit_there_is_no_trace(submit: str) -> None:
    assert job_trace(submit, JobId(1)) == ""
