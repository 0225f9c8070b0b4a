"""What the dispatch service can be told."""

from typing import Self

from pydantic import Field, model_validator

from atoll.dispatch.usecases.limits import Limits
from atoll.runtime.settings import Listen, StoreSettings


class DispatchSettings(StoreSettings):
    """Settings of one dispatch replica. Those that agents are told must fit placement's."""

    listen: Listen = Field("127.0.0.1:7074", description="address of the gRPC server")
    metrics_listen: Listen = Field(
        "127.0.0.1:7075", description="address of /metrics, /healthz and /readyz over HTTP"
    )
    heartbeat_s: float = Field(1.0, gt=0, le=60, description="time between an agent's heartbeats")
    lease_s: float = Field(
        10.0, gt=0, le=600, description="time without an answered heartbeat that ends a session"
    )
    lost_after_s: float = Field(
        120.0, gt=0, description="silence after which `on_lost: requeue` jobs run elsewhere"
    )
    bind_timeout_s: float = Field(
        30.0, gt=0, le=3600, description="time for an agent to answer a START"
    )
    hello_within_s: float = Field(10.0, gt=0, le=600, description="time for an agent's first word")
    window: int = Field(
        1024, ge=1, le=100_000, description="decisions that an agent may have unacknowledged"
    )
    max_sessions: int = Field(5000, ge=1, description="sessions of this replica")
    max_nodes: int = Field(100_000, ge=1, description="nodes of one cluster")
    pool_size: int = Field(8, ge=4, le=100, description="connections to PostgreSQL")
    registry_ttl_s: float = Field(
        10.0, ge=2, le=600, description="time after which a dead replica leaves the registry"
    )

    @model_validator(mode="after")
    def _a_lease_outlives_heartbeats(self) -> Self:
        if self.lease_s < 3 * self.heartbeat_s:
            raise ValueError("lease_s must be at least three times heartbeat_s")
        return self

    @property
    def limits(self) -> Limits:
        """The bounds of the use cases."""
        return Limits(window=self.window, sessions=self.max_sessions, nodes=self.max_nodes)

    def guard_is_in_time(self, stop_after_s: float, max_grace_s: float) -> bool:
        """Whether an agent's guard has ended a run before the run may be started elsewhere."""
        return stop_after_s > 0 and stop_after_s + max_grace_s < self.lost_after_s
