"""What the burst service can be told."""

from pathlib import Path
from typing import Any, Self

from pydantic import Field, SecretStr, model_validator

from atoll.burst.usecases.books import Terms
from atoll.core.engine.burst.broker.ground import USUAL_LATE_S, Options
from atoll.core.engine.burst.broker.life import LifeTerms
from atoll.core.model.burst import MICROS, Budget, BurstPolicy
from atoll.core.model.ids import ShardId
from atoll.runtime.settings import Listen, LoopSettings, Names

DAY_S = 86_400.0
SHORTEST_SECRET = 16


class BurstSettings(LoopSettings):
    """Settings of one replica of the burst service. Money: dollars."""

    listen: Listen = Field(default="127.0.0.1:7078", description="address of the gRPC server")
    metrics_listen: Listen = Field(
        default="127.0.0.1:7079", description="address of /metrics, /healthz and /readyz over HTTP"
    )
    providers: dict[str, dict[str, Any]] = Field(
        default={},
        description="who rents machines out: settings by name; `type` says which kind of provider, "
        "if not the name",
    )
    join_secret: SecretStr = Field(
        default=SecretStr(""),
        description="from it come the one-time words with which rented agents join; the same for "
        "all replicas",
    )
    deployment: str = Field(
        default="atoll",
        pattern="^[A-Za-z0-9._-]{1,63}$",
        description="tag of what is rented: only what carries it is ours",
    )
    data_dir: Path = Field(
        default=Path("atoll-burst"), description="where providers keep files of their own"
    )
    dispatch: Names = Field(default=(), description="dispatch addresses that rented agents dial")
    agent: dict[str, Any] = Field(
        default={}, description="further settings of rented agents, such as tls_ca"
    )
    shard: int = Field(default=0, ge=0, description="shard that rented clusters belong to")
    period_s: float = Field(
        default=2.0, gt=0, le=60, description="longest time between two looks at instances"
    )
    decide_period_s: float = Field(
        default=5.0, gt=0, le=600, description="longest time between two decisions"
    )
    offers_period_s: float = Field(
        default=60.0, gt=0, le=3600, description="time between two looks at offers and prices"
    )
    reaper_period_s: float = Field(
        default=60.0,
        gt=0,
        le=3600,
        description="time between two looks for machines that nobody has a row of",
    )
    spend_period_s: float = Field(
        default=10.0, gt=0, le=600, description="time between two counts of what was spent"
    )
    forecast_period_s: float = Field(
        default=300.0, gt=0, le=3600, description="time between two forecasts"
    )
    forecast_step_s: float = Field(
        default=3600.0,
        ge=0.1,
        le=3600,
        description="length of what the forecast takes for an hour; less on accelerated time only",
    )
    boot_deadline_s: float = Field(
        default=600.0,
        gt=0,
        le=DAY_S,
        description="time until a rented machine has joined, or is given up, if its offer does not "
        "take longer",
    )
    instance_drain_s: float = Field(
        default=120.0,
        ge=0,
        le=DAY_S,
        description="time for what runs on a drained instance to end by itself",
    )
    instance_grace_s: float = Field(
        default=60.0, ge=0, le=3600, description="time from there until it is ended, whatever runs"
    )
    commitment_s: float = Field(
        default=3600.0,
        gt=0,
        le=7 * DAY_S,
        description="time for which what is rented by forecast is meant to be of use",
    )
    instance_end_s: float = Field(
        default=300.0,
        gt=0,
        le=DAY_S,
        description="what ending a machine takes until nothing is paid for it any more; keeping an "
        "idle one is weighed against it",
    )
    least_keep_s: float = Field(
        default=60.0, ge=0, le=DAY_S, description="time for which an idle machine is kept at least"
    )
    late_s: float = Field(
        default=USUAL_LATE_S,
        ge=0,
        le=DAY_S,
        description="a job that starts later than this after it was submitted is late, which is "
        "bought off for all but a few; 0: only what an hour of delay costs counts",
    )
    again_s: float = Field(
        default=Options().again_s,
        gt=0,
        le=DAY_S,
        description="time for which an offer is left alone whose machine could not be had or never "
        "joined, twice as long after each further time",
    )
    taken_back_s: float = Field(
        default=Options().taken_back_s,
        gt=0,
        le=DAY_S,
        description="the same where a spot machine was taken back",
    )
    home_s: float = Field(
        default=3600.0,
        ge=0,
        le=7 * DAY_S,
        description="what runs on a rented machine goes on in idle devices of our own if it is to "
        "last longer than this; 0: it stays",
    )
    egress: dict[str, float] = Field(
        default={}, description="dollars for moving a job's data to a region and back, by region"
    )
    policy_allowed: bool = Field(
        default=False, description="policy of all together at the first start: renting is allowed"
    )
    policy_per_hour: float | None = Field(
        default=None, ge=0, description="the same: dollars an hour at most"
    )
    policy_per_month: float | None = Field(
        default=None, ge=0, description="the same: dollars a month at most"
    )
    policy_hour_of_delay: float = Field(
        default=0.0, ge=0, description="the same: dollars that an hour of waiting of a device costs"
    )
    keep_s: float = Field(
        default=90 * DAY_S, ge=60, description="seconds that ended instances are kept"
    )

    @model_validator(mode="after")
    def _agents_can_join(self) -> Self:
        if self.providers and len(self.join_secret.get_secret_value()) < SHORTEST_SECRET:
            raise ValueError(
                f"providers need a join_secret of at least {SHORTEST_SECRET} characters"
            )
        return self

    @property
    def terms(self) -> Terms:
        """On which terms instances are rented."""
        life = LifeTerms(
            boot_s=self.boot_deadline_s,
            drain_s=self.instance_drain_s,
            grace_s=self.instance_grace_s,
        )
        options = Options(
            commitment_s=self.commitment_s,
            end_s=self.instance_end_s,
            least_keep_s=self.least_keep_s,
            drain_s=self.instance_drain_s,
            grace_s=self.instance_grace_s,
            loop_s=self.decide_period_s,
            late_s=self.late_s,
            again_s=self.again_s,
            taken_back_s=self.taken_back_s,
            home_s=self.home_s,
            egress={region: _micros(price) for region, price in self.egress.items()},
        )
        secret = self.join_secret.get_secret_value().encode()
        return Terms(secret, ShardId(self.shard), self.deployment, life, options)

    @property
    def first_policy(self) -> BurstPolicy:
        """What all together may rent until somebody says otherwise."""
        per_hour, per_month = self.policy_per_hour, self.policy_per_month
        return BurstPolicy(
            None,
            allowed=self.policy_allowed,
            budget=Budget(
                None if per_hour is None else _micros(per_hour),
                None if per_month is None else _micros(per_month),
            ),
            hour_of_delay=_micros(self.policy_hour_of_delay),
        )


def _micros(dollars: float) -> int:
    return round(dollars * MICROS)
