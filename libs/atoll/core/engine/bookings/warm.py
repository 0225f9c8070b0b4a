"""Runs every kernel of the calendar once, so that nobody waits for the compiler."""

from dataclasses import replace
from typing import Final

from atoll.core.engine.bookings.answers import Booked, Query, Span
from atoll.core.engine.bookings.calendar import Calendar
from atoll.core.model.booking import NodeShare, OccurrenceId, Owners
from atoll.core.model.ids import ClusterName, NodeId
from atoll.core.model.reservation import (
    Amount,
    Part,
    Preference,
    ReservationId,
    ReservationSpec,
    What,
    When,
    WholeNodes,
)
from atoll.core.model.resources import DeviceGrant, DeviceRequest
from atoll.core.state.snapshot import Snapshot

_FORMS: Final = (
    DeviceRequest("H100", 1),
    DeviceRequest("H100", 1, blocks=30),
    DeviceRequest("", 1, blocks=0, memory_bytes=1 << 30),
    DeviceRequest("H100", 1, profile="1g.10gb"),
)


def warm_calendar(snapshot: Snapshot) -> None:
    """Ask everything of a calendar; `snapshot` has H100, some of them in slices."""
    cluster, node = snapshot.clusters[0].name, int(snapshot.nodes.id[0])
    calendar = Calendar(snapshot, [_booked(cluster, node)])
    wanted = [What(amounts=(Amount(form, 1),)) for form in _FORMS]
    for what in (*wanted, What(nodes=WholeNodes(1))):
        for preference in Preference:
            calendar.find(Query(what, 1.0, 0.0, 10.0, 9, preference, priority=1), now=0.0)
    large = What(nodes=WholeNodes(1 + len(snapshot.names)))
    spec = ReservationSpec("warm", large, When(1.0, start_at=2.0), priority=1, override=True)
    calendar.accept(spec, [Span(2.0, 3.0)], now=0.0)
    whole = What(nodes=WholeNodes(len(snapshot.names)))
    calendar.accept(replace(spec, what=whole), [Span(2.0, 3.0)], now=0.0)
    calendar.availability(0.0, 10.0, step=1.0)
    calendar.extend(OccurrenceId(1), 9.0, now=0.0)
    calendar.look(snapshot)
    calendar.remove(OccurrenceId(1))


def _booked(cluster: ClusterName, node: int) -> Booked:
    shares = (NodeShare(NodeId(node), "n", 1, 1, (DeviceGrant(1, 100),)),)
    what = What(amounts=(Amount(_FORMS[0], 1),))
    parts = (Part(cluster, shares),)
    return Booked(OccurrenceId(1), ReservationId(1), "warm", 2.0, 4.0, parts, what, Owners())
