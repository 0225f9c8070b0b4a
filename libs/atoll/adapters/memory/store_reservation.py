"""The reservation service's side of the store in memory."""

import contextlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

from atoll.adapters.memory.booking_pruning import prune_bookings
from atoll.adapters.memory.booking_rows import THE_LOOP, live_of
from atoll.adapters.memory.reservation_tx import MemoryReservationTx
from atoll.adapters.memory.store_events import events_now, page_after
from atoll.adapters.memory.store_rows import MemoryDatabase
from atoll.adapters.memory.store_submission import is_below
from atoll.core.model.booking import OccurrenceId
from atoll.core.model.errors import StaleEpoch
from atoll.core.model.ids import Epoch, QueueName, ShardId, Tenant, job_of
from atoll.core.model.reservation import (
    NO_RESERVATION,
    Occurrence,
    Reservation,
    ReservationId,
    ReservationState,
)
from atoll.core.model.reservation_lifecycle import TERMINAL_OCCURRENCE
from atoll.core.model.standing_rule import Rule, RuleAction
from atoll.ports.clock import Clock
from atoll.ports.store.bookings import (
    BookingPage,
    BookingRequest,
    BookingRetention,
    Kept,
    Listed,
    LoopFence,
    OccurrenceFilter,
    PastRun,
    ReservationFilter,
)
from atoll.ports.store.common import Cursor
from atoll.ports.store.reservation import ReservationTx


