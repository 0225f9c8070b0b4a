"""Evaluates standing rules, and does what they wish for: each thing once, with its reason."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from atoll.core.engine.bookings.recurrence import BadTime
from atoll.core.engine.bookings.rules.evaluate import evaluate
from atoll.core.engine.bookings.rules.interactive import WEEK_S
from atoll.core.engine.bookings.rules.wishes import Book, Cancel, Change, Facts, Wish
from atoll.core.model.actor import Actor
from atoll.core.model.errors import (
    AlreadyExists,
    DomainError,
    ErrorCode,
    InvalidInput,
    NotFound,
)
from atoll.core.model.refusal import BookingRefused
from atoll.core.model.reservation import NO_RESERVATION, ReservationSpec
from atoll.core.model.standing_rule import (
    InteractiveHoursRule,
    LargeJobRule,
    RollingMaintenanceRule,
    Rule,
    RuleAction,
)
from atoll.ports.store.bookings import LoopFence, PastRun
from atoll.ports.store.reservation import ReservationTx
from atoll.reservation.usecases.change import Changer, Update
from atoll.reservation.usecases.create import Booker, Draft
from atoll.reservation.usecases.fleet import FleetCopy
from atoll.reservation.usecases.give_back import Ender, Which
from atoll.reservation.usecases.ground import Ground, Writing
from atoll.reservation.usecases.keeper import Term

MOST_WISHES: Final = 20
"""Of one rule in one look."""
REFUSALS: Final = (BookingRefused, AlreadyExists, InvalidInput)


@dataclass(slots=True)
class Automation:
    """The rules of all tenants, in one term of the loop."""

    term: Term
    _told: dict[tuple[str, str], str] = field(default_factory=dict)
    """What was written last of a rule and a booking that cannot be had."""

    async def look(self) -> int:
        """Evaluate every rule once; how many things were done."""
        rules = await self.term.ground.store.rules()
        return sum([await self._one(rule) for rule in rules])

    async def _one(self, rule: Rule) -> int:
        try:
            return await self._evaluated(rule)
        except NotFound:
            return 0  # somebody deleted it, or what it was about, meanwhile

    async def _evaluated(self, rule: Rule) -> int:
        try:
            verdict = evaluate(rule, await self._facts(rule), now=self.term.ground.clock.now())
        except BadTime as bad:
            await self._say(rule, str(bad))
            return 0
        done = sum([await self._do(rule, wish) for wish in verdict.wishes[:MOST_WISHES]])
        await self._say(rule, verdict.status)
        return done

    async def _facts(self, rule: Rule) -> Facts:
        ground = self.term.ground
        made = await ground.store.made_by(rule.tenant, rule.principal)
        facts = Facts(made=[(kept.reservation, kept.occurrence) for kept in made])
        async with ground.replica.lock:
            fleet = ground.replica.fleet
            match rule.kind:
                case LargeJobRule():
                    return replace(facts, pending=fleet.waiting(rule.tenant))
                case RollingMaintenanceRule() as kind:
                    return replace(facts, domains=fleet.domains(kind.cluster, kind.level))
                case InteractiveHoursRule() as kind:
                    since = ground.clock.now() - (kind.weeks + 1) * WEEK_S
                    runs = await ground.store.past_runs(kind.queue, since)
                    return replace(facts, used=steps(runs, fleet, kind.kind))
                case _ as never:
                    assert_never(never)

    async def _do(self, rule: Rule, wish: Wish) -> int:
        match wish:
            case Book():
                return await self._book(rule, wish)
            case Change():
                return await self._change(rule, wish)
            case Cancel():
                return await self._cancel(rule, wish)
            case _ as never:
                assert_never(never)

    async def _book(self, rule: Rule, wish: Book) -> int:
        last = ""
        for spec in (wish.spec, *wish.otherwise):
            try:
                await self._run(rule, f"booked {spec.name}", wish.why, wish=_Book(spec))
            except REFUSALS as refused:
                last = _why(refused)
            else:
                return 1
        await self._cannot(rule, wish.spec, last)
        return 0

    async def _change(self, rule: Rule, wish: Change) -> int:
        try:
            await self._run(rule, f"changed {wish.spec.name}", wish.why, wish=wish)
        except REFUSALS as refused:
            await self._cannot(rule, wish.spec, _why(refused))
            return 0
        return 1

    async def _cancel(self, rule: Rule, wish: Cancel) -> int:
        try:
            await self._run(rule, "cancelled", wish.why, wish=wish)
        except NotFound:
            return 0
        return 1

    async def _run(
        self, rule: Rule, what: str, why: str, *, wish: "_Book | Change | Cancel"
    ) -> None:
        """Do one thing under the fence, with its action in the same transaction."""
        passed: list[LoopFence] = []

        async def fence(tx: ReservationTx) -> None:
            passed.append(await tx.require(self.term.fence))
            if await tx.lock_rule(rule.tenant, rule.name) is None:
                raise NotFound(f"rule {rule.name} is gone", code=ErrorCode.RULE_NOT_FOUND)

        async def also(writing: Writing) -> None:
            of = writing.events[0].reservation if writing.events else NO_RESERVATION
            action = RuleAction(rule.name, writing.now, what=what, why=why, reservation=of)
            await writing.tx.add_rule_actions(rule.tenant, [action])

        await _carry_out(self.term, self.term.ground.under(fence, also), rule, wish=wish)
        self.term.fence = passed[-1]

    async def _cannot(self, rule: Rule, spec: ReservationSpec, why: str) -> None:
        """Write once that something could not be had, and again only for another reason."""
        key = (f"{rule.tenant}/{rule.name}", spec.name)
        if self._told.get(key) == why:
            return
        self._told[key] = why
        now = self.term.ground.clock.now()
        action = RuleAction(rule.name, now, what=f"could not book {spec.name}", why=why)
        await self.term.small(lambda tx: tx.add_rule_actions(rule.tenant, [action]))

    async def _say(self, rule: Rule, status: str) -> None:
        if status == rule.status:
            return

        async def change(tx: ReservationTx) -> None:
            standing = await tx.lock_rule(rule.tenant, rule.name)
            if standing is not None:
                await tx.put_rule(replace(standing, status=status))

        await self.term.small(change)


@dataclass(frozen=True, slots=True)
class _Book:
    """One try."""

    spec: ReservationSpec


async def _carry_out(
    term: Term, ground: Ground, rule: Rule, *, wish: _Book | Change | Cancel
) -> None:
    actor = Actor(rule.principal, rule.tenant)
    match wish:
        case _Book():
            await Booker(ground, horizon_s=term.horizon_s).create(actor, Draft(wish.spec))
        case Change():
            update = Update(wish.spec, ("what",))
            changer = Changer(ground, horizon_s=term.horizon_s)
            await changer.update(actor, Which(wish.reservation), update)
        case Cancel():
            await Ender(ground).cancel(actor, Which(wish.reservation), reason=wish.why)
        case _ as never:
            assert_never(never)


def _why(refused: DomainError) -> str:
    if isinstance(refused, BookingRefused) and refused.obstacles:
        return "; ".join(obstacle.message for obstacle in refused.obstacles[:2])
    return refused.message


def steps(runs: Sequence[PastRun], fleet: FleetCopy, kind: str) -> list[tuple[float, float]]:
    """(time, devices of a kind in use from then on) in order."""
    changes: dict[float, float] = {}
    for run in runs:
        devices = sum(
            len(task.devices)
            for task in run.tasks
            if (node := fleet.nodes.get(task.node)) is not None
            and any(device.kind == kind for device in node.inventory.devices)
        )
        if devices:
            changes[run.started_at] = changes.get(run.started_at, 0.0) + devices
            if run.ended_at:
                changes[run.ended_at] = changes.get(run.ended_at, 0.0) - devices
    used, found = 0.0, []
    for at, change in sorted(changes.items()):
        used += change
        found.append((at, used))
    return found
