"""One transaction of the reservation service."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from atoll.adapters.postgres.booking_events import EVENT_INSERTED, event_values
from atoll.adapters.postgres.cursors import Position
from atoll.adapters.postgres.live import LiveRowsTx
from atoll.adapters.postgres.reservation_rows import (
    OCCURRENCE_INSERTED,
    kept_rows,
    occurrence_values,
    part_values,
    request_from,
    reservation_from,
    reservation_values,
    rule_from,
    with_parts,
)
from atoll.adapters.postgres.reservation_sql import (
    ADD_ACTION,
    ADD_PARTS,
    ADD_REQUEST,
    ADD_RESERVATION,
    DROP_PARTS,
    FENCE,
    KEPT_NUMBERED,
    LOCK_RESERVATIONS,
    LOCK_SHARDS,
    NAME_TAKEN,
    NOTE_USE,
    OCCURRENCES,
    PUT_RULE,
    RAISE,
    REQUEST,
    UPDATE_OCCURRENCES,
    UPDATE_RESERVATION,
)
from atoll.adapters.postgres.sql import Sql
from atoll.adapters.postgres.views import read_changed, read_changes
from atoll.core.model.booking import OccurrenceId
from atoll.core.model.errors import StaleEpoch
from atoll.core.model.ids import ShardId, Tenant
from atoll.core.model.reservation import Occurrence, Reservation, ReservationId
from atoll.core.model.standing_rule import Rule, RuleAction
from atoll.ports.store.bookings import BookingRecord, BookingRequest, Kept, LoopFence, Use
from atoll.ports.store.common import Change, Cursor
from atoll.ports.store.placement import ShardDelta
from atoll.wire.booking import encode_shares
from atoll.wire.standing_rule import encode_rule


class PostgresReservationTx:
    """One transaction; `reader` is a writer's name that nobody writes under."""

    def __init__(self, sql: Sql, reader: str) -> None:
        self._sql = sql
        self._reader = reader
        self._rows = LiveRowsTx(sql)
        self._now: float | None = None

    async def now(self) -> float:
        """Database time of this transaction, unix seconds."""
        return self._now if self._now is not None else await self._rows.now()

    async def require(self, fence: LoopFence) -> LoopFence:
        """Pass the loop's fence, or raise StaleEpoch. The fence for the next commit."""
        epoch = fence.epoch
        seq = await self._sql.value(FENCE, epoch.generation, epoch.revision, fence.seq)
        if seq is None:
            raise StaleEpoch(f"the loop is no longer at {fence}")
        return LoopFence(epoch, seq)

    async def lock_shards(self, shards: Iterable[ShardId]) -> None:
        """Lock shards by ascending number: their leaders' commits wait."""
        rows = await self._sql.rows(LOCK_SHARDS, sorted(set(shards)))
        self._now = rows[0]["at"] if rows else None

    async def catch_up(self, shard: ShardId, cursor: Cursor) -> ShardDelta:
        """Rows of a locked shard that changed since `cursor`; raises CURSOR_EXPIRED."""
        start = Position.parse(cursor)
        changed = await read_changes(self._sql, start, shard=shard, writer=self._reader)
        if changed.empty:
            return ShardDelta(changed.position.cursor())
        return await read_changed(self._sql, changed, shard)

    async def raise_booking_rev(self, shards: Iterable[ShardId]) -> None:
        """Let plans fail that were made before now for locked shards."""
        await self._sql.run(RAISE, sorted(set(shards)))

    async def add_request(self, request: BookingRequest) -> BookingRequest | None:
        """Record a key; None when it is new, else the request that stands."""
        key = (request.tenant, request.key)
        new = await self._sql.value(ADD_REQUEST, *key, request.body_hash, request.reservation)
        if new is not None:
            return None
        row = await self._sql.row(REQUEST, *key)
        return None if row is None else request_from(row)

    async def set_request(self, request: BookingRequest) -> None:
        """Write the reservation that came of a new request."""
        await self._sql.run(
            "UPDATE reservation_requests SET reservation = $3 WHERE tenant = $1 AND key = $2",
            request.tenant,
            request.key,
            request.reservation,
        )

    async def add_reservation(
        self, reservation: Reservation, *, uid: str = ""
    ) -> Reservation | None:
        """Insert with a fresh number; None when a live one of the tenant has its name."""
        (number,) = await self._numbers("reservations", 1)
        made = replace(reservation, id=ReservationId(number))
        added = await self._sql.value(ADD_RESERVATION, *reservation_values(made), uid)
        return None if added is None else made

    async def lock_reservations(
        self, ids: Iterable[ReservationId]
    ) -> dict[ReservationId, Reservation]:
        """Lock rows by ascending number; those that do not exist are left out."""
        rows = await self._sql.rows(LOCK_RESERVATIONS, sorted(set(ids)))
        return {ReservationId(row["id"]): reservation_from(row) for row in rows}

    async def update_reservation(self, reservation: Reservation) -> bool:
        """Write a locked row; False when a live one of the tenant has its name."""
        spec = reservation.spec
        taken = await self._sql.value(NAME_TAKEN, reservation.tenant, spec.name, reservation.id)
        if taken is not None:
            return False
        (
            number, _, name, _, _, data, recurs, queues, state, message, remarks, until, etag, _,
        ) = reservation_values(reservation)  # fmt: skip
        await self._sql.run(
            UPDATE_RESERVATION, number, name, data, recurs, queues, state, message, remarks, until,
            etag,
        )  # fmt: skip
        return True

    async def add_occurrences(self, occurrences: Sequence[Occurrence]) -> list[Occurrence]:
        """Insert with fresh numbers, in their order."""
        if not occurrences:
            return []
        numbers = await self._numbers("occurrences", len(occurrences))
        made = [
            replace(each, id=OccurrenceId(number))
            for each, number in zip(occurrences, numbers, strict=True)
        ]
        await self._sql.copy("occurrences", OCCURRENCE_INSERTED, map(occurrence_values, made))
        await self._sql.copy(
            "occurrence_parts", ("occurrence", "cluster", "shares"), part_values(made)
        )
        return made

    async def occurrences(self, ids: Iterable[OccurrenceId]) -> dict[OccurrenceId, Occurrence]:
        """Rows whose reservations are locked; those that do not exist are left out."""
        rows = await self._sql.rows(
            f"{OCCURRENCES} WHERE o.id = ANY($1::bigint[]) ORDER BY o.id", sorted(set(ids))
        )
        return {each.id: each for each in await with_parts(self._sql, rows)}

    async def kept(self, ids: Iterable[OccurrenceId]) -> dict[OccurrenceId, Kept]:
        """Occurrences with their reservations; those that do not exist are left out."""
        rows = await self._sql.rows(KEPT_NUMBERED, sorted(set(ids)))
        return {each.occurrence.id: each for each in await kept_rows(self._sql, rows)}

    async def live_occurrences(self, reservation: ReservationId) -> list[Occurrence]:
        """Occurrences of a locked reservation that are not over, by start."""
        rows = await self._sql.rows(
            f"{OCCURRENCES} WHERE o.reservation = $1 AND o.live ORDER BY o.start_at, o.id",
            reservation,
        )
        return await with_parts(self._sql, rows)

    async def update_occurrences(self, occurrences: Sequence[Occurrence]) -> None:
        """Write rows whose reservations are locked."""
        if not occurrences:
            return
        values = [_mutable(each) for each in occurrences]
        await self._sql.run(UPDATE_OCCURRENCES, *map(list, zip(*values, strict=True)))
        await self._sql.run(DROP_PARTS, [each.id for each in occurrences])
        parts = [(each.id, part) for each in occurrences for part in each.parts]
        await self._sql.run(
            ADD_PARTS,
            [number for number, _ in parts],
            [part.cluster for _, part in parts],
            [encode_shares(part.shares) for _, part in parts],
        )

    async def note_use(self, uses: Sequence[Use]) -> None:
        """Write what owners used."""
        if uses:
            await self._sql.run(
                NOTE_USE,
                [use.occurrence for use in uses],
                [use.used_device_hours for use in uses],
                [use.busy_at for use in uses],
                [use.used_until for use in uses],
            )

    async def lock_rule(self, tenant: Tenant, name: str) -> Rule | None:
        """Lock a rule."""
        row = await self._sql.row(
            "SELECT * FROM booking_rules WHERE tenant = $1 AND name = $2 FOR UPDATE", tenant, name
        )
        return None if row is None else rule_from(row)

    async def put_rule(self, rule: Rule) -> None:
        """Insert, or replace by tenant and name."""
        await self._sql.run(
            PUT_RULE, rule.tenant, rule.name, encode_rule(rule), rule.status, rule.etag
        )

    async def drop_rule(self, tenant: Tenant, name: str) -> None:
        """Delete a locked rule."""
        await self._sql.run(
            "DELETE FROM booking_rules WHERE tenant = $1 AND name = $2", tenant, name
        )

    async def add_rule_actions(self, tenant: Tenant, actions: Sequence[RuleAction]) -> None:
        """Append to what rules did."""
        for action in actions:
            await self._sql.run(
                ADD_ACTION, tenant, action.rule, action.at, action.what, action.why,
                action.reservation,
            )  # fmt: skip

    async def live_of(self, tenant: Tenant, created_by: str) -> list[ReservationId]:
        """Live reservations that somebody created, by number; not locked."""
        rows = await self._sql.rows(
            "SELECT id FROM reservations WHERE tenant = $1 AND created_by = $2"
            " AND state = 'ACTIVE' ORDER BY id",
            tenant,
            created_by,
        )
        return [ReservationId(row["id"]) for row in rows]

    async def add_events(self, events: Sequence[BookingRecord]) -> None:
        """Append to the history that watches show."""
        if events:
            await self._sql.copy("booking_events", EVENT_INSERTED, map(event_values, events))

    async def changed(self, changes: Sequence[Change]) -> None:
        """Say what this transaction changed, for the loops that follow."""
        await self._rows.changed(changes)

    async def _numbers(self, table: str, count: int) -> list[int]:
        rows = await self._sql.rows(
            f"SELECT nextval(pg_get_serial_sequence('{table}', 'id')) AS id"
            " FROM generate_series(1, $1)",
            count,
        )
        return sorted(row["id"] for row in rows)


def _mutable(occurrence: Occurrence) -> tuple[object, ...]:
    number, _, start, end, phase, local, told, started, ended, missing, what, _ = occurrence_values(
        occurrence
    )
    return number, start, end, phase, local, told, started, ended, missing, what