class MemoryReservationStore:
    """The reservation service's side of the store."""

    def __init__(self, database: MemoryDatabase, clock: Clock) -> None:
        self._database = database
        self._tables = database.tables.bookings
        self._clock = clock
        self._reader = next(database.writers)

    @contextlib.asynccontextmanager
    async def begin(self) -> AsyncIterator[ReservationTx]:
        """One transaction."""
        now = self._clock.now()
        async with self._database.transaction(now) as rows:
            yield MemoryReservationTx(self._database, rows, now, reader=self._reader)

    async def shards(self) -> list[ShardId]:
        """All shards, ascending."""
        return sorted(self._database.tables.shards)

    async def take_over(self, epoch: Epoch) -> LoopFence:
        """Commit a new epoch of the loop; raises StaleEpoch when a later one stands."""
        async with self._database.transaction(self._clock.now()) as rows:
            stands = rows.bookings.loop.get(THE_LOOP)
            assert stands is not None
            if stands.epoch > epoch:
                raise StaleEpoch
            fence = replace(stands, epoch=epoch)
            rows.bookings.loop.put(THE_LOOP, fence)
        return fence

    async def read_fence(self) -> LoopFence:
        """The loop's fence as it stands, read under its lock."""
        async with self._database.lock:
            return self._tables.loop[THE_LOOP]

    async def get(self, tenant: Tenant, reservation: ReservationId) -> Listed | None:
        """One reservation."""
        found = self._tables.reservations.get(reservation)
        return self._listed(found) if found is not None and found.tenant == tenant else None

    async def find(self, tenant: Tenant, name: str) -> ReservationId | None:
        """The live reservation of a name, else the last one."""
        named = (
            each
            for each in self._tables.reservations.values()
            if (each.tenant, each.spec.name) == (tenant, name)
        )
        live = ReservationState.ACTIVE
        return max(((each.state is live, each.id) for each in named), default=(False, None))[1]

    async def with_uid(self, tenant: Tenant, uid: str) -> ReservationId | None:
        """The live reservation that came of a calendar's event."""
        numbers = (number for number, known in self._tables.uids.items() if known == uid)
        found = (self._tables.reservations[number] for number in numbers)
        live = (
            each.id
            for each in found
            if each.tenant == tenant and each.state is ReservationState.ACTIVE
        )
        return max(live, default=None)

    async def standing(self, tenant: Tenant, key: str) -> BookingRequest | None:
        """What came of a request key."""
        found = self._tables.requests.get((tenant, key))
        return None if found is None else found[0]

    async def list_reservations(
        self, wanted: ReservationFilter, *, after: tuple[float, int], limit: int
    ) -> list[Listed]:
        """Reservations by (key, number), only those after `after`."""
        found = [
            self._listed(each)
            for each in self._tables.reservations.values()
            if self._shows(each, wanted)
        ]
        ordered = sorted(found, key=lambda each: (each.key, each.reservation.id))
        return [each for each in ordered if (each.key, each.reservation.id) > after][:limit]

    async def list_occurrences(
        self, wanted: OccurrenceFilter, *, after: tuple[float, int], limit: int
    ) -> list[Occurrence]:
        """Occurrences by (start, number), only those after `after`."""
        every = (self._kept(each) for each in self._tables.occurrences.values())
        found = [
            each.occurrence
            for each in every
            if each.reservation.tenant == wanted.tenant
            and wanted.reservation in (NO_RESERVATION, each.reservation.id)
            and _related(each.reservation, wanted.queue)
            and _within(each.occurrence, wanted)
        ]
        ordered = sorted(found, key=lambda each: (each.start_at, each.id))
        return [each for each in ordered if (each.start_at, each.id) > after][:limit]

    async def live(self) -> list[Kept]:
        """All occurrences of all tenants that are not over, by number."""
        return [
            self._kept(each)
            for _, each in sorted(self._tables.occurrences.items())
            if each.state not in TERMINAL_OCCURRENCE
        ]

    async def kept(self, ids: Iterable[OccurrenceId]) -> dict[OccurrenceId, Kept]:
        """Occurrences by number; those that do not exist are left out."""
        found = {i: self._tables.occurrences.get(i) for i in sorted(set(ids))}
        return {i: self._kept(each) for i, each in found.items() if each is not None}

    async def made_by(self, tenant: Tenant, created_by: str) -> list[Kept]:
        """All occurrences of somebody's reservations, those that are over too, by number."""
        every = (self._kept(each) for _, each in sorted(self._tables.occurrences.items()))
        wanted = (tenant, created_by)
        return [k for k in every if (k.reservation.tenant, k.reservation.created_by) == wanted]

    async def past_runs(self, queue: QueueName, since: float) -> list[PastRun]:
        """Runs of a queue and of those below it that had not ended by `since`, by start."""
        jobs, attempts = self._database.tables.jobs, self._database.tables.attempts
        runs = (a for a in attempts.values() if is_below(jobs[job_of(a.id)].queue, queue))
        found = (a for a in runs if a.started_at and (not a.ended_at or a.ended_at > since))
        ordered = sorted(found, key=lambda a: a.started_at)
        return [PastRun(a.started_at, a.ended_at, a.tasks) for a in ordered]

    async def to_plan(self, until: float, *, limit: int) -> list[Reservation]:
        """Live recurring reservations that are planned to less than `until`, by number."""
        live = self._live()
        return [each for each in live if each.spec.when.rrule and each.planned_until < until][
            :limit
        ]

    async def live_without_occurrence(self, *, limit: int) -> list[Reservation]:
        """Live reservations none of whose occurrences is to come, by number."""
        live = self._live()
        return [each for each in live if not live_of(self._tables.occurrences, each.id)][:limit]

    async def rules(self, tenant: Tenant | None = None) -> list[Rule]:
        """Rules of one tenant, or of all, by tenant and name."""
        found = (rule for _, rule in sorted(self._tables.rules.items()))
        return [rule for rule in found if tenant is None or rule.tenant == tenant]

    async def rule_actions(
        self, tenant: Tenant, rule: str, *, before: int, limit: int
    ) -> list[tuple[int, RuleAction]]:
        """What rules did, numbered, the latest first, only numbers below `before` (0: all)."""
        found = sorted(self._tables.actions.items(), reverse=True)
        return [
            (number, action)
            for number, (of, action) in found
            if of == tenant and rule in ("", action.rule) and (not before or number < before)
        ][:limit]

    async def events_now(self) -> Cursor:
        """The cursor from which only later events are seen."""
        return events_now(self._database)

    async def events_after(
        self,
        cursor: Cursor,
        *,
        tenant: Tenant,
        queue: str = "",
        reservation: ReservationId = NO_RESERVATION,
        limit: int = 1000,
    ) -> BookingPage:
        """The next events after a cursor, complete and without repeats; raises CURSOR_EXPIRED."""
        page, following = page_after(
            self._database,
            self._database.booking_events,
            cursor,
            wanted=lambda logged: (
                logged.event.tenant == tenant
                and related(logged.event.queues, queue)
                and reservation in (NO_RESERVATION, logged.event.reservation)
            ),
            lost=self._database.booking_events_lost,
            limit=limit,
        )
        return BookingPage(tuple(each.event for each in page), following)

    async def prune(self, keep: BookingRetention, *, limit: int = 1000) -> int:
        """Delete what is older than `keep`, at most `limit` rows of each kind; how many."""
        return await prune_bookings(self._database, self._clock.now(), keep, limit=limit)

    def _live(self) -> list[Reservation]:
        found = (each for _, each in sorted(self._tables.reservations.items()))
        return [each for each in found if each.state is ReservationState.ACTIVE]

    def _listed(self, reservation: Reservation) -> Listed:
        live = live_of(self._tables.occurrences, reservation.id)
        every = self._tables.occurrences.values()
        starts = [each.start_at for each in every if each.reservation == reservation.id]
        last = max(starts, default=reservation.created_at)
        following = self._kept(live[0]).occurrence if live else None
        key = live[0].start_at if live else last
        return Listed(reservation, following, planned=len(live), key=key)

    def _kept(self, occurrence: Occurrence) -> Kept:
        reservation = self._tables.reservations[occurrence.reservation]
        use = self._tables.uses.get(occurrence.id)
        busy_at, until = (use.busy_at, use.used_until) if use is not None else (0.0, 0.0)
        shown = replace(occurrence, name=reservation.spec.name)
        return Kept(reservation, shown, busy_at=busy_at, used_until=until)

    def _shows(self, reservation: Reservation, wanted: ReservationFilter) -> bool:
        if reservation.tenant != wanted.tenant:
            return False
        if not wanted.over and reservation.state is not ReservationState.ACTIVE:
            return False
        if wanted.created_by not in ("", reservation.created_by):
            return False
        if not _related(reservation, wanted.queue):
            return False
        if not (wanted.ends_after or wanted.starts_before or wanted.cluster):
            return True
        every = self._tables.occurrences.values()
        own = (each for each in every if each.reservation == reservation.id)
        return any(_within(each, wanted) for each in own)


def related(queues: Iterable[str], wanted: str) -> bool:
    """Whether one of some queues is the wanted one, or below or above it."""
    return not wanted or any(
        q == wanted or q.startswith(wanted + ".") or wanted.startswith(q + ".") for q in queues
    )


def _related(reservation: Reservation, wanted: str) -> bool:
    return related(reservation.spec.owners.queues, wanted)


def _within(occurrence: Occurrence, wanted: ReservationFilter | OccurrenceFilter) -> bool:
    return (
        (wanted.over or occurrence.state not in TERMINAL_OCCURRENCE)
        and (not wanted.ends_after or occurrence.end_at > wanted.ends_after)
        and (not wanted.starts_before or occurrence.start_at < wanted.starts_before)
        and (not wanted.cluster or wanted.cluster in {part.cluster for part in occurrence.parts})
    )
