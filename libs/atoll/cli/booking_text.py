"""Bookings as people read them."""

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from atoll.cli.moments import lasting, minute
from atoll.cli.render import Column, Listing, aligned
from atoll.cli.words import devices_text, plural
from atoll.client.booking_views import BookingInfo
from atoll.core.model.booking import NodeShare, Owners
from atoll.core.model.reservation import (
    Amount,
    CandidateWindow,
    Displaced,
    Obstacle,
    Occurrence,
    Part,
    Parts,
    What,
)
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.core.model.standing_rule import (
    InteractiveHoursRule,
    LargeJobRule,
    RollingMaintenanceRule,
    RuleKind,
)

MOST_NODES: Final = 4
"""Nodes that are named of a place before the rest is only counted."""


def what_text(what: What) -> str:
    """`16 x H100`, `2 racks`, `20% of west`."""
    if what.nodes is not None:
        return ", ".join(what.nodes.names) or plural(what.nodes.count, "node")
    if what.domains is not None:
        named = what.domains.names
        return ", ".join(named) or plural(what.domains.count, what.domains.level)
    if what.percent:
        return f"{what.percent}% of {', '.join(what.clusters)}"
    return " + ".join(amount_text(amount) for amount in what.amounts)


def amount_text(amount: Amount) -> str:
    """`16 x H100`, `2 x 8 H100`, `1 x 0.25 H100`, `4 x H100 1g.10gb`."""
    device = amount.device
    if device is None:
        return f"{amount.count} x {(amount.cpu_milli or 0) / 1000:g} CPU"
    kind = device.kind or "any"
    if device.profile:
        unit = f"{kind} {device.profile}"
    elif device.blocks != BLOCKS_PER_DEVICE:
        unit = f"{devices_text(device.blocks)} {kind}"
    else:
        unit = kind if device.count == 1 else f"{device.count} {kind}"
    return f"{amount.count} x {unit}"


def owners_text(owners: Owners) -> str:
    """`nlp, user alice`; `nobody` for maintenance."""
    users = (f"user {name}" for name in owners.users)
    labels = (f"{key}={value}" for key, value in owners.labels)
    return ", ".join([*owners.queues, *users, *labels]) or "nobody"


def place_text(parts: Parts) -> str:
    """`west: n1, n2 and 6 more`; `west` where nodes are not told; `-` for nowhere."""
    return "; ".join(_part_text(part) for part in parts) or "-"


def _part_text(part: Part) -> str:
    return f"{part.cluster}: {_nodes_text(part.shares)}" if part.shares else str(part.cluster)


def _nodes_text(shares: Iterable[NodeShare]) -> str:
    names = [share.node_name for share in shares]
    more = len(names) - MOST_NODES
    return ", ".join(names[:MOST_NODES]) + (f" and {more} more" if more > 0 else "")


def detail_lines(booking: BookingInfo) -> Iterator[str]:
    """Everything that people want to know of one reservation."""
    spec = booking.spec
    number = f" {booking.id}" if booking.id else ""
    yield f"reservation{number} {spec.name}: {booking.state.value}"
    yield f"  books    {what_text(spec.what)}{_where(spec.what)}"
    yield f"  for      {owners_text(spec.owners)}"
    yield f"  repeats  {_repeat(booking)}"
    if spec.owners.nobody:
        yield "  runs     nothing runs there meanwhile"
    else:
        yield f"  at end   {_at_end(booking)}"
        yield f"  unused   {_unused(booking)}"
    if spec.priority or spec.override:
        yield f"  priority {spec.priority}{', overrides lower ones' if spec.override else ''}"
    if spec.charge:
        yield f"  charged  {spec.owners.queues[0] if spec.owners.queues else '-'}, used or not"
    if booking.created_by:
        yield f"  by       {booking.created_by}"
    for text in (spec.note, booking.message, *booking.remarks):
        if text:
            yield f"  note     {text}"


def _where(what: What) -> str:
    return f" in {' or '.join(what.clusters)}" if what.clusters and not what.percent else ""


