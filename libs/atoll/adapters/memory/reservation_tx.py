"""One transaction of the reservation service in memory."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from atoll.adapters.memory.booking_rows import THE_LOOP, live_of
from atoll.adapters.memory.store_rows import MemoryDatabase, Rows
from atoll.adapters.memory.store_tx import MemoryTx
from atoll.adapters.memory.store_views import catch_up
from atoll.core.model.booking import OccurrenceId
from atoll.core.model.errors import StaleEpoch
from atoll.core.model.ids import ShardId, Tenant
from atoll.core.model.reservation import (
    Occurrence,
    Reservation,
    ReservationId,
    ReservationState,
)
from atoll.core.model.standing_rule import Rule, RuleAction
from atoll.ports.store.bookings import BookingRecord, BookingRequest, Kept, LoopFence, Use
from atoll.ports.store.common import Change, Cursor
from atoll.ports.store.placement import ShardDelta


class MemoryReservationTx:
    """One transaction; `reader` is a writer's number that nobody writes under."""

    def __init__(self, database: MemoryDatabase, rows: Rows, now: float, *, reader: int) -> None:
        self._database = database
        self._rows = rows
        self._bookings = rows.bookings
        self._now = now
        self._reader = reader

    async def now(self) -> float:
        """Time of this transaction, unix seconds."""
        return self._now

    async def require(self, fence: LoopFence) -> LoopFence:
        """Pass the loop's fence, or raise StaleEpoch. The fence for the next commit."""
        if self._bookings.loop.get(THE_LOOP) != fence:
            raise StaleEpoch(f"the loop is no longer at {fence}")
        after = replace(fence, seq=fence.seq + 1)
        self._bookings.loop.put(THE_LOOP, after)
        return after

    async def lock_shards(self, shards: Iterable[ShardId]) -> None:
        """Nobody else is in a transaction."""

    async def catch_up(self, shard: ShardId, cursor: Cursor) -> ShardDelta:
        """Rows of a shard that changed since `cursor`."""
        return catch_up(self._database, shard, cursor, writer=self._reader, now=self._now)

    async def raise_booking_rev(self, shards: Iterable[ShardId]) -> None:
        """Let plans fail that were made before now."""
        for shard in sorted(set(shards)):
            fence = self._rows.shards.get(shard)
            if fence is not None:
                raised = replace(fence, booking_rev=fence.booking_rev + 1)
                self._rows.shards.put(shard, raised)

    async def add_request(self, request: BookingRequest) -> BookingRequest | None:
        """Record a key; None when it is new, else the request that stands."""
        standing = self._bookings.requests.get((request.tenant, request.key))
        if standing is None:
            await self.set_request(request)
        return None if standing is None else standing[0]

    async def set_request(self, request: BookingRequest) -> None:
        """Write the reservation that came of a new request."""
        self._bookings.requests.put((request.tenant, request.key), (request, self._now))

    async def add_reservation(
        self, reservation: Reservation, *, uid: str = ""
    ) -> Reservation | None:
        """Insert with a fresh number; None when a live one of the tenant has its name."""
        number = ReservationId(next(self._bookings.tables.reservation_numbers))
        made = replace(reservation, id=number)
        if self._taken(made):
            return None
        self._bookings.reservations.put(number, made)
        if uid:
            self._bookings.uids.put(number, uid)
        return made

    async def lock_reservations(
        self, ids: Iterable[ReservationId]
    ) -> dict[ReservationId, Reservation]:
        """Rows by ascending number; those that do not exist are left out."""
        found = ((i, self._bookings.reservations.get(i)) for i in sorted(set(ids)))
        return {i: reservation for i, reservation in found if reservation is not None}

    async def update_reservation(self, reservation: Reservation) -> bool:
        """Write a row; False when a live one of the tenant has its name."""
        stored = self._bookings.reservations.get(reservation.id)
        if stored is None or self._taken(reservation):
            return False
        changed = replace(reservation, revision=stored.revision + 1)
        self._bookings.reservations.put(reservation.id, changed)
        if reservation.state is not ReservationState.ACTIVE:
            ended = self._bookings.ends.get(reservation.id) or self._now
            self._bookings.ends.put(reservation.id, ended)
        return True

    async def add_occurrences(self, occurrences: Sequence[Occurrence]) -> list[Occurrence]:
        """Insert with fresh numbers, in their order."""
        numbers = self._bookings.tables.occurrence_numbers
        made = [replace(each, id=OccurrenceId(next(numbers))) for each in occurrences]
        for each in made:
            self._bookings.occurrences.put(each.id, each)
        return made

    async def occurrences(self, ids: Iterable[OccurrenceId]) -> dict[OccurrenceId, Occurrence]:
        """Rows by number; those that do not exist are left out."""
        found = ((i, self._bookings.occurrences.get(i)) for i in sorted(set(ids)))
        return {i: occurrence for i, occurrence in found if occurrence is not None}

    async def kept(self, ids: Iterable[OccurrenceId]) -> dict[OccurrenceId, Kept]:
        """Occurrences with their reservations; those that do not exist are left out."""
        found = (await self.occurrences(ids)).values()
        return {each.id: self._kept(each) for each in found}

    async def live_occurrences(self, reservation: ReservationId) -> list[Occurrence]:
        """Occurrences of a reservation that are not over, by start."""
        return live_of(dict(self._bookings.occurrences.items()), reservation)

    async def update_occurrences(self, occurrences: Sequence[Occurrence]) -> None:
        """Write rows."""
        for each in occurrences:
            stored = self._bookings.occurrences.get(each.id)
            if stored is not None:
                changed = replace(
                    each,
                    used_device_hours=stored.used_device_hours,
                    revision=stored.revision + 1,
                )
                self._bookings.occurrences.put(each.id, changed)

    async def note_use(self, uses: Sequence[Use]) -> None:
        """Write what owners used."""
        for use in uses:
            stored = self._bookings.occurrences.get(use.occurrence)
            if stored is not None:
                changed = replace(stored, used_device_hours=use.used_device_hours)
                self._bookings.occurrences.put(use.occurrence, changed)
                self._bookings.uses.put(use.occurrence, use)

    async def lock_rule(self, tenant: Tenant, name: str) -> Rule | None:
        """A rule."""
        return self._bookings.rules.get((tenant, name))

    async def put_rule(self, rule: Rule) -> None:
        """Insert, or replace by tenant and name."""
        self._bookings.rules.put((rule.tenant, rule.name), rule)

    async def drop_rule(self, tenant: Tenant, name: str) -> None:
        """Delete a rule."""
        self._bookings.rules.drop((tenant, name))

    async def add_rule_actions(self, tenant: Tenant, actions: Sequence[RuleAction]) -> None:
        """Append to what rules did."""
        for action in actions:
            number = next(self._bookings.tables.action_numbers)
            self._bookings.actions.put(number, (tenant, action))

    async def live_of(self, tenant: Tenant, created_by: str) -> list[ReservationId]:
        """Live reservations that somebody created, by number."""
        return sorted(
            each.id
            for each in self._bookings.reservations.values()
            if (each.tenant, each.created_by) == (tenant, created_by)
            and each.state is ReservationState.ACTIVE
        )

    async def add_events(self, events: Sequence[BookingRecord]) -> None:
        """Append to the history that watches show."""
        self._bookings.events += events

    async def changed(self, changes: Sequence[Change]) -> None:
        """Say what this transaction changed, for the loops that follow."""
        await MemoryTx(self._rows, self._now).changed(changes)

    def _taken(self, wanted: Reservation) -> bool:
        return wanted.state is ReservationState.ACTIVE and any(
            (each.tenant, each.spec.name) == (wanted.tenant, wanted.spec.name)
            and each.state is ReservationState.ACTIVE
            and each.id != wanted.id
            for each in self._bookings.reservations.values()
        )

    def _kept(self, occurrence: Occurrence) -> Kept:
        reservation = self._bookings.reservations.get(occurrence.reservation)
        assert reservation is not None
        use = self._bookings.uses.get(occurrence.id)
        shown = replace(occurrence, name=reservation.spec.name)
        if use is None:
            return Kept(reservation, shown)
        return Kept(reservation, shown, busy_at=use.busy_at, used_until=use.used_until)
