"""Reports of one attempt are folded in memory; the lifecycle's table decides each."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.core.model.ids import ClusterName, JobId, attempt_id
from atoll.core.model.lifecycle import (
    TERMINAL_ATTEMPT,
    AttemptEvent,
    AttemptState,
    JobEvent,
    JobState,
)
from atoll.dispatch.usecases.fold import Fold, Split, split, to_stop
from tests.services.dispatch.values import CLUSTER, attempt, job, report, story

ACCEPTED, STARTED, FINISHED, STOPPED, REJECTED = (
    AttemptEvent.ACCEPTED,
    AttemptEvent.STARTED,
    AttemptEvent.FINISHED,
    AttemptEvent.STOPPED,
    AttemptEvent.REJECTED,
)
A = attempt_id(JobId(1), 1)


def fold_of(*numbers: int) -> Fold:
    jobs = {JobId(n): job(n) for n in numbers}
    attempts = {attempt_id(JobId(n), 1): attempt(n) for n in numbers}
    return Fold(jobs, attempts, now=100.0)


def test_a_whole_story_in_one_batch_moves_each_row_once() -> None:
    fold = fold_of(1)
    fold.take(story(A, ACCEPTED, STARTED, FINISHED))
    assert [e.event for e in fold.events] == [JobEvent.STARTED, JobEvent.SUCCEEDED]
    assert fold.jobs[JobId(1)].state is JobState.SUCCEEDED
    assert fold.attempts[A].state is AttemptState.FINISHED
    assert (fold.moved, fold.ended()) == ({A}, [A])
    assert not fold.refused


def test_an_event_says_where_and_why() -> None:
    fold = fold_of(1)
    fold.take([report(1, REJECTED)])
    (event,) = fold.events
    assert (event.event, event.cluster, event.attempt) == (JobEvent.ROLLED_BACK, CLUSTER, A)
    assert event.state is JobState.QUEUED


@dataclass(frozen=True)
class Case:
    name: str
    events: tuple[AttemptEvent, ...]
    applied: int
    ends: AttemptState


CASES = [
    Case("started without accepted", (STARTED, FINISHED), 2, AttemptState.FINISHED),
    Case("accepted after started is refused", (STARTED, ACCEPTED), 1, AttemptState.RUNNING),
    Case("nothing after the end", (STOPPED, STARTED, FINISHED), 1, AttemptState.STOPPED),
    Case("rejected once running is refused", (STARTED, REJECTED), 1, AttemptState.RUNNING),
    Case("the first end wins", (FINISHED, STOPPED), 1, AttemptState.FINISHED),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_table_decides(case: Case) -> None:
    fold = fold_of(1)
    fold.take(story(A, *case.events))
    assert len(fold.applied) == case.applied
    assert len(fold.refused) == len(case.events) - case.applied
    assert fold.attempts[A].state is case.ends


def test_another_clusters_attempt_is_not_theirs_to_report() -> None:
    fold = fold_of(1)
    other = ClusterName("beta")
    strange = report(1, STARTED, cluster=other)
    fold.take([strange])
    assert fold.refused == [strange]
    assert to_stop(Split((), (strange,)), fold, other) == {A}


def test_a_refused_report_of_a_live_attempt_stops_nothing() -> None:
    fold = fold_of(1)
    reports = story(A, STARTED, ACCEPTED)
    fold.take(reports)
    assert to_stop(Split((), tuple(reports)), fold, CLUSTER) == set()


def test_a_repeated_report_of_ended_work_that_goes_on_is_told_to_stop() -> None:
    fold = Fold({JobId(1): job(1)}, {A: attempt(1, state=AttemptState.LOST)}, now=1.0)
    assert to_stop(Split((report(1, STARTED),), ()), fold, CLUSTER) == {A}
    assert to_stop(Split((report(1, FINISHED),), ()), fold, CLUSTER) == set()


@given(st.lists(st.integers(1, 12), max_size=30), st.integers(0, 6))
def test_new_reports_are_dense_after_what_was_dealt_with(numbers: list[int], seq: int) -> None:
    parts = split([report(n, ACCEPTED) for n in sorted(numbers)], seq)
    fresh = [r.number for r in parts.fresh]
    assert fresh == list(range(seq + 1, seq + 1 + len(fresh)))
    assert seq + 1 not in numbers or fresh


@given(st.lists(st.sampled_from([ACCEPTED, STARTED, FINISHED, STOPPED, REJECTED]), max_size=8))
def test_an_end_is_final_and_every_report_is_dealt_with(events: list[AttemptEvent]) -> None:
    fold = fold_of(1)
    ended: AttemptState | None = None
    for one in story(A, *events):
        fold.take([one])
        state = fold.attempts[A].state
        assert ended in (None, state)
        ended = state if state in TERMINAL_ATTEMPT else None
    assert len(fold.applied) + len(fold.refused) == len(events)
    assert sum(e.state is not JobState.RUNNING for e in fold.events) <= 1
