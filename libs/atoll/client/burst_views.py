"""What the burst service answers, as values. Times are unix seconds; 0 means: not yet.

Money is in dollars, exact to the micro-dollar.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from atoll.core.model.burst import InstanceState, Market


@dataclass(frozen=True, slots=True)
class OfferInfo:
    """One kind of instance in one zone of one provider."""

    key: str
    """`provider/zone/type/market`, to ask for it by hand."""
    provider: str
    region: str
    zone: str
    instance_type: str
    market: Market
    cpu_milli: int
    memory_bytes: int
    kind: str
    """Device kind; empty: none."""
    devices: int
    price_per_hour: Decimal
    """Dollars for the whole instance, all machines of it."""
    lead_s: float
    """Until work can start there."""
    available: bool
    """False: the last try found none."""
    nodes: int = 1
    """Equal machines that are one instance and one cluster; CPU, memory and devices are of each."""

    @property
    def price_per_device_hour(self) -> Decimal:
        """Dollars for one device of it; for one machine when there is none."""
        return self.price_per_hour / (max(1, self.nodes) * max(1, self.devices))


@dataclass(frozen=True, slots=True)
class InstanceInfo:
    """A rented machine as it stood when it was read."""

    id: int
    offer: OfferInfo
    state: InstanceState
    provider_id: str
    cluster: str
    queue: str
    """Whose budget pays; empty: everybody's."""
    jobs: tuple[int, ...]
    """For whom it was rented."""
    why: str
    requested_at: float
    created_at: float
    """Paid from here on."""
    ready_at: float
    idle_since: float
    """0: something runs there."""
    ended_at: float
    cause: str
    """Why it ended: `IDLE`, `BUDGET`, …; empty while it lasts."""
    message: str
    spent: Decimal
    """Dollars so far."""


@dataclass(frozen=True, slots=True)
class BudgetInfo:
    """What may be spent at most, in dollars; None: no bound of its own."""

    per_hour: Decimal | None = None
    per_month: Decimal | None = None
    """Calendar month, UTC."""


@dataclass(frozen=True, slots=True)
class PolicyInfo:
    """What a queue, or all together (queue empty), may rent."""

    queue: str = ""
    allowed: bool = False
    budget: BudgetInfo = BudgetInfo()
    regions: tuple[str, ...] = ()
    """Where its data may go; empty: anywhere."""
    providers: tuple[str, ...] = ()
    """Empty: any."""
    most_price: Decimal | None = None
    """Dollars per device-hour at most; None: no bound."""
    markets: tuple[Market, ...] = ()
    """Empty: both."""
    hour_of_delay: Decimal = Decimal(0)
    """Dollars that an hour of waiting of one device costs."""
    killed: bool = False
    """All together only: nothing is rented any more, and what is rented is drained."""
    etag: int = 0


@dataclass(frozen=True, slots=True)
class SpendInfo:
    """What was spent, what is being spent, and what may be, in dollars."""

    queue: str
    """Empty: all together."""
    hour: Decimal
    """In the present hour."""
    month: Decimal
    """In the present calendar month, UTC."""
    rate_per_hour: Decimal
    """What runs, and what is asked for."""
    budget: BudgetInfo


@dataclass(frozen=True, slots=True)
class SpendHistory:
    """Spending now, by queue, and over time."""

    spend: SpendInfo
    queues: tuple[SpendInfo, ...]
    from_at: float
    step_s: float
    spent: tuple[Decimal, ...]
    """Dollars by step."""


@dataclass(frozen=True, slots=True)
class BurstDecisionInfo:
    """One decision of the broker."""

    at: float
    action: str
    """`rent`, `keep`, `drain`, `retry`, `none`."""
    kind: str
    devices: int
    offer: str
    job_id: int
    """0: it was about the forecast, or an instance."""
    why: str
    terms: Mapping[str, float]
    """What it was decided by."""
    instances: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BurstExplanation:
    """Why something was rented or not."""

    summary: str
    decisions: tuple[BurstDecisionInfo, ...]
    """The latest first."""


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """A provider, and what was last heard of it."""

    name: str
    reachable: bool
    message: str
    seen_at: float


@dataclass(frozen=True, slots=True)
class BurstStatus:
    """Where renting stands."""

    leader: str
    """Address of the replica that decides."""
    policy: PolicyInfo
    """Of all together."""
    instances: Mapping[str, int]
    """By state."""
    spend: SpendInfo
    last: BurstDecisionInfo | None
    providers: tuple[ProviderInfo, ...]
    next_at: float
    """When it looks again."""


@dataclass(frozen=True, slots=True)
class QuantileInfo:
    """One quantile over time."""

    level: float
    values: tuple[float, ...]
    """Devices, the first a step after now."""


@dataclass(frozen=True, slots=True)
class ForecastInfo:
    """What devices of a kind were used or wanted, and what is to come."""

    kind: str
    queue: str
    """Empty: all together."""
    from_at: float
    step_s: float
    actual: tuple[float, ...]
    """Up to now, which the last one is at."""
    quantiles: tuple[QuantileInfo, ...]
    """By level."""
    capacity: tuple[float, ...]
    """Devices that there are without renting, from now on."""
    coverage_90: float
    """Share of past values inside the 90 % band."""
    mase: float
    """Error against the same hour of the day before; below 1 is better than that."""
    model: str
    fitted_at: float
    message: str

    @property
    def now_at(self) -> float:
        """When the last value of the past was."""
        return self.from_at + max(0, len(self.actual) - 1) * self.step_s
