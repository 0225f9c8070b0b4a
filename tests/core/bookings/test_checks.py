"""Bad input is refused with field and reason, all of it at once."""

import math
from dataclasses import replace

import pytest

from atoll.core.engine.bookings.checks import check_reservation
from atoll.core.model.booking import OnEnd, Owners
from atoll.core.model.ids import ClusterName, QueueName
from atoll.core.model.reservation import (
    Amount,
    Flexible,
    ReservationSpec,
    What,
    When,
    WholeDomains,
    WholeNodes,
)
from atoll.core.model.resources import DeviceRequest

NOW = 1_796_000_000.0
GOOD = ReservationSpec("r-1", What(nodes=WholeNodes(1)), When(3_600.0, start_at=NOW + 60))
LOCAL = "2027-01-04T09:00"


def with_when(length: float = 3_600.0, **given: object) -> ReservationSpec:
    return replace(GOOD, when=replace(When(length), **given))  # type: ignore[arg-type]


def with_what(**given: object) -> ReservationSpec:
    return replace(GOOD, what=replace(What(), **given))  # type: ignore[arg-type]


BAD: list[tuple[str, str, ReservationSpec]] = [
    ("when.start_at", "in the past", with_when(start_at=NOW - 3_600)),
    ("when.start_at", "not in 0", with_when(start_at=math.nan)),
    ("when.start_at", "ten years", with_when(start_at=NOW + 4e8)),
    ("when.length_s", "not in 60", with_when(0.0, start_at=NOW)),
    ("when.length_s", "not in 60", with_when(-1.0, start_at=NOW)),
    ("when.length_s", "not in 60", with_when(math.inf, start_at=NOW)),
    ("when", "exactly one", with_when()),
    ("when", "exactly one", with_when(start_at=NOW, start_local=LOCAL)),
    ("when.flexible.latest_end_at", "ends before", with_when(flexible=Flexible(NOW + 9, NOW))),
    ("when.flexible.latest_end_at", "leaves", with_when(flexible=Flexible(NOW, NOW + 60))),
    ("when.flexible.latest_end_at", "past", with_when(flexible=Flexible(0.0, NOW - 60))),
    ("when.zone", "no time zone", with_when(start_local=LOCAL, zone="Mars/Olympus")),
    ("when.start_local", "no local time", with_when(start_local="soon")),
    ("when.start_local", "in the past", with_when(start_local="2020-01-01T00:00")),
    ("when.rrule", "too often", with_when(start_local=LOCAL, rrule="FREQ=SECONDLY")),
    ("when.rrule", "times a year", with_when(60.0, start_local=LOCAL, rrule="FREQ=HOURLY")),
    (
        "when.rrule",
        "is over",
        with_when(start_local="2020-01-01T00:00", rrule="FREQ=DAILY;COUNT=2"),
    ),
    ("when.rrule", "needs a FREQ", with_when(start_local=LOCAL, rrule="daily")),
    ("when.rrule", "flexible", with_when(flexible=Flexible(NOW, NOW + 9e5), rrule="FREQ=DAILY")),
    ("when.length_s", "the next", with_when(90_000.0, start_local=LOCAL, rrule="FREQ=DAILY")),
    ("when.exdates", "no recurrence", with_when(start_local=LOCAL, exdates=(LOCAL,))),
    ("name", "is no name", replace(GOOD, name="a b")),
    ("name", "is no name", replace(GOOD, name="")),
    ("name", "is no name", replace(GOOD, name="x" * 64)),
    ("what", "exactly one", with_what()),
    ("what", "exactly one", with_what(nodes=WholeNodes(1), percent=5, clusters=("a",))),
    ("what.percent", "not in 0", with_what(percent=101, clusters=(ClusterName("a"),))),
    ("what.clusters", "is empty", with_what(percent=5)),
    ("what.clusters[0]", "no name", with_what(nodes=WholeNodes(1), clusters=("a/b",))),
    ("what.nodes.count", "not in 1", with_what(nodes=WholeNodes(0))),
    ("what.nodes.names[0]", "cluster/name", with_what(nodes=WholeNodes(names=("n1",)))),
    ("what.nodes.count", "are named", with_what(nodes=WholeNodes(2, names=("a/n1",)))),
    ("what.domains.level", "not allowed", with_what(domains=WholeDomains("", 1))),
    ("what.amounts[0]", "of nothing", with_what(amounts=(Amount(None, 1),))),
    (
        "what.amounts[0].count",
        "not in 1",
        with_what(amounts=(Amount(DeviceRequest("H100", 1), 0),)),
    ),
    (
        "what.amounts[0].device.profile",
        "not known",
        with_what(amounts=(Amount(DeviceRequest("H100", 1, profile="9g.1tb"), 1),)),
    ),
    ("what.split", "only amounts", with_what(nodes=WholeNodes(1), split=True)),
    ("owners.queues[0]", "not allowed", replace(GOOD, owners=Owners((QueueName("a b"),)))),
    ("owners.users[0]", "control", replace(GOOD, owners=Owners(users=("a\0",)))),
    ("priority", "not in", replace(GOOD, priority=10**9)),
    ("bind_before_s", "not in", replace(GOOD, bind_before_s=-1.0)),
    ("end_grace_s", "is 0", replace(GOOD, on_end=OnEnd.GRACE)),
    ("end_grace_s", "means nothing", replace(GOOD, end_grace_s=5.0)),
    ("charge", "no queue", replace(GOOD, charge=True)),
    ("note", "longer", replace(GOOD, note="x" * 5_000)),
]


def test_a_good_one_passes() -> None:
    assert check_reservation(GOOD, now=NOW) == []
    recurring = with_when(start_local=LOCAL, zone="Europe/Berlin", rrule="FREQ=WEEKLY;BYDAY=MO")
    assert check_reservation(recurring, now=NOW) == []
    assert check_reservation(with_when(flexible=Flexible(0.0, NOW + 9e5)), now=NOW) == []


@pytest.mark.parametrize(
    ("field", "why", "spec"),
    BAD,
    ids=[f"{field}: {why} ({i})" for i, (field, why, _) in enumerate(BAD)],
)
def test_a_bad_one_is_refused(field: str, why: str, spec: ReservationSpec) -> None:
    found = {fault.field: fault.message for fault in check_reservation(spec, now=NOW)}
    assert why in found[f"spec.{field}"]


def test_all_faults_come_at_once() -> None:
    spec = ReservationSpec("a b", What(), When(0.0), priority=10**9)
    fields = {fault.field for fault in check_reservation(spec, now=NOW, at="r")}
    assert fields == {"r.name", "r.what", "r.when", "r.when.length_s", "r.priority"}


def test_a_rule_that_never_occurs_is_found_soon() -> None:
    never = with_when(start_local=LOCAL, rrule="FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30")
    found = check_reservation(never, now=NOW)
    assert [(fault.field, fault.message) for fault in found] == [
        ("spec.when.rrule", "never occurs")
    ]
