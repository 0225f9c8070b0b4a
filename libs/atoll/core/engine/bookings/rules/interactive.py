"""Interactive hours: recurring windows that are as large as what was used in the weeks before."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from atoll.core.engine.bookings.answers import Span
from atoll.core.engine.bookings.recurrence import occurrences
from atoll.core.engine.bookings.rules.wishes import (
    Book,
    Cancel,
    Change,
    Facts,
    Verdict,
    Wish,
    live,
    name_of,
)
from atoll.core.model.booking import Owners
from atoll.core.model.reservation import (
    Amount,
    Occurrence,
    OccurrenceState,
    Reservation,
    ReservationSpec,
    What,
    When,
)
from atoll.core.model.resources import DeviceRequest
from atoll.core.model.standing_rule import InteractiveHoursRule, Rule

WEEK_S: Final = 7 * 86_400.0
AHEAD_S: Final = 2 * WEEK_S
"""How far ahead windows are booked."""
Steps = Sequence[tuple[float, float]]
"""(time, devices in use from then on) in order."""


def interactive_hours(
    rule: Rule, kind: InteractiveHoursRule, facts: Facts, *, now: float
) -> Verdict:
    """Windows of the size that the weeks before tell, and changes of those that are not.

    Raises BadTime when the rule's times cannot be read.
    """
    size, why = _size(kind, facts.used, now=now)
    coming = occurrences(kind.when, now, now + AHEAD_S).spans
    have = {booked.spec.name: (booked, at) for booked, at in live(facts.made)}
    # What was booked and ended early, or was cancelled by somebody, is not booked again.
    known = {booked.spec.name for booked, _ in facts.made}
    wishes: list[Wish] = []
    for span in coming:
        spec = _spec(rule, kind, span, size=size)
        if spec.name in have:
            wishes += _changed(spec, *have[spec.name], size=size, why=why)
        elif size and spec.name not in known:
            wishes.append(Book(spec, why))
    return Verdict(tuple(wishes), f"{size} {kind.kind}: {why}; {len(have)} windows are booked")


def quantile(used: Steps, spans: Sequence[Span], q: float) -> float | None:
    """What was in use at once, at most, for a part `q` of the time of some spans; None: no time."""
    weights: dict[float, float] = {}
    for span in spans:
        for devices, seconds in _inside(used, span):
            weights[devices] = weights.get(devices, 0.0) + seconds
    total, passed = sum(weights.values()), 0.0
    for devices, seconds in sorted(weights.items()):
        passed += seconds
        if passed >= q * total - 1e-6:
            return devices
    return None


def _size(kind: InteractiveHoursRule, used: Steps, *, now: float) -> tuple[int, str]:
    since = now - kind.weeks * WEEK_S
    hours = [span for span in occurrences(kind.when, since, now).spans if span.end <= now]
    known = used[0][0] if used else math.inf
    found = quantile(used, [span for span in hours if span.start >= known], kind.quantile)
    if found is None:
        return kind.least, "nothing is known of the weeks before"
    size = max(kind.least, math.ceil(found))
    size = min(size, kind.most) if kind.most else size
    told = f"{found:g} were in use at once at most for {kind.quantile:.0%} of these hours"
    return size, f"{told} in the {kind.weeks} weeks before"


def _inside(used: Steps, span: Span) -> Iterator[tuple[float, float]]:
    """(devices, seconds) of the steps within a span."""
    for number, (at, devices) in enumerate(used):
        until = used[number + 1][0] if number + 1 < len(used) else math.inf
        seconds = min(until, span.end) - max(at, span.start)
        if seconds > 0:
            yield devices, seconds


def _spec(rule: Rule, kind: InteractiveHoursRule, span: Span, *, size: int) -> ReservationSpec:
    amounts = (Amount(DeviceRequest(kind.kind, 1), max(1, size)),)
    clusters = (kind.cluster,) if kind.cluster else ()
    return ReservationSpec(
        name_of(rule, span.local[:16].replace(":", "")),
        What(amounts=amounts, clusters=clusters, split=not kind.cluster),
        When(span.end - span.start, start_at=span.start, zone=kind.when.zone),
        Owners(queues=(kind.queue,)),
    )


def _changed(
    spec: ReservationSpec, booked: Reservation, at: Occurrence, *, size: int, why: str
) -> Iterator[Wish]:
    if at.state is OccurrenceState.RUNNING:
        return
    if not size:
        yield Cancel(booked.id, why)
    elif booked.spec.what.amounts != spec.what.amounts:
        yield Change(booked.id, spec, why)
