"""Settings of the submission service."""

from pydantic import Field

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
    registry_ttl_s: float = Field(
        default=10.0,
        ge=2,
        le=600,
        description="seconds after which a dead server leaves the registry",
    )
