"""Jobs that wait for others, as demand to come."""

from atoll.burst.usecases.booked import Window
from atoll.burst.usecases.demand_table import DemandTable
from atoll.burst.usecases.dependents import dependents, together, usual_lengths
from atoll.core.engine.burst.demand.series import Key
from atoll.core.model.ids import JobId, QueueName
from atoll.ports.store.demand import DemandRow

NOW = 10_000.0
ALL, NLP = Key("", "H100"), Key("nlp", "H100")


def row(
    job: int,
    *,
    started: float = 0.0,
    ended: float = 0.0,
    after: tuple[int, ...] = (),
    begin: float = 0.0,
    limit: float = 0.0,
    devices: float = 8.0,
) -> DemandRow:
    return DemandRow(
        JobId(job), QueueName("nlp"), "H100", devices, submitted_at=0.0, started_at=started,
        ended_at=ended, limit_s=limit, waits=not started and bool(after),
        after=tuple(map(JobId, after)), begin_at=begin,
    )  # fmt: skip


def windows(*rows: DemandRow) -> tuple[Window, ...]:
    table = DemandTable()
    table.put(rows, now=NOW)
    found = dependents(table.related(), usual_lengths(table.columns()), now=NOW)
    assert found.get(ALL) == found.get(NLP)
    return found.get(ALL, ())


def test_a_job_comes_when_the_one_before_it_ends_as_others_did() -> None:
    past = row(1, started=1000.0, ended=3000.0)
    runs = row(2, started=NOW - 500)
    assert windows(past, runs, row(3, after=(2,))) == (Window(8.0, NOW + 1500, NOW + 3500),)


def test_a_job_comes_at_its_time_and_not_before() -> None:
    (window,) = windows(row(1, begin=NOW + 50))
    assert window == Window(8.0, NOW + 50, NOW + 50 + 3600)


def test_time_limits_bound_what_is_expected() -> None:
    runs = row(1, started=NOW - 5000, limit=5600)
    assert windows(runs, row(2, after=(1,), limit=60)) == (Window(8.0, NOW + 600, NOW + 660),)


def test_a_chain_comes_link_by_link_and_one_that_is_free_at_once() -> None:
    over = row(1, started=1.0, ended=101.0)
    found = windows(over, row(2, after=(1,)), row(3, after=(2,)), row(4, after=(99,)))
    assert [window.start_at for window in found] == [NOW, NOW + 100, NOW]


def test_jobs_that_wait_for_each_other_end_the_search() -> None:
    assert len(windows(row(1, after=(2,)), row(2, after=(1,)))) == 2


def test_what_runs_or_is_held_by_hand_is_not_to_come() -> None:
    assert windows(row(1, started=NOW - 1, after=(7,)), row(2)) == ()


def test_windows_of_bookings_stand_beside() -> None:
    one, other = Window(1.0, 0.0, 1.0), Window(2.0, 0.0, 1.0)
    assert together({ALL: (one,)}, {ALL: (other,), NLP: (other,)}) == {
        ALL: (one, other),
        NLP: (other,),
    }
