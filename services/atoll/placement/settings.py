"""What the placement service can be told."""

from collections.abc import Callable, Collection
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from atoll.core.model.priority import DEFAULT_CLASSES
from atoll.core.policies.fair_share import FairShareSettings
from atoll.core.policies.interfaces import BOOT_GAP_S, Objective
from atoll.core.policies.registry import OBJECTIVES, ORDERS, SCORES
from atoll.placement.usecases.leader import LeaderRules
from atoll.placement.usecases.rejections import AvoidanceRules
from atoll.placement.usecases.silence import SilenceLimits
from atoll.runtime.classes import Classes
from atoll.runtime.settings import Listen, StoreSettings


def one_of(names: Collection[str]) -> Callable[[str], str]:
    """Check that a policy is in its registry."""

    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"must be one of {', '.join(sorted(names))}")
        return name

    return check


class PlacementSettings(StoreSettings):
    """Settings of one placement replica. Those that bound silence must fit the agents'."""

    listen: Listen = Field("127.0.0.1:7072", description="address of the gRPC server")
    metrics_listen: Listen = Field(
        "127.0.0.1:7073", description="address of /metrics, /healthz and /readyz over HTTP"
    )
    shard: int = Field(0, ge=0, description="shard that this replica is a candidate for")
    queue_order: Annotated[str, AfterValidator(one_of(ORDERS))] = Field(
        "fair_share", description="policy that says which job is tried first"
    )
    fair_share: FairShareSettings = Field(
        FairShareSettings(),
        description="weights and switches of the order fair_share, as a JSON object",
    )
    score: Annotated[str, AfterValidator(one_of(SCORES))] = Field(
        "atoll", description="policy that chooses among the nodes that fit"
    )
    objective: Annotated[str, AfterValidator(one_of(OBJECTIVES))] = Field(
        Objective.SPEED,
        description="what victims, growing and shrinking jobs, and clusters are chosen by",
    )
    boot_gap_s: float = Field(
        BOOT_GAP_S,
        ge=0,
        le=86_400,
        description="clusters whose jobs begin within so many seconds of each other are alike",
    )
    priority_classes: Classes = Field(
        DEFAULT_CLASSES,
        description="priorities by name, as submission has them: for dry runs",
    )
    election_ttl_s: float = Field(5.0, ge=2, le=60, description="lease of the leader, seconds")
    period_s: float = Field(1.0, gt=0, le=60, description="longest time between two cycles")
    debounce_s: float = Field(
        0.002, ge=0, le=1, description="wait after a wake-up, for others to join it"
    )
    cycle_gap_s: float = Field(
        0.04, ge=0, le=1, description="shortest time from one cycle's beginning to the next's"
    )
    max_placements: int = Field(1000, ge=1, le=10_000, description="placements in one commit")
    max_revokes: int = Field(500, ge=1, le=10_000, description="attempts taken back in one commit")
    max_lag: int = Field(
        5000, ge=1, description="open decisions at which a cluster gets no new work"
    )
    bind_timeout_s: float = Field(
        30.0, gt=0, le=3600, description="time for an agent to answer a START"
    )
    unschedulable_after_s: float = Field(
        10.0, gt=0, description="silence after which a cluster gets no new work"
    )
    lost_after_s: float = Field(
        120.0, gt=0, description="silence after which `on_lost: requeue` jobs run elsewhere"
    )
    takeover_grace_s: float = Field(
        15.0, ge=0, description="time after a take-over in which no silence is counted"
    )
    listen_period_s: float = Field(1.0, gt=0, le=10, description="time between looks at heartbeats")
    registry_ttl_s: float = Field(
        10.0, ge=2, le=600, description="time after which a dead replica leaves the registry"
    )
    audit_period_s: float = Field(30.0, gt=0, description="time between two audits of the ledger")
    forecast_period_s: float = Field(
        2.0, gt=0, le=3600, description="shortest time between two forecasts of when jobs start"
    )
    remember_period_s: float = Field(
        30.0, gt=0, le=3600, description="time between two writes of how forecasts held"
    )
    avoid_base_s: float = Field(5.0, gt=0, description="first time that a refuser is avoided")
    avoid_longest_s: float = Field(600.0, gt=0, description="longest time that it is avoided")

    @model_validator(mode="after")
    def _silences_are_ordered(self) -> Self:
        if self.unschedulable_after_s >= self.lost_after_s:
            raise ValueError("unschedulable_after_s must be less than lost_after_s")
        return self

    @property
    def rules(self) -> LeaderRules:
        """The leader's part of the settings."""
        return LeaderRules(
            bind_timeout_s=self.bind_timeout_s,
            silence=SilenceLimits(
                unschedulable_after_s=self.unschedulable_after_s,
                lost_after_s=self.lost_after_s,
                takeover_grace_s=self.takeover_grace_s,
                longest_step_s=3 * self.listen_period_s,
            ),
            avoidance=AvoidanceRules(base_s=self.avoid_base_s, longest_s=self.avoid_longest_s),
            max_placements=self.max_placements,
            max_revokes=self.max_revokes,
            max_lag=self.max_lag,
            half_life_s=self.fair_share.half_life_s,
        )
