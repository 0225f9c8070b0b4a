"""Standing rules: put, listed and deleted by users; the loop evaluates them."""

import re
from dataclasses import replace
from typing import Final, assert_never

from atoll.core.engine.bookings.checks import check_times
from atoll.core.model.actor import Actor
from atoll.core.model.booking import Owners
from atoll.core.model.errors import (
    Aborted,
    ErrorCode,
    FieldViolation,
    InvalidInput,
    NotFound,
)
from atoll.core.model.standing_rule import (
    InteractiveHoursRule,
    LargeJobRule,
    RollingMaintenanceRule,
    Rule,
)
from atoll.core.model.validate_faults import Faults
from atoll.core.model.validate_reservation import check_when
from atoll.reservation.usecases.fleet import FleetCopy
from atoll.reservation.usecases.give_back import cancel_all
from atoll.reservation.usecases.ground import Ground, Writing
from atoll.reservation.usecases.names import unknown_cluster, unknown_owners

NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,58}", re.ASCII)
"""Shorter than a reservation's: its bookings have it in front."""


class RuleBook:
    """The rules of a tenant."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def put(self, actor: Actor, rule: Rule) -> Rule:
        """Create or replace; with an etag only if nobody changed it since."""
        await self._ground.replica.follow()
        if faults := self._faults(actor, rule):
            raise InvalidInput(tuple(faults))

        async def change(writing: Writing) -> Rule:
            standing = await writing.tx.lock_rule(actor.tenant, rule.name)
            etag = 0 if standing is None else standing.etag
            if rule.etag and rule.etag != etag:
                raise _changed(rule, etag)
            status = "" if standing is None else standing.status
            made = replace(rule, tenant=actor.tenant, etag=etag + 1, status=status)
            await writing.tx.put_rule(made)
            return made

        return await self._ground.write(change)

    async def all(self, actor: Actor) -> list[Rule]:
        """By name."""
        return await self._ground.store.rules(actor.tenant)

    async def delete(self, actor: Actor, name: str) -> int:
        """Delete a rule, and cancel what it booked and has not begun; how many that were."""

        async def change(writing: Writing) -> int:
            rule = await writing.tx.lock_rule(actor.tenant, name)
            if rule is None:
                raise NotFound(
                    f"there is no rule {name!r}",
                    code=ErrorCode.RULE_NOT_FOUND,
                    metadata={"rule": name},
                )
            await writing.tx.drop_rule(actor.tenant, name)
            numbers = await writing.tx.live_of(actor.tenant, rule.principal)
            cancelled = 0
            for reservation in (await writing.tx.lock_reservations(numbers)).values():
                live = await writing.tx.live_occurrences(reservation.id)
                if not any(each.started_at for each in live):
                    told = f"rule {name} was deleted"
                    await cancel_all(writing, reservation, actor.principal, reason=told)
                    cancelled += 1
            return cancelled

        return await self._ground.write(change)

    def _faults(self, actor: Actor, rule: Rule) -> list[FieldViolation]:
        faults = Faults()
        if not NAME.fullmatch(rule.name):
            faults.add("rule.name", "is no name: 1 to 58 letters, digits, `.`, `_` and `-`")
        fleet, now = self._ground.replica.fleet, self._ground.clock.now()
        match rule.kind:
            case LargeJobRule() as kind:
                _check_large(faults, kind)
                owners = Owners(queues=kind.queues)
                faults.found += unknown_owners(owners, fleet, actor.tenant, at="rule.large_job")
            case RollingMaintenanceRule() as kind:
                _check_rolling(faults, kind, fleet)
            case InteractiveHoursRule() as kind:
                _check_hours(faults, kind, now=now)
                owners = Owners(queues=(kind.queue,))
                at = "rule.interactive_hours"
                faults.found += unknown_owners(owners, fleet, actor.tenant, at=at)
            case _ as never:
                assert_never(never)
        return faults.found


def _check_large(faults: Faults, kind: LargeJobRule) -> None:
    at = "rule.large_job"
    faults.number(f"{at}.devices_above", kind.devices_above, least=0, most=1_000_000)
    if not kind.devices_above and not kind.guaranteed:
        faults.add(at, "fits no job: give devices_above, or guaranteed")


def _check_rolling(faults: Faults, kind: RollingMaintenanceRule, fleet: FleetCopy) -> None:
    at = "rule.rolling_maintenance"
    faults.number(f"{at}.most_at_once", kind.most_at_once, least=1, most=10_000)
    faults.number(f"{at}.length_s", kind.length_s, least=60, most=90 * 86_400.0)
    if kind.end_at and kind.end_at <= kind.start_at:
        faults.add(f"{at}.end_at", "is not after start_at")
    faults.found += unknown_cluster(kind.cluster, fleet, at=f"{at}.cluster")
    levels = {
        level
        for node in fleet.present()
        if node.cluster == kind.cluster
        for level, _ in node.inventory.domains
    }
    if levels and kind.level not in levels:
        known = ", ".join(sorted(levels))
        faults.add(f"{at}.level", f"{kind.cluster} has no level {kind.level!r}; it has {known}")


def _check_hours(faults: Faults, kind: InteractiveHoursRule, *, now: float) -> None:
    at = "rule.interactive_hours"
    check_when(faults, f"{at}.when", kind.when)
    if not faults.found:
        check_times(faults, f"{at}.when", kind.when, now=now)
    faults.number(f"{at}.weeks", kind.weeks, least=1, most=104)
    faults.number(f"{at}.quantile", kind.quantile, least=0, most=1)
    faults.number(f"{at}.least", kind.least, least=0, most=1_000_000)
    if kind.most and kind.most < kind.least:
        faults.add(f"{at}.most", "is less than least")


def _changed(rule: Rule, etag: int) -> Aborted:
    return Aborted(
        f"rule {rule.name} has changed: its etag is {etag}, not {rule.etag}",
        code=ErrorCode.ETAG_MISMATCH,
        metadata={"rule": rule.name, "etag": str(etag)},
    )
