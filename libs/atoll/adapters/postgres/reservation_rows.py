"""Rows of reservations, occurrences and rules, and back."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from atoll.adapters.postgres.sql import Record, Sql
from atoll.core.model.booking import OccurrenceId
from atoll.core.model.ids import ClusterName, Tenant
from atoll.core.model.reservation import (
    Occurrence,
    OccurrenceState,
    Part,
    Parts,
    Reservation,
    ReservationId,
    ReservationState,
)
from atoll.core.model.standing_rule import Rule, RuleAction
from atoll.ports.store.bookings import BookingRequest, Kept
from atoll.wire.booking import decode_shares, encode_shares
from atoll.wire.reservation_spec import decode_spec, decode_what, encode_spec, encode_what
from atoll.wire.standing_rule import decode_rule

RESERVATION_INSERTED: Final = (
    "id", "tenant", "name", "created_by", "created_at", "spec", "recurs", "queues", "state",
    "message", "remarks", "planned_until", "etag", "revision",
)  # fmt: skip
RESERVATION_COLUMNS: Final = (
    "r.id, r.tenant, r.created_by, r.created_at, r.spec, r.state, r.message, r.remarks,"
    " r.planned_until, r.etag, r.revision"
)
OCCURRENCE_INSERTED: Final = (
    "id", "reservation", "start_at", "end_at", "state", "start_local", "message", "started_at",
    "ended_at", "missing_devices", "what", "revision",
)  # fmt: skip
OCCURRENCE_COLUMNS: Final = (
    "o.id AS occurrence, o.reservation, o.start_at, o.end_at, o.state AS phase, o.start_local,"
    " o.message AS told, o.started_at, o.ended_at, o.missing_devices, o.used_device_hours,"
    " o.what, o.revision AS occurrence_revision, r.name"
)
PARTS: Final = """
SELECT occurrence, cluster, shares FROM occurrence_parts WHERE occurrence = ANY($1::bigint[])
ORDER BY occurrence, cluster
"""

STATES: Final = {state.value: state for state in ReservationState}
PHASES: Final = {state.value: state for state in OccurrenceState}


def reservation_values(reservation: Reservation) -> tuple[object, ...]:
    """Values of RESERVATION_INSERTED."""
    spec = reservation.spec
    return (
        reservation.id, reservation.tenant, spec.name, reservation.created_by,
        reservation.created_at, encode_spec(spec), bool(spec.when.rrule), list(spec.owners.queues),
        reservation.state.value, reservation.message, list(reservation.remarks),
        reservation.planned_until, reservation.etag, reservation.revision,
    )  # fmt: skip


def reservation_from(row: Record) -> Reservation:
    """A reservation from RESERVATION_COLUMNS."""
    return Reservation(
        id=ReservationId(row["id"]),
        spec=decode_spec(row["spec"]),
        tenant=Tenant(row["tenant"]),
        created_by=row["created_by"],
        created_at=row["created_at"],
        state=STATES[row["state"]],
        etag=row["etag"],
        planned_until=row["planned_until"],
        message=row["message"],
        remarks=tuple(row["remarks"]),
        revision=row["revision"],
    )


def occurrence_values(occurrence: Occurrence) -> tuple[object, ...]:
    """Values of OCCURRENCE_INSERTED."""
    return (
        occurrence.id, occurrence.reservation, occurrence.start_at, occurrence.end_at,
        occurrence.state.value, occurrence.start_local, occurrence.message, occurrence.started_at,
        occurrence.ended_at, occurrence.missing_devices,
        None if occurrence.what is None else encode_what(occurrence.what), occurrence.revision,
    )  # fmt: skip


def part_values(occurrences: Iterable[Occurrence]) -> list[tuple[object, ...]]:
    """Values of occurrence, cluster and shares."""
    return [
        (occurrence.id, part.cluster, encode_shares(part.shares))
        for occurrence in occurrences
        for part in occurrence.parts
    ]


def occurrence_from(row: Record, parts: Parts = ()) -> Occurrence:
    """An occurrence from OCCURRENCE_COLUMNS."""
    return Occurrence(
        id=OccurrenceId(row["occurrence"]),
        reservation=ReservationId(row["reservation"]),
        name=row["name"],
        start_at=row["start_at"],
        end_at=row["end_at"],
        state=PHASES[row["phase"]],
        parts=parts,
        start_local=row["start_local"],
        message=row["told"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        missing_devices=row["missing_devices"],
        used_device_hours=row["used_device_hours"],
        what=None if row["what"] is None else decode_what(row["what"]),
        revision=row["occurrence_revision"],
    )


def kept_from(row: Record, parts: Parts) -> Kept:
    """An occurrence with its reservation."""
    return Kept(
        reservation_from(row),
        occurrence_from(row, parts),
        busy_at=row["busy_at"],
        used_until=row["used_until"],
    )


def rule_from(row: Record) -> Rule:
    """A rule from its whole row."""
    return decode_rule(
        row["rule"], tenant=Tenant(row["tenant"]), etag=row["etag"], status=row["status"]
    )


def request_from(row: Record) -> BookingRequest:
    """A request from its whole row."""
    return BookingRequest(
        Tenant(row["tenant"]), row["key"], row["body_hash"], ReservationId(row["reservation"])
    )


def action_from(row: Record) -> tuple[int, RuleAction]:
    """Something that a rule did, and its number."""
    return row["id"], RuleAction(
        rule=row["rule"],
        at=row["at"],
        what=row["what"],
        why=row["why"],
        reservation=ReservationId(row["reservation"]),
    )


async def with_parts(sql: Sql, rows: Sequence[Record]) -> list[Occurrence]:
    """Occurrences from OCCURRENCE_COLUMNS, their places looked up."""
    parts = await read_parts(sql, [row["occurrence"] for row in rows])
    return [occurrence_from(row, parts.get(row["occurrence"], ())) for row in rows]


async def kept_rows(sql: Sql, rows: Sequence[Record]) -> list[Kept]:
    """Occurrences with their reservations, their places looked up."""
    parts = await read_parts(sql, [row["occurrence"] for row in rows])
    return [kept_from(row, parts.get(row["occurrence"], ())) for row in rows]


async def read_parts(sql: Sql, occurrences: Sequence[int]) -> dict[int, Parts]:
    """Places by number of the occurrence; those without a place are left out."""
    found: dict[int, list[Part]] = defaultdict(list)
    for row in await sql.rows(PARTS, occurrences) if occurrences else ():
        part = Part(ClusterName(row["cluster"]), decode_shares(row["shares"]))
        found[row["occurrence"]].append(part)
    return {number: tuple(parts) for number, parts in found.items()}
