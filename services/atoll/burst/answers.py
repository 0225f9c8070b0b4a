"""What the use cases found, as messages of the API."""

from collections.abc import Iterable

from atoll.api.burst.v1 import burst_pb2 as pb
from atoll.burst.usecases.desk import Health
from atoll.burst.usecases.explain import Explanation
from atoll.burst.usecases.look import InstancePage, SpendOverTime, SpendView, Standing
from atoll.burst.usecases.series import Series
from atoll.wire.burst import (
    budget_to_proto,
    decision_to_proto,
    instance_to_proto,
    policy_to_proto,
)


def standing(found: Standing) -> pb.GetBurstStatusResponse:
    """Where it stands."""
    return pb.GetBurstStatusResponse(
        leader=found.leader,
        policy=policy_to_proto(found.policy),
        instances=found.instances,
        spend=spend(found.spend),
        last=None if found.last is None else decision_to_proto(found.last),
        providers=[_provider(each) for each in found.providers],
        next_at=found.next_at,
    )


def spend(view: SpendView) -> pb.Spend:
    """What was spent, is bound, and may be."""
    return pb.Spend(
        queue=view.state.queue or "",
        hour=view.state.hour,
        month=view.state.month,
        rate=view.state.rate,
        budget=budget_to_proto(view.budget),
    )


def spend_over_time(found: SpendOverTime) -> pb.GetSpendResponse:
    """Now, by queue, and by buckets."""
    return pb.GetSpendResponse(
        spend=spend(found.now),
        queues=[spend(view) for view in found.queues],
        from_at=found.from_at,
        step_s=found.step_s,
        spent=found.spent,
    )


def page(found: InstancePage) -> pb.ListInstancesResponse:
    """A page of instances."""
    return pb.ListInstancesResponse(
        instances=[instance_to_proto(row) for row in found.instances],
        next_page_token=found.next_token,
    )


def forecasts(found: Iterable[Series]) -> pb.GetForecastResponse:
    """By kind."""
    return pb.GetForecastResponse(series=[_series(each) for each in found])


def explanation(found: Explanation) -> pb.ExplainBurstResponse:
    """A sentence and the decisions behind it."""
    return pb.ExplainBurstResponse(
        summary=found.summary, decisions=[decision_to_proto(each) for each in found.decisions]
    )


def _provider(health: Health) -> pb.ProviderStatus:
    return pb.ProviderStatus(
        name=health.name,
        reachable=health.reachable,
        message=health.message,
        seen_at=health.seen_at,
    )


def _series(series: Series) -> pb.Series:
    return pb.Series(
        kind=series.kind,
        queue=series.queue,
        from_at=series.from_at,
        step_s=series.step_s,
        actual=series.actual,
        quantiles=[
            pb.Quantile(level=level, values=values)
            for level, values in zip(series.levels, series.quantiles, strict=True)
        ],
        capacity=series.capacity,
        coverage_90=series.coverage_90,
        mase=series.mase,
        model=series.model,
        fitted_at=series.fitted_at,
        message=series.message,
    )
