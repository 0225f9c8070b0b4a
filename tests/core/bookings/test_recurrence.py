"""Occurrences are right over both changes of the clock in three zones, and end."""

import datetime
import itertools
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.engine.bookings.recurrence import BadTime, occurrences
from atoll.core.model.reservation import When

YEAR_END = datetime.datetime(2028, 1, 1, tzinfo=datetime.UTC).timestamp()


@dataclass(frozen=True)
class Case:
    """A daily window over one change of the clock."""

    name: str
    zone: str
    start: str
    want: tuple[str, ...]
    remark: str = ""


CASES = (
    Case(
        "Berlin leaves out half past two in spring: the offset before the gap counts",
        "Europe/Berlin",
        "2027-03-27T02:30",
        ("2027-03-27T02:30:00+01:00", "2027-03-28T03:30:00+02:00", "2027-03-29T02:30:00+02:00"),
        "2027-03-28T02:30 does not exist in Europe/Berlin: it is taken as 2027-03-28T03:30+02:00",
    ),
    Case(
        "Berlin has half past two twice in autumn: the first counts",
        "Europe/Berlin",
        "2027-10-30T02:30",
        ("2027-10-30T02:30:00+02:00", "2027-10-31T02:30:00+02:00", "2027-11-01T02:30:00+01:00"),
        "2027-10-31T02:30 exists twice in Europe/Berlin: the first is taken, "
        "2027-10-31T02:30+02:00",
    ),
    Case(
        "New York leaves out half past two in spring",
        "America/New_York",
        "2027-03-13T02:30",
        ("2027-03-13T02:30:00-05:00", "2027-03-14T03:30:00-04:00", "2027-03-15T02:30:00-04:00"),
        "2027-03-14T02:30 does not exist in America/New_York: "
        "it is taken as 2027-03-14T03:30-04:00",
    ),
    Case(
        "New York has half past one twice in autumn",
        "America/New_York",
        "2027-11-06T01:30",
        ("2027-11-06T01:30:00-04:00", "2027-11-07T01:30:00-04:00", "2027-11-08T01:30:00-05:00"),
        "2027-11-07T01:30 exists twice in America/New_York: the first is taken, "
        "2027-11-07T01:30-04:00",
    ),
    Case(
        "Lord Howe leaves out half an hour in its spring, which is October",
        "Australia/Lord_Howe",
        "2027-10-02T02:15",
        ("2027-10-02T02:15:00+10:30", "2027-10-03T02:45:00+11:00", "2027-10-04T02:15:00+11:00"),
        "2027-10-03T02:15 does not exist in Australia/Lord_Howe: "
        "it is taken as 2027-10-03T02:45+11:00",
    ),
    Case(
        "Lord Howe has a quarter to two twice in its autumn, which is April",
        "Australia/Lord_Howe",
        "2027-04-03T01:45",
        ("2027-04-03T01:45:00+11:00", "2027-04-04T01:45:00+11:00", "2027-04-05T01:45:00+10:30"),
        "2027-04-04T01:45 exists twice in Australia/Lord_Howe: the first is taken, "
        "2027-04-04T01:45+11:00",
    ),
    Case(
        "nine in the morning is nine in the morning before and after",
        "Europe/Berlin",
        "2027-03-27T09:00",
        ("2027-03-27T09:00:00+01:00", "2027-03-28T09:00:00+02:00", "2027-03-29T09:00:00+02:00"),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_clock_changes(case: Case) -> None:
    when = When(1_800.0, start_local=case.start, zone=case.zone, rrule="FREQ=DAILY;COUNT=3")
    times = occurrences(when, 0.0, YEAR_END)
    assert tuple(span.local for span in times.spans) == case.want
    assert times.remarks == ((case.remark,) if case.remark else ())
    assert all(span.end - span.start == 1_800.0 for span in times.spans)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
def test_a_year_of_weeks_keeps_its_local_hour(zone: str) -> None:
    when = When(3_600.0, start_local="2027-01-04T09:00", zone=zone, rrule="FREQ=WEEKLY;COUNT=52")
    spans = occurrences(when, 0.0, YEAR_END + 86_400).spans
    local = [datetime.datetime.fromtimestamp(span.start, ZoneInfo(zone)) for span in spans]
    assert [at.strftime("%a %H:%M") for at in local] == ["Mon 09:00"] * 52
    steps = {(b.start - a.start) / 3_600 for a, b in itertools.pairwise(spans)}
    half = 0.5 if zone == "Australia/Lord_Howe" else 1.0
    assert steps == {168.0, 168.0 - half, 168.0 + half}


def test_dates_can_be_left_out_and_an_end_is_in_utc() -> None:
    when = When(
        3_600.0,
        start_local="2026-12-21T09:00",
        zone="Europe/Berlin",
        rrule="FREQ=DAILY;UNTIL=20261225T080000Z",
        exdates=("2026-12-23T09:00", "2026-12-24T10:00"),
    )
    days = [span.local[8:10] for span in occurrences(when, 0.0, YEAR_END).spans]
    assert days == ["21", "22", "24", "25"]


def test_an_end_by_date_means_all_of_that_day() -> None:
    when = When(3_600.0, start_local="2026-12-21T09:00", rrule="FREQ=DAILY;UNTIL=20261222")
    assert len(occurrences(when, 0.0, YEAR_END).spans) == 2


def test_a_start_by_number_recurs_in_local_time() -> None:
    start = datetime.datetime(2027, 3, 27, 8, tzinfo=datetime.UTC).timestamp()
    when = When(60.0, start_at=start, zone="Europe/Berlin", rrule="FREQ=DAILY;COUNT=2")
    first, second = occurrences(when, 0.0, YEAR_END).spans
    assert first.start == start
    assert second.start - first.start == 23 * 3_600


def test_two_local_times_that_are_one_instant_are_one_occurrence() -> None:
    when = When(
        600.0,
        start_local="2027-03-28T02:30",
        zone="Europe/Berlin",
        rrule="FREQ=DAILY;BYHOUR=2,3;BYMINUTE=30;COUNT=2",
    )
    assert len(occurrences(when, 0.0, YEAR_END).spans) == 1


@given(
    st.sampled_from(["FREQ=DAILY", "FREQ=WEEKLY;BYDAY=MO,FR", "FREQ=MONTHLY;BYDAY=-1SU"]),
    st.integers(0, 400),
    st.integers(1, 90),
)
@settings(max_examples=40, deadline=None)
def test_pieces_of_time_have_together_what_all_of_it_has(rule: str, at: int, days: int) -> None:
    when = When(600.0, start_local="2027-01-01T02:30", zone="Europe/Berlin", rrule=rule)
    first = datetime.datetime(2027, 1, 1, tzinfo=datetime.UTC).timestamp()
    cut, end = first + at * 86_400.0, first + (at + days) * 86_400.0
    whole = occurrences(when, first, end).spans
    assert whole == occurrences(when, first, cut).spans + occurrences(when, cut, end).spans
    assert occurrences(when, first, end, most=3).spans == whole[:3]


@pytest.mark.parametrize(
    ("field", "when"),
    [
        ("zone", When(60.0, start_local="2027-01-01T00:00", zone="Mars/Olympus")),
        ("zone", When(60.0, start_local="2027-01-01T00:00", zone="../../etc/passwd")),
        ("start_local", When(60.0, start_local="tomorrow")),
        ("start_local", When(60.0, start_local="2027-01-01T00:00+01:00")),
        ("rrule", When(60.0, start_local="2027-01-01T00:00", rrule="every day")),
        ("rrule", When(60.0, start_local="2027-01-01T00:00", rrule="FREQ=DAILY;INTERVAL=0")),
        ("exdates", When(60.0, start_local="2027-01-01", rrule="FREQ=DAILY", exdates=("x",))),
    ],
)
def test_what_cannot_be_read_is_refused_by_field(field: str, when: When) -> None:
    with pytest.raises(BadTime) as refused:
        occurrences(when, 0.0, YEAR_END)
    assert refused.value.field == field
