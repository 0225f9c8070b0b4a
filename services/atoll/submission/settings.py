"""Settings of the submission service."""

from pydantic import Field

from atoll.core.model.priority import DEFAULT_CLASSES
from atoll.ports.store.upkeep import Retention
from atoll.runtime.classes import Classes
from atoll.runtime.settings import Listen, StoreSettings


class SubmissionSettings(StoreSettings):
    """What the submission service can be told."""

    listen: Listen = Field(default="127.0.0.1:7070", description="address of the gRPC server")
    metrics_listen: Listen = Field(
        default="127.0.0.1:7071", description="address of /metrics, /healthz and /readyz over HTTP"
    )
    pool_size: int = Field(default=8, ge=2, le=200, description="connections to PostgreSQL")
    max_queued_jobs: int = Field(
        default=1_000_000,
        ge=1,
        description="bound of queued jobs in queues that have none of their own",
    )
    priority_classes: Classes = Field(
        default=DEFAULT_CLASSES,
        description="priorities by name, NAME=PRIORITY or NAME=PRIORITY:no-preempt",
    )
    registry_ttl_s: float = Field(
        default=10.0,
        ge=2,
        le=600,
        description="seconds after which a dead server leaves the registry",
    )
    keep_jobs_s: float = Field(
        default=Retention().jobs_s, ge=60, description="seconds that ended jobs are kept"
    )
    keep_requests_s: float = Field(
        default=Retention().requests_s,
        ge=60,
        description="seconds for which a repeated submit finds its jobs",
    )
    keep_decisions_s: float = Field(
        default=Retention().decisions_s, ge=60, description="seconds that dealt decisions are kept"
    )
    keep_events_s: float = Field(
        default=Retention().events_s, ge=120, description="seconds that a watch may stay away"
    )

    @property
    def retention(self) -> Retention:
        """How long what is over is kept."""
        return Retention(
            jobs_s=self.keep_jobs_s,
            requests_s=self.keep_requests_s,
            decisions_s=self.keep_decisions_s,
            events_s=self.keep_events_s,
        )
