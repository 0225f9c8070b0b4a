"""Events of a calendar as bookings of what they name; a UID that was seen before changes its."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

from atoll.core.model.actor import Actor
from atoll.core.model.errors import AlreadyExists, DomainError
from atoll.core.model.ids import ClusterName
from atoll.core.model.reservation import (
    NO_RESERVATION,
    Reservation,
    ReservationId,
    ReservationSpec,
    What,
    When,
    WholeDomains,
    WholeNodes,
)
from atoll.reservation.usecases.change import Changer, Update
from atoll.reservation.usecases.create import Booker, Draft, shown
from atoll.reservation.usecases.fleet import FleetCopy
from atoll.reservation.usecases.give_back import Ender, Which
from atoll.reservation.usecases.ground import Ground
from atoll.reservation.usecases.names import nearest

MOST_NAME: Final = 48
NO_NAME: Final = "maintenance"
PATHS: Final = ("what", "when", "priority", "note")


@dataclass(frozen=True, slots=True)
class CalendarEvent:
    """One event as it was read; without `when` for a reason that `fault` tells."""

    uid: str
    summary: str
    when: When | None = None
    places: tuple[str, ...] = ()
    """What it is of: `cluster`, `cluster/node` or `cluster/domain`; empty: not said."""
    note: str = ""
    cancelled: bool = False
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of an event: `created`, `updated`, `unchanged`, `cancelled` or `refused`."""

    uid: str
    outcome: str
    reservation: ReservationId = NO_RESERVATION
    message: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Defaults:
    """What events do not say themselves."""

    what: What | None
    priority: int
    only_check: bool


class Importer:
    """Books the events of a calendar, one by one."""

    def __init__(self, ground: Ground, *, booker: Booker, changer: Changer, ender: Ender) -> None:
        self._ground = ground
        self._booker = booker
        self._changer = changer
        self._ender = ender

    async def take(
        self, actor: Actor, events: Sequence[CalendarEvent], defaults: Defaults
    ) -> list[Imported]:
        """What came of each event; one that is refused keeps no other from being booked."""
        await self._ground.replica.follow()
        return [await self._one(actor, event, defaults) for event in events]

    async def _one(self, actor: Actor, event: CalendarEvent, defaults: Defaults) -> Imported:
        try:
            return await self._taken(actor, event, defaults)
        except DomainError as refused:
            return Imported(event.uid, "refused", message=refused.message, name=event.summary)

    async def _taken(self, actor: Actor, event: CalendarEvent, defaults: Defaults) -> Imported:
        number = await self._ground.store.with_uid(actor.tenant, event.uid)
        if event.cancelled:
            return await self._cancelled(actor, event, number, only_check=defaults.only_check)
        what = what_of(event.places, self._ground.replica.fleet) or defaults.what
        if event.when is None or what is None:
            why = event.fault or "says not what it is of, and nothing was given for that"
            return Imported(event.uid, "refused", message=why, name=event.summary)
        spec = _spec(event, what, defaults)
        if number is None:
            return await self._created(actor, event, spec, only_check=defaults.only_check)
        standing = (await shown(self._ground, actor, number)).reservation
        return await self._updated(
            actor, event, standing, spec=spec, only_check=defaults.only_check
        )

    async def _created(
        self, actor: Actor, event: CalendarEvent, spec: ReservationSpec, *, only_check: bool
    ) -> Imported:
        draft = Draft(spec, uid=event.uid)
        if only_check:
            await self._booker.check(actor, draft)
            return Imported(event.uid, "created", name=spec.name)
        try:
            made = await self._booker.create(actor, draft)
        except AlreadyExists:
            # Two events may well have one summary.
            named = replace(spec, name=f"{spec.name}-{_digest(event.uid)}")
            made = await self._booker.create(actor, replace(draft, spec=named))
        reservation = made.reservation
        return Imported(event.uid, "created", reservation.id, name=reservation.spec.name)

    async def _updated(
        self,
        actor: Actor,
        event: CalendarEvent,
        standing: Reservation,
        *,
        spec: ReservationSpec,
        only_check: bool,
    ) -> Imported:
        kept = replace(spec, name=standing.spec.name)
        changed = [path for path in PATHS if getattr(kept, path) != getattr(standing.spec, path)]
        name = standing.spec.name
        if not changed:
            return Imported(event.uid, "unchanged", standing.id, name=name)
        update = Update(kept, changed, only_check=only_check)
        await self._changer.update(actor, Which(standing.id), update)
        return Imported(event.uid, "updated", standing.id, name=name)

    async def _cancelled(
        self, actor: Actor, event: CalendarEvent, number: ReservationId | None, *, only_check: bool
    ) -> Imported:
        if number is None:
            return Imported(event.uid, "unchanged", message="it is cancelled", name=event.summary)
        if not only_check:
            await self._ender.cancel(actor, Which(number), reason="cancelled in its calendar")
        return Imported(event.uid, "cancelled", number, name=event.summary)


def what_of(places: Iterable[str], fleet: FleetCopy) -> What | None:
    """What events mean by the places that they name; None when they name nothing."""
    wanted = tuple(places)
    if not wanted:
        return None
    if all("/" not in place for place in wanted):
        return What(percent=100, clusters=tuple(ClusterName(place) for place in wanted))
    domains = {
        f"{node.cluster}/{domain}": level
        for node in fleet.present()
        for level, domain in node.inventory.domains
    }
    # A name that nothing has is taken for what it is most like: the refusal tells the nearest.
    like = nearest(wanted[0], [*domains, *fleet.node_ids])
    level = domains.get(wanted[0]) or (domains.get(like[0]) if like else None)
    if level is not None and wanted[0] not in fleet.node_ids:
        return What(domains=WholeDomains(level, names=wanted))
    return What(nodes=WholeNodes(names=wanted))


def _spec(event: CalendarEvent, what: What, defaults: Defaults) -> ReservationSpec:
    assert event.when is not None
    return ReservationSpec(
        name=_name(event),
        what=what,
        when=event.when,
        priority=defaults.priority,
        lend=False,
        note=event.note,
    )


def _name(event: CalendarEvent) -> str:
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", event.summary).strip("-.")[:MOST_NAME].strip("-.")
    return words or f"{NO_NAME}-{_digest(event.uid)}"


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=4).hexdigest()
