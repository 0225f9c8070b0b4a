"""What the reservation service can be told."""

from pydantic import Field

from atoll.ports.store.bookings import BookingRetention
from atoll.runtime.settings import Listen, LoopSettings

DAY_S = 86_400.0


class ReservationSettings(LoopSettings):
    """Settings of one replica of the reservation service."""

    listen: Listen = Field(default="127.0.0.1:7076", description="address of the gRPC server")
    metrics_listen: Listen = Field(
        default="127.0.0.1:7077", description="address of /metrics, /healthz and /readyz over HTTP"
    )
    horizon_s: float = Field(
        default=90 * DAY_S,
        ge=DAY_S,
        le=731 * DAY_S,
        description="how far ahead recurrences are planned",
    )
    period_s: float = Field(
        default=0.5, gt=0, le=60, description="longest time between two looks at what changed"
    )
    measure_period_s: float = Field(
        default=2.0, gt=0, le=60, description="time between two looks at what owners use"
    )
    upkeep_period_s: float = Field(
        default=10.0,
        gt=0,
        le=3600,
        description="time between looks at horizons, at what is over, and at standing rules",
    )
    keep_reservations_s: float = Field(
        default=BookingRetention().reservations_s,
        ge=60,
        description="seconds that bookings are kept that are over, and what rules did",
    )
    keep_requests_s: float = Field(
        default=BookingRetention().requests_s,
        ge=60,
        description="seconds for which a repeated booking finds the first",
    )
    keep_events_s: float = Field(
        default=BookingRetention().events_s,
        ge=120,
        description="seconds that a watch may stay away",
    )

    @property
    def retention(self) -> BookingRetention:
        """How long what is over is kept."""
        return BookingRetention(
            reservations_s=self.keep_reservations_s,
            requests_s=self.keep_requests_s,
            events_s=self.keep_events_s,
            actions_s=self.keep_reservations_s,
        )
