"""Statements of lists of reservations and occurrences; only what restricts is in them."""

from typing import Final

from atoll.adapters.postgres.booking_events import RELATED
from atoll.adapters.postgres.reservation_rows import OCCURRENCE_COLUMNS, RESERVATION_COLUMNS
from atoll.core.model.reservation import NO_RESERVATION, ReservationId
from atoll.ports.store.bookings import OccurrenceFilter, ReservationFilter

IN_CLUSTER: Final = """EXISTS (
    SELECT FROM occurrence_parts p WHERE p.occurrence = o.id AND p.cluster = {cluster}
)"""
# A reservation stands where its next occurrence starts; when there is none, where the last did.
FOLLOWING: Final = """
SELECT count(*) FILTER (WHERE o.live) AS planned,
    (array_agg(o.id ORDER BY o.start_at, o.id) FILTER (WHERE o.live))[1] AS following,
    coalesce(min(o.start_at) FILTER (WHERE o.live), max(o.start_at), r.created_at) AS key
FROM occurrences o WHERE o.reservation = r.id
"""
WITHOUT_OCCURRENCE: Final = f"""
SELECT {RESERVATION_COLUMNS} FROM reservations r WHERE r.state = 'ACTIVE' AND NOT EXISTS (
    SELECT FROM occurrences o WHERE o.reservation = r.id AND o.live
) ORDER BY r.id LIMIT $1
"""


class Where:
    """Conditions and their values."""

    def __init__(self) -> None:
        self.values: list[object] = []
        self._conditions: list[str] = []

    @property
    def text(self) -> str:
        """All of them."""
        return " AND ".join(self._conditions) or "true"

    def value(self, value: object) -> str:
        """The place of a value."""
        self.values.append(value)
        return f"${len(self.values)}"

    def add(self, condition: str, *values: object) -> None:
        """One more; `{}` stands for each value."""
        self._conditions.append(condition.format(*(self.value(value) for value in values)))


def reservations_statement(
    wanted: ReservationFilter,
    *,
    after: tuple[float, int] | None,
    only: ReservationId,
    limit: int,
) -> tuple[str, list[object]]:
    """Reservations with `following`, `planned` and `key`, and the values."""
    where = Where()
    where.add("r.tenant = {}", wanted.tenant)
    if only != NO_RESERVATION:
        where.add("r.id = {}", only)
    if not wanted.over:
        where.add("r.state = 'ACTIVE'")
    if wanted.created_by:
        where.add("r.created_by = {}", wanted.created_by)
    if wanted.queue:
        where.add(RELATED.format(queues="r.queues", wanted=where.value(wanted.queue)))
    _add_spans(where, wanted)
    if after is not None:
        where.add("(k.key, r.id) > ({}, {})", *after)
    statement = (
        f"SELECT {RESERVATION_COLUMNS}, k.* FROM reservations r CROSS JOIN LATERAL ({FOLLOWING}) k"
        f" WHERE {where.text} ORDER BY k.key, r.id LIMIT {where.value(limit)}"
    )
    return statement, where.values


def occurrences_statement(
    wanted: OccurrenceFilter, *, after: tuple[float, int], limit: int
) -> tuple[str, list[object]]:
    """Occurrences by start, and the values."""
    where = Where()
    where.add("r.tenant = {}", wanted.tenant)
    if wanted.reservation != NO_RESERVATION:
        where.add("o.reservation = {}", wanted.reservation)
    if wanted.queue:
        where.add(RELATED.format(queues="r.queues", wanted=where.value(wanted.queue)))
    _add_span(where, wanted)
    where.add("(o.start_at, o.id) > ({}, {})", *after)
    statement = (
        f"SELECT {OCCURRENCE_COLUMNS} FROM occurrences o JOIN reservations r"
        f" ON r.id = o.reservation WHERE {where.text}"
        f" ORDER BY o.start_at, o.id LIMIT {where.value(limit)}"
    )
    return statement, where.values


def _add_spans(where: Where, wanted: ReservationFilter) -> None:
    if not (wanted.ends_after or wanted.starts_before or wanted.cluster):
        return
    inner = Where()
    inner.values = where.values
    inner.add("o.reservation = r.id")
    _add_span(inner, wanted)
    where.add(f"EXISTS (SELECT FROM occurrences o WHERE {inner.text})")


def _add_span(where: Where, wanted: ReservationFilter | OccurrenceFilter) -> None:
    if not wanted.over:
        where.add("o.live")
    if wanted.ends_after:
        where.add("o.end_at > {}", wanted.ends_after)
    if wanted.starts_before:
        where.add("o.start_at < {}", wanted.starts_before)
    if wanted.cluster:
        where.add(IN_CLUSTER.format(cluster=where.value(wanted.cluster)))
