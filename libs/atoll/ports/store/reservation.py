"""What the reservation service reads and writes: bookings, their occurrences, rules, a fence.

A booking is accepted under the locks of the shards that it concerns: nobody commits placements
there until it is written. Locks are taken in this order: the loop's fence, shards, then
reservations and their occurrences by ascending number.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from atoll.core.model.booking import OccurrenceId
from atoll.core.model.ids import Epoch, QueueName, ShardId, Tenant
from atoll.core.model.reservation import (
    NO_RESERVATION,
    Occurrence,
    Reservation,
    ReservationId,
)
from atoll.core.model.standing_rule import Rule, RuleAction
from atoll.ports.store.bookings import (
    BookingPage,
    BookingRecord,
    BookingRequest,
    BookingRetention,
    Kept,
    Listed,
    LoopFence,
    OccurrenceFilter,
    PastRun,
    ReservationFilter,
    Use,
)
from atoll.ports.store.common import Change, Cursor
from atoll.ports.store.placement import ShardDelta


class ReservationTx(Protocol):
    """One transaction. All lists may be empty."""

    async def now(self) -> float:
        """Database time of this transaction, unix seconds."""
        ...

    async def require(self, fence: LoopFence) -> LoopFence:
        """Pass the loop's fence, or raise StaleEpoch. The fence for the next commit."""
        ...

    async def lock_shards(self, shards: Iterable[ShardId]) -> None:
        """Lock shards by ascending number: their leaders' commits wait."""
        ...

    async def catch_up(self, shard: ShardId, cursor: Cursor) -> ShardDelta:
        """Rows of a locked shard that changed since `cursor`; raises CURSOR_EXPIRED."""
        ...

    async def raise_booking_rev(self, shards: Iterable[ShardId]) -> None:
        """Let plans fail that were made before now for locked shards."""
        ...

    async def add_request(self, request: BookingRequest) -> BookingRequest | None:
        """Record a key; None when it is new, else the request that stands.

        Waits for a concurrent transaction with the same key to end.
        """
        ...

    async def set_request(self, request: BookingRequest) -> None:
        """Write the reservation that came of a new request."""
        ...

    async def add_reservation(
        self, reservation: Reservation, *, uid: str = ""
    ) -> Reservation | None:
        """Insert with a fresh number; None when a live one of the tenant has its name."""
        ...

    async def lock_reservations(
        self, ids: Iterable[ReservationId]
    ) -> dict[ReservationId, Reservation]:
        """Lock rows by ascending number; those that do not exist are left out."""
        ...

    async def update_reservation(self, reservation: Reservation) -> bool:
        """Write a locked row; False when a live one of the tenant has its name."""
        ...

    async def add_occurrences(self, occurrences: Sequence[Occurrence]) -> list[Occurrence]:
        """Insert with fresh numbers, in their order."""
        ...

    async def occurrences(self, ids: Iterable[OccurrenceId]) -> dict[OccurrenceId, Occurrence]:
        """Rows whose reservations are locked; those that do not exist are left out."""
        ...

    async def kept(self, ids: Iterable[OccurrenceId]) -> dict[OccurrenceId, Kept]:
        """Occurrences with their reservations, unlocked; those that do not exist are left out."""
        ...

    async def live_occurrences(self, reservation: ReservationId) -> list[Occurrence]:
        """Occurrences of a locked reservation that are not over, by start."""
        ...

    async def update_occurrences(self, occurrences: Sequence[Occurrence]) -> None:
        """Write rows whose reservations are locked."""
        ...

    async def note_use(self, uses: Sequence[Use]) -> None:
        """Write what owners used."""
        ...

    async def lock_rule(self, tenant: Tenant, name: str) -> Rule | None:
        """Lock a rule."""
        ...

    async def put_rule(self, rule: Rule) -> None:
        """Insert, or replace by tenant and name."""
        ...

    async def drop_rule(self, tenant: Tenant, name: str) -> None:
        """Delete a locked rule."""
        ...

    async def add_rule_actions(self, tenant: Tenant, actions: Sequence[RuleAction]) -> None:
        """Append to what rules did."""
        ...

    async def live_of(self, tenant: Tenant, created_by: str) -> list[ReservationId]:
        """Live reservations that somebody created, by number; not locked."""
        ...

    async def add_events(self, events: Sequence[BookingRecord]) -> None:
        """Append to the history that watches show."""
        ...

    async def changed(self, changes: Sequence[Change]) -> None:
        """Say what this transaction changed, for the loops that follow."""
        ...


class ReservationStore(Protocol):
    """The reservation service's side of the store."""

    def begin(self) -> AbstractAsyncContextManager[ReservationTx]:
        """One transaction; retried by the caller, never inside."""
        ...

    async def shards(self) -> list[ShardId]:
        """All shards, ascending."""
        ...

    async def take_over(self, epoch: Epoch) -> LoopFence:
        """Commit a new epoch of the loop; raises StaleEpoch when a later one stands."""
        ...

    async def read_fence(self) -> LoopFence:
        """The loop's fence as it stands, read under its lock: waits for a commit in flight."""
        ...

    async def get(self, tenant: Tenant, reservation: ReservationId) -> Listed | None:
        """One reservation."""
        ...

    async def find(self, tenant: Tenant, name: str) -> ReservationId | None:
        """The live reservation of a name, else the last one."""
        ...

    async def with_uid(self, tenant: Tenant, uid: str) -> ReservationId | None:
        """The live reservation that came of a calendar's event."""
        ...

    async def standing(self, tenant: Tenant, key: str) -> BookingRequest | None:
        """What came of a request key."""
        ...

    async def list_reservations(
        self, wanted: ReservationFilter, *, after: tuple[float, int], limit: int
    ) -> list[Listed]:
        """Reservations by (key, number), only those after `after`."""
        ...

    async def list_occurrences(
        self, wanted: OccurrenceFilter, *, after: tuple[float, int], limit: int
    ) -> list[Occurrence]:
        """Occurrences by (start, number), only those after `after`."""
        ...

    async def live(self) -> list[Kept]:
        """All occurrences of all tenants that are not over, by number."""
        ...

    async def kept(self, ids: Iterable[OccurrenceId]) -> dict[OccurrenceId, Kept]:
        """Occurrences by number; those that do not exist are left out."""
        ...

    async def made_by(self, tenant: Tenant, created_by: str) -> list[Kept]:
        """All occurrences of somebody's reservations, those that are over too, by number."""
        ...

    async def past_runs(self, queue: QueueName, since: float) -> list[PastRun]:
        """Runs of a queue and of those below it that had not ended by `since`, by start."""
        ...

    async def to_plan(self, until: float, *, limit: int) -> list[Reservation]:
        """Live recurring reservations that are planned to less than `until`, by number."""
        ...

    async def live_without_occurrence(self, *, limit: int) -> list[Reservation]:
        """Live reservations none of whose occurrences is to come, by number."""
        ...

    async def rules(self, tenant: Tenant | None = None) -> list[Rule]:
        """Rules of one tenant, or of all, by tenant and name."""
        ...

    async def rule_actions(
        self, tenant: Tenant, rule: str, *, before: int, limit: int
    ) -> list[tuple[int, RuleAction]]:
        """What rules did, numbered, the latest first, only numbers below `before` (0: all)."""
        ...

    async def events_now(self) -> Cursor:
        """The cursor from which only later events are seen."""
        ...

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
        ...

    async def prune(self, keep: BookingRetention, *, limit: int = 1000) -> int:
        """Delete what is older than `keep`, at most `limit` rows of each kind; how many."""
        ...
