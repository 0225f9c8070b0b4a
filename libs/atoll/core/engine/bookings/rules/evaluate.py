"""Asks a standing rule, of whatever kind, what it wishes for."""

from typing import assert_never

from atoll.core.engine.bookings.rules.interactive import interactive_hours
from atoll.core.engine.bookings.rules.large_jobs import large_jobs
from atoll.core.engine.bookings.rules.maintenance import rolling_maintenance
from atoll.core.engine.bookings.rules.wishes import Facts, Verdict
from atoll.core.model.standing_rule import (
    InteractiveHoursRule,
    LargeJobRule,
    RollingMaintenanceRule,
    Rule,
)


def evaluate(rule: Rule, facts: Facts, *, now: float) -> Verdict:
    """What a rule wishes for at wall time `now`; nothing when it is disabled.

    Raises BadTime when its times cannot be read.
    """
    if not rule.enabled:
        return Verdict((), "disabled")
    kind = rule.kind
    match kind:
        case LargeJobRule():
            return large_jobs(rule, kind, facts, now=now)
        case RollingMaintenanceRule():
            return rolling_maintenance(rule, kind, facts, now=now)
        case InteractiveHoursRule():
            return interactive_hours(rule, kind, facts, now=now)
        case _:
            assert_never(kind)