def _repeat(booking: BookingInfo) -> str:
    when = booking.spec.when
    long = lasting(when.length_s)
    if not when.rrule:
        return f"once, for {long}"
    return f"{when.rrule} ({when.zone or 'UTC'}), for {long}"


def _at_end(booking: BookingInfo) -> str:
    spec = booking.spec
    match spec.on_end:
        case spec.on_end.STOP:
            return "its runs have been stopped, and queue again"
        case spec.on_end.GRACE:
            return f"its runs may go on for {lasting(spec.end_grace_s)}"
        case _:
            return "its runs go on as ordinary jobs"


def _unused(booking: BookingInfo) -> str:
    spec = booking.spec
    lent = "lent to preemptible jobs" if spec.lend else "stays idle"
    if not spec.release_after_idle_s:
        return lent
    return f"{lent}; given back after {lasting(spec.release_after_idle_s)} without a run"


def occurrence_lines(occurrences: Iterable[Occurrence]) -> list[str]:
    """A table of occurrences."""
    rows = [("OCCURRENCE", "START", "LASTS", "STATE", "PLACE", "")]
    rows += [
        (
            str(each.id or "-"),
            minute(each.start_at),
            lasting(each.end_at - each.start_at),
            each.state.value,
            place_text(each.parts),
            each.message,
        )
        for each in occurrences
    ]
    return aligned(rows, (True, False, True, False, False, False)) if len(rows) > 1 else []


def candidate_lines(windows: Iterable[CandidateWindow]) -> Iterator[str]:
    """Windows that could be had, with what each displaces."""
    for number, window in enumerate(windows, start=1):
        lasts = lasting(window.end_at - window.start_at)
        yield f"  {number}. {minute(window.start_at)} for {lasts} on {place_text(window.parts)}"
        yield from (f"       {line}" for line in displaced_lines(window.displaced))


def displaced_lines(displaced: Iterable[Displaced]) -> Iterator[str]:
    """What gives way."""
    for each in displaced:
        hours = each.device_seconds / 3600
        devices = plural(each.devices, "device")
        yield (
            f"displaces {each.kind.value} {each.name} ({each.queue or '-'}): {devices}, "
            f"{hours:,.1f} device-hours"
        )


def obstacle_lines(obstacles: Iterable[Obstacle]) -> Iterator[str]:
    """What is in the way."""
    yield from (f"  - {each.message}" for each in obstacles)


def kind_text(kind: RuleKind) -> str:
    """What a rule does."""
    match kind:
        case LargeJobRule():
            size = f"jobs above {kind.devices_above} devices" if kind.devices_above else ""
            sure = "guaranteed deadlines" if kind.guaranteed else ""
            return f"books for {' and '.join(filter(None, (size, sure)))}"
        case RollingMaintenanceRule():
            lasts = lasting(kind.length_s)
            return (
                f"maintains {kind.cluster}, {kind.most_at_once} {kind.level} at once, {lasts} each"
            )
        case InteractiveHoursRule():
            return f"books hours of {kind.kind} for {kind.queue} by what it used"
        case _:
            assert_never(kind)


BOOKINGS: Final[Listing[BookingInfo]] = Listing(
    columns=(
        Column("ID", lambda b: str(b.id), right=True),
        Column("NAME", lambda b: b.name),
        Column("STATE", lambda b: b.next.state.value if b.next else b.state.value),
        Column("START", lambda b: minute(b.next.start_at) if b.next else "-"),
        Column("LASTS", lambda b: lasting(b.spec.when.length_s), right=True),
        Column("BOOKS", lambda b: what_text(b.spec.what)),
        Column("FOR", lambda b: owners_text(b.spec.owners)),
        Column("PLACE", lambda b: place_text(b.next.parts) if b.next else "-"),
        Column("PRIORITY", lambda b: str(b.spec.priority), wide=True, right=True),
        Column("REPEATS", lambda b: b.spec.when.rrule or "once", wide=True),
        Column("BY", lambda b: b.created_by, wide=True),
        Column("ETAG", lambda b: str(b.etag), wide=True),
    ),
    name=lambda b: b.name,
    empty="no reservations",
)
