"""Standing rules: what they wish for, in the end and one after another."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.engine.bookings.answers import Accepted, Span
from atoll.core.engine.bookings.recurrence import occurrences
from atoll.core.engine.bookings.rules.evaluate import evaluate
from atoll.core.engine.bookings.rules.interactive import WEEK_S, quantile
from atoll.core.engine.bookings.rules.wishes import Book, Cancel, Change, Facts, Made
from atoll.core.model.booking import NodeShare, OccurrenceId, Owners
from atoll.core.model.ids import ClusterName, JobId, NodeId, QueueName, Tenant
from atoll.core.model.plan import GangRequest, GroupRequest, PendingJob, RunTerms
from atoll.core.model.reservation import (
    Occurrence,
    OccurrenceState,
    Part,
    Reservation,
    ReservationId,
    ReservationSpec,
    When,
)
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.model.standing_rule import (
    InteractiveHoursRule,
    LargeJobRule,
    RollingMaintenanceRule,
    Rule,
)
from tests.core.bookings.asking import HOUR, ask, calendar, node, run, world

NOW = 1_796_000_000.0
LARGE = Rule("large", LargeJobRule(devices_above=8, guaranteed=True))
DOMAINS = {f"west/r{rack}": [f"west/n{rack}{node}" for node in range(3)] for rack in range(4)}
ROLLING = RollingMaintenanceRule(ClusterName("west"), "rack", 2, 3_600.0, start_at=NOW)


def made(
    number: int, spec: ReservationSpec, nodes: Sequence[str] = (), **given: object
) -> tuple[Reservation, Occurrence]:
    shares = tuple(
        NodeShare(NodeId(i), n.partition("/")[2], whole=True) for i, n in enumerate(nodes)
    )
    parts = (Part(ClusterName("west"), shares),) if shares else ()
    booked = Reservation(ReservationId(number), spec, Tenant("t"), "rule:x", NOW)
    at = Occurrence(OccurrenceId(number), booked.id, spec.name, NOW + 60, NOW + 3_660, parts=parts)
    return booked, replace(at, **given)  # type: ignore[arg-type]


def job(number: int, tasks: int, devices: int = 8, **given: object) -> PendingJob:
    shape = TaskShape(1_000, 1 << 30, DeviceRequest("H100", devices))
    terms = RunTerms(time_limit_s=float(given.pop("limit", 3_600.0)))  # type: ignore[arg-type]
    request = GangRequest((GroupRequest(tasks, tasks, (shape,)),), terms=terms)
    fixed = PendingJob(JobId(number), 1, QueueName("nlp"), 0, submitted_at=NOW, request=request)
    return replace(fixed, **given)  # type: ignore[arg-type]


def test_large_jobs_and_guarantees_get_windows_of_their_own() -> None:
    jobs = [job(1, 1), job(2, 2), job(3, 1, guaranteed=True, deadline_at=NOW + 9_000)]
    verdict = evaluate(LARGE, Facts(pending=jobs), now=NOW)
    two, three = verdict.wishes
    assert isinstance(two, Book)
    assert isinstance(three, Book)
    assert two.why == "job 2 wants 16 devices, more than 8"
    assert two.spec.owners == Owners(labels=(("atoll.job", "2"),))
    assert [(a.count, a.device) for a in two.spec.what.amounts] == [(2, DeviceRequest("H100", 8))]
    assert two.spec.when.length_s == 3_900.0
    assert three.why == "the deadline of job 3 is guaranteed"
    assert three.spec.when.flexible is not None
    assert three.spec.when.flexible.latest_end_at == NOW + 9_300
    assert verdict.status == "2 jobs qualify, 0 have windows"


def test_the_window_of_a_large_job_waits_for_what_runs() -> None:
    (wish,) = evaluate(LARGE, Facts(pending=[job(2, 2)]), now=0.0).wishes
    assert isinstance(wish, Book)
    full = world(node(1), node(2))
    run(full, 7, 1, time_limit_s=2 * HOUR)  # it began an hour ago
    answer = ask(calendar(full), wish.spec)
    assert isinstance(answer, Accepted)
    assert (answer.placed[0].start, answer.displaced) == (HOUR, ())


def test_a_window_is_asked_for_once_and_given_back_when_its_job_is_gone() -> None:
    first = evaluate(LARGE, Facts(pending=[job(2, 2)]), now=NOW).wishes[0]
    assert isinstance(first, Book)
    have = [made(7, first.spec)]
    assert evaluate(LARGE, Facts(have, pending=[job(2, 2)]), now=NOW).wishes == ()
    gone = evaluate(LARGE, Facts(have), now=NOW)
    assert gone.wishes == (Cancel(ReservationId(7), "its job does not wait any more"),)
    begun = [made(7, first.spec, state=OccurrenceState.RUNNING, started_at=NOW)]
    assert evaluate(LARGE, Facts(begun), now=NOW + 90).wishes == ()


def test_a_job_without_an_end_gets_no_window() -> None:
    verdict = evaluate(LARGE, Facts(pending=[job(2, 2, limit=0.0)]), now=NOW)
    assert verdict.wishes == ()
    assert verdict.status.endswith("1 have no time limit, or need what cannot be booked")


def test_a_disabled_rule_wishes_nothing() -> None:
    off = replace(LARGE, enabled=False)
    assert evaluate(off, Facts(pending=[job(2, 2)]), now=NOW).wishes == ()


@given(st.integers(1, 3), st.lists(st.booleans(), max_size=12), st.integers(0, 3))
@settings(max_examples=80, deadline=None)
def test_every_node_is_maintained_once_and_few_at_a_time(
    at_once: int, failures: list[bool], late_nodes: int
) -> None:
    """A window fails when it is cancelled; it is then done again."""
    rule = Rule("m", replace(ROLLING, most_at_once=at_once))
    domains = {name: list(nodes) for name, nodes in DOMAINS.items()}
    book: dict[str, tuple[Reservation, Occurrence]] = {}
    held: list[str] = []
    now, over = NOW, list[tuple[Reservation, Occurrence]]()
    for turn in range(60):
        verdict = evaluate(rule, Facts([*over, *book.values()], domains=domains), now=now)
        for wish in verdict.wishes:
            assert isinstance(wish, Book)
            named = wish.spec.what
            nodes = named.nodes.names if named.nodes else domains[named.domains.names[0]]  # type: ignore[union-attr]
            at = made(100 + turn, wish.spec, nodes, started_at=now)
            book[wish.spec.name] = at
        assert len(book) <= at_once
        if turn == 3:
            domains["west/r0"] += [f"west/new{i}" for i in range(late_nodes)]
        if not book:
            break
        name = min(book)
        reservation, at_ = book.pop(name)
        failed = failures.pop() if failures else False
        state = OccurrenceState.CANCELLED if failed else OccurrenceState.ENDED
        over.append((reservation, replace(at_, state=state)))
        if not failed:
            held += [f"west/{s.node_name}" for p in at_.parts for s in p.shares]
        now += 60
    assert sorted(held) == sorted(node for nodes in domains.values() for node in nodes)
    last = evaluate(rule, Facts(over, domains=domains), now=now)
    assert last.wishes == ()
    assert last.status == f"all {len(held)} nodes are done"


def test_maintenance_keeps_to_its_hours() -> None:
    kind = replace(
        ROLLING, hours_rrule="FREQ=DAILY;BYHOUR=2;BYMINUTE=0;BYSECOND=0", zone="Asia/Tokyo"
    )
    (first, second) = evaluate(Rule("m", kind), Facts(domains=DOMAINS), now=NOW).wishes
    assert isinstance(first, Book)
    assert isinstance(second, Book)
    starts = [spec.when.start_at for spec in (first.spec, *first.otherwise)]
    assert starts == [starts[0] + day * 86_400 for day in range(16)]  # type: ignore[operator]
    assert all((start + 9 * 3_600) % 86_400 == 2 * 3_600 for start in starts if start is not None)
    assert first.spec.owners.nobody


def test_maintenance_says_when_there_is_no_more_time() -> None:
    kind = replace(ROLLING, end_at=NOW + 1_800)
    verdict = evaluate(Rule("m", kind), Facts(domains=DOMAINS), now=NOW)
    assert verdict.wishes == ()
    assert verdict.status.startswith("ended with 12 of 12 nodes left")


HOURS = InteractiveHoursRule(
    QueueName("nlp"),
    "H100",
    When(3_600.0, start_local="2026-01-05T09:00", zone="Europe/Berlin", rrule="FREQ=WEEKLY"),
    least=2,
    most=16,
)


def used_in_hours(levels: Sequence[float]) -> list[tuple[float, float]]:
    """As many devices as `levels` say in the hours of the weeks before, and 99 besides."""
    spans = occurrences(HOURS.when, NOW - 4 * WEEK_S, NOW).spans
    steps = [(spans[0].start - 1.0, 99.0)]
    for span, level in zip(spans, levels, strict=True):
        steps += [(span.start, level), (span.end, 99.0)]
    return steps


def test_hours_follow_what_was_used_in_them() -> None:
    verdict = evaluate(Rule("h", HOURS), Facts(used=used_in_hours([3, 5, 4, 5])), now=NOW)
    assert [type(wish) for wish in verdict.wishes] == [Book, Book]
    first = verdict.wishes[0]
    assert isinstance(first, Book)
    assert first.spec.what.amounts[0].count == 5
    assert first.spec.owners.queues == ("nlp",)
    assert first.why.startswith("5 were in use at once at most for 90% of these hours")


def test_hours_have_bounds_and_change_with_use() -> None:
    rule = Rule("h", HOURS)
    assert "2 H100: nothing is known" in evaluate(rule, Facts(), now=NOW).status
    first = evaluate(rule, Facts(used=used_in_hours([40] * 4)), now=NOW).wishes[0]
    assert isinstance(first, Book)
    assert first.spec.what.amounts[0].count == 16
    have: Made = [made(5, first.spec)]
    less = evaluate(rule, Facts(have, used=used_in_hours([3] * 4)), now=NOW).wishes
    assert isinstance(less[0], Change)
    assert less[0].spec.what.amounts[0].count == 3
    none = Rule("h", replace(HOURS, least=0))
    idle = evaluate(none, Facts(have, used=used_in_hours([0] * 4)), now=NOW).wishes
    assert [type(wish) for wish in idle] == [Cancel]
    over = [made(5, first.spec, state=OccurrenceState.CANCELLED)]
    again = evaluate(rule, Facts(over, used=used_in_hours([3] * 4)), now=NOW).wishes
    assert [type(wish) for wish in again] == [Book]  # the other one: a cancelled one stays so


def test_a_quantile_weighs_by_time() -> None:
    used = [(0.0, 1.0), (8.0, 7.0), (10.0, 0.0)]
    assert quantile(used, [Span(0.0, 10.0)], 0.8) == 1.0
    assert quantile(used, [Span(0.0, 10.0)], 0.81) == 7.0
    assert quantile(used, [], 0.5) is None
