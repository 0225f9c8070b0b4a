"""Promises that are given are kept: over the book, second by second."""

import itertools
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.engine.deadlines.book import Book
from atoll.core.engine.deadlines.terms import (
    FOR_EVER,
    HOLD_PER_COST,
    Answer,
    Change,
    DeadlineJob,
    Taken,
    useful,
)
from atoll.core.model.deadline import Chance

RATES = st.tuples(*(st.floats(1.0, 2.0) for _ in range(4)))


@st.composite
def jobs(draw: st.DrawFn, number: int = 0) -> DeadlineJob:
    """A job whose deadline counts from 0; elastic or rigid."""
    if draw(st.booleans()):
        size = draw(st.sampled_from([1, 2, 3, 5, 8]))
        work = float(draw(st.integers(1, 400)))
        return DeadlineJob(number, draw(st.integers(1, 900)), ((size, 1.0),), work)
    rate, sizes = 1.0, [(1, 1.0)]
    for i, factor in enumerate(draw(RATES), 1):
        rate *= factor
        sizes.append((2**i, rate))
    cost = draw(st.sampled_from([0, 1, 7, 30]))
    work = float(draw(st.integers(1, 1500)))
    return DeadlineJob(number, draw(st.integers(1, 1500)), useful(tuple(sizes)), work, cost)


arrivals = st.lists(st.tuples(st.integers(0, 60), jobs()), min_size=1, max_size=14)
parts = st.lists(
    st.builds(Taken, st.integers(0, 300), st.integers(0, 900), st.integers(0, 4)), max_size=3
)


@dataclass
class Ran:
    """What became of the jobs that came to a book."""

    jobs: dict[int, DeadlineJob]
    answers: dict[int, Answer]
    changes: list[Change]

    def of(self, job: int) -> list[Change]:
        return [change for change in self.changes if change.job == job]


def run(coming: list[tuple[int, DeadlineJob]], devices: int, taken: list[Taken]) -> Ran:
    book = Book(devices, taken=taken)
    ran = Ran({}, {}, [])
    now = 0
    for number, (gap, job) in enumerate(coming):
        until = now + gap
        pass_until(book, ran, until, now)
        now = until
        job = DeadlineJob(number, now + job.deadline, job.sizes, job.work, job.cost)
        ran.jobs[number], ran.answers[number] = job, book.admit(job, now)
        book.lend(now)
        ran.changes += book.begin(now)
    pass_until(book, ran, FOR_EVER - 1, now)
    return ran


def pass_until(book: Book, ran: Ran, until: int, now: int) -> None:
    while (now := book.next_time(now)) <= until:
        ran.changes += book.finish(now) + book.begin(now)
        book.lend(now)
        ran.changes += book.begin(now)


@given(arrivals, st.sampled_from([4, 8, 16]), parts)
@settings(max_examples=150, deadline=None)
def test_who_was_promised_its_deadline_meets_it(
    coming: list[tuple[int, DeadlineJob]], devices: int, taken: list[Taken]
) -> None:
    ran = run(coming, devices, taken)
    for number, answer in ran.answers.items():
        changes = ran.of(number)
        if answer.chance is not Chance.GUARANTEED:
            assert not changes
            continue
        job = ran.jobs[number]
        assert changes[-1].devices == 0
        assert changes[-1].time <= job.deadline
        assert work_done(job, changes) >= job.work - 1e-6


@given(arrivals, st.sampled_from([4, 8, 16]), parts)
@settings(max_examples=100, deadline=None)
def test_plans_never_hold_more_than_there_is(
    coming: list[tuple[int, DeadlineJob]], devices: int, taken: list[Taken]
) -> None:
    ran = run(coming, devices, [part for part in taken if part.devices <= devices // 4])
    held: dict[int, int] = {}
    moments = sorted({change.time for change in ran.changes})
    for moment in moments:
        held.update((c.job, c.devices) for c in ran.changes if c.time == moment)
        others = sum(
            part.devices
            for part in taken
            if part.devices <= devices // 4 and part.start <= moment < part.end
        )
        assert sum(held.values()) + others <= devices


@given(arrivals)
@settings(max_examples=100, deadline=None)
def test_sizes_change_at_most_once_in_ten_times_their_cost_and_never_of_a_rigid_job(
    coming: list[tuple[int, DeadlineJob]],
) -> None:
    ran = run(coming, 8, [])
    for number, job in ran.jobs.items():
        changes = ran.of(number)[:-1]
        if job.rigid:
            assert len(changes) <= 1
        for before, after in itertools.pairwise(changes):
            assert after.time - before.time >= HOLD_PER_COST * job.cost


def work_done(job: DeadlineJob, changes: list[Change]) -> float:
    rate = dict(job.sizes)
    return sum(
        max(0, after.time - before.time - job.cost) * rate.get(before.devices, 0.0)
        for before, after in itertools.pairwise(changes)
    )


LINEAR = ((1, 1.0), (2, 2.0), (4, 4.0))


@dataclass(frozen=True)
class Case:
    name: str
    there: tuple[DeadlineJob, ...]
    asks: DeadlineJob
    want: Answer
    taken: tuple[Taken, ...] = ()


@pytest.mark.parametrize(
    "case",
    [
        Case(
            "alone it is promised what its smallest sufficient size can do",
            (),
            DeadlineJob(9, 100, LINEAR, 200.0),
            Answer(Chance.GUARANTEED, 100),
        ),
        Case(
            "what not even all devices can do cannot be, and the earliest end is told",
            (),
            DeadlineJob(9, 100, LINEAR, 800.0),
            Answer(Chance.CANNOT, 200),
        ),
        Case(
            "the pause after the start counts",
            (),
            DeadlineJob(9, 100, ((4, 4.0),), 400.0, cost=10),
            Answer(Chance.CANNOT, 110),
        ),
        Case(
            "what others were promised is in the way",
            (DeadlineJob(1, 100, ((4, 1.0),), 100.0),),
            DeadlineJob(9, 100, LINEAR, 200.0),
            Answer(Chance.LIKELY, 150),
        ),
        Case(
            "a gang with an earlier deadline goes before one that has time",
            (DeadlineJob(1, 300, ((4, 1.0),), 100.0),),
            DeadlineJob(9, 60, ((4, 1.0),), 50.0),
            Answer(Chance.GUARANTEED, 50),
        ),
        Case(
            "devices that others hold come free in time",
            (),
            DeadlineJob(9, 150, ((4, 1.0),), 100.0),
            Answer(Chance.GUARANTEED, 130),
            taken=(Taken(0, 30, 1),),
        ),
    ],
    ids=lambda case: case.name,
)
def test_admission(case: Case) -> None:
    book = Book(4, taken=case.taken)
    for job in case.there:
        assert book.admit(job, 0).chance is Chance.GUARANTEED
    assert book.admit(case.asks, 0) == case.want


def test_a_job_shrinks_for_one_that_could_not_be_promised_otherwise() -> None:
    book = Book(4)
    book.admit(DeadlineJob(1, 10_000, LINEAR, 4_000.0, cost=1), 0)
    book.lend(0)
    assert book.begin(0) == [Change(1, 0, 2)]  # a quarter is kept for who comes next
    assert book.admit(DeadlineJob(2, 120, ((3, 1.0),), 100.0), 20).chance is Chance.GUARANTEED
    assert set(book.begin(20)) == {Change(1, 20, 1), Change(2, 20, 3)}
