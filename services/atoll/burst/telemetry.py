"""What the burst service measures of itself and of what is rented. Money: dollars."""

import contextlib
from collections import Counter as Count
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from atoll.burst.usecases.desk import Desk
from atoll.burst.usecases.look import SpendView
from atoll.burst.usecases.series import Series
from atoll.burst.usecases.term import Happened
from atoll.core.engine.burst.broker.life import Act
from atoll.core.model.burst import ENDED, MICROS, Instance, InstanceState
from atoll.core.model.errors import DomainError
from atoll.runtime import logs, metrics

log = logs.logger(__name__)

LEADING: Final = metrics.gauge(
    "burst_leading_info", "1 while this replica leads the loop of what is rented."
)
STEP_SECONDS: Final = metrics.histogram(
    "burst_step_seconds", "One look of the loop at one provider's instances."
)
INSTANCES: Final = metrics.gauge("burst_instances", "Instances that are not ended.", ("state",))
SPEND: Final = metrics.counter("burst_spend_dollars_total", "Dollars spent, as counted.")
RATE: Final = metrics.gauge(
    "burst_rate_dollars", "Dollars an hour of what runs and what is asked for.", ("queue",)
)
MONTH: Final = metrics.gauge("burst_month_dollars", "Dollars spent this month.", ("queue",))
BUDGET_LEFT: Final = metrics.gauge(
    "burst_budget_left_dollars", "What a bound leaves.", ("queue", "bound")
)
DECISIONS: Final = metrics.counter(
    "burst_decisions_total", "What the broker did to instances.", ("action",)
)
PROVIDER_ERRORS: Final = metrics.counter(
    "burst_provider_errors_total", "Calls that a provider did not answer.", ("provider",)
)
PROVIDER_UP: Final = metrics.gauge(
    "burst_provider_reachable_info", "1 when a provider answered the last call.", ("provider",)
)
MISSING: Final = metrics.gauge(
    "burst_missing_provider_instances",
    "Instances that are left of a provider that is not among the settings any more.",
    ("provider",),
)
REAPED: Final = metrics.counter(
    "burst_reaped_total", "Machines that were ended because nobody had a row of them."
)
BOOT_SECONDS: Final = metrics.histogram(
    "burst_boot_seconds",
    "From the request of an instance until its agent has joined.",
    ("provider",),
    buckets=(1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 3600),
)
NEVER_BOOTED: Final = metrics.counter(
    "burst_boot_failures_total", "Instances that did not come, or not in time.", ("provider",)
)
ENDING_SECONDS: Final = metrics.gauge(
    "burst_ending_seconds", "For how long the provider has not confirmed the oldest end."
)
WANTED_SECONDS: Final = metrics.histogram(
    "burst_want_to_ready_seconds",
    "From when an instance was wanted for a job until it was ready.",
    buckets=(1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 3600),
)
FORECAST: Final = metrics.gauge(
    "burst_forecast_devices", "Devices that are forecast an hour ahead.", ("kind", "quantile")
)
DEMAND: Final = metrics.gauge("burst_demand_devices", "Devices in use or asked for.", ("kind",))
CAPACITY: Final = metrics.gauge(
    "burst_capacity_devices", "Devices that there are without renting.", ("kind",)
)
COVERAGE: Final = metrics.gauge(
    "burst_forecast_coverage_ratio", "Share of past demand within the 90 % band.", ("kind",)
)
REFUSED: Final = metrics.counter(
    "burst_refused_total", "Requests by hand that were refused.", ("reason",)
)
FAILED_STEPS: Final = metrics.counter(
    "burst_step_failures_total", "Steps of the loop that failed.", ("step",)
)


@contextlib.contextmanager
def asking() -> Iterator[None]:
    """Around a call that rents by hand."""
    try:
        yield
    except DomainError as refusal:
        REFUSED.labels(refusal.code.value).inc()
        raise


def leads() -> None:
    """This replica leads the loop from now on."""
    LEADING.set(1)


def stands_by() -> None:
    """This replica leads no more."""
    LEADING.set(0)
    ENDING_SECONDS.set(0)
    for gauge in (INSTANCES, MISSING, RATE, MONTH, BUDGET_LEFT):
        gauge.clear()
    for gauge in (FORECAST, DEMAND, CAPACITY, COVERAGE):
        gauge.clear()


def happened(done: Iterable[Happened]) -> None:
    """The loop did something to instances."""
    for each in done:
        if each.what == Act.WAIT.value:
            continue
        row = each.instance
        DECISIONS.labels(each.what).inc()
        log.info(
            "instance",
            what=each.what,
            instance=row.id,
            offer=row.offer.key,
            state=row.state.value,
            why=each.why,
        )
        if each.what == Act.READY.value:
            _is_ready(row)
        if not row.ready_at and row.state in ENDED:
            NEVER_BOOTED.labels(row.offer.provider).inc()


def standing(rows: Sequence[Instance], *, now: float) -> None:
    """Instances that are not ended."""
    states = Count(row.state for row in rows)
    for state in InstanceState:
        if state not in ENDED:
            INSTANCES.labels(state.value).set(states[state])
    ending = [row for row in rows if row.state is InstanceState.TERMINATING]
    late_s = [max(0.0, now - row.drain_by) for row in ending]
    ENDING_SECONDS.set(max(late_s, default=0.0))


def money(views: Iterable[SpendView]) -> None:
    """What is spent and bound, and what bounds leave."""
    for view in views:
        queue, state = view.state.queue or "", view.state
        RATE.labels(queue).set(state.rate / MICROS)
        MONTH.labels(queue).set(state.month / MICROS)
        for bound, limit, used in (
            ("per_hour", view.budget.per_hour, state.rate),
            ("per_month", view.budget.per_month, state.month),
        ):
            if limit is not None:
                BUDGET_LEFT.labels(queue, bound).set((limit - used) / MICROS)


def provider(desk: Desk) -> None:
    """How a provider is."""
    PROVIDER_UP.labels(desk.name).set(desk.health.reachable)
    errors, desk.errors = desk.errors, 0
    PROVIDER_ERRORS.labels(desk.name).inc(errors)


def missing(left: Mapping[str, Sequence[Instance]]) -> None:
    """What is left of providers that are not among the settings any more."""
    MISSING.clear()
    for name, rows in left.items():
        MISSING.labels(name).set(len(rows))


def forecast(series: Iterable[Series]) -> None:
    """What is forecast for all queues together."""
    for each in series:
        if each.queue:
            continue
        DEMAND.labels(each.kind).set(each.actual[-1])
        CAPACITY.labels(each.kind).set(each.capacity[0])
        COVERAGE.labels(each.kind).set(each.coverage_90)
        for level, values in zip(each.levels, each.quantiles, strict=True):
            FORECAST.labels(each.kind, f"{level:g}").set(values[0])


def _is_ready(row: Instance) -> None:
    took_s = max(0.0, row.ready_at - row.requested_at)
    BOOT_SECONDS.labels(row.offer.provider).observe(took_s)
    if row.jobs:
        WANTED_SECONDS.observe(took_s)
