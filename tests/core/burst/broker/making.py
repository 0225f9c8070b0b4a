"""Small grounds for the broker's tests."""

from typing import Any

from atoll.core.engine.burst.broker.ground import Ground, Room, Use
from atoll.core.model.burst import (
    MICROS,
    BurstPolicy,
    Instance,
    InstanceId,
    InstanceState,
    Market,
    Offer,
)
from atoll.core.model.burst_wants import Ask, Want
from atoll.core.model.ids import JobId, QueueName

NOW = 1_800_000_000.0
GIB = 1 << 30
RESEARCH = QueueName("org.research")


def an_offer(name: str = "gpu8", zone: str = "east-a", **given: Any) -> Offer:
    """Eight devices at $8 an hour on demand, six minutes away."""
    usual: dict[str, Any] = {
        "provider": "sim",
        "zone": zone,
        "region": "east",
        "instance_type": name,
        "market": Market.ON_DEMAND,
        "cpu_milli": 64_000,
        "memory_bytes": 512 * GIB,
        "kind": "a100",
        "devices": 8,
        "price": 8 * MICROS,
        "lead_s": 360.0,
    }
    return Offer(**usual | given)


def an_ask(devices: int = 8, **given: Any) -> Ask:
    usual: dict[str, Any] = {
        "kind": "a100" if devices else "",
        "blocks": 100 * devices,
        "cpu_milli": 4_000,
        "memory_bytes": 8 * GIB,
    }
    return Ask(**usual | given)


def a_want(job: int = 17, *, devices: int = 8, p50_h: float = 3.0, **given: Any) -> Want:
    """An hour of work that would begin in three hours, in five at worst."""
    usual: dict[str, Any] = {
        "job": JobId(job),
        "queue": RESEARCH,
        "asks": (an_ask(devices),),
        "submitted_at": NOW - 600,
        "work_s": 3600.0,
        "local_p50_at": NOW + 3600 * p50_h,
        "local_p90_at": NOW + 3600 * p50_h * 5 / 3,
        "as_of": NOW,
    }
    return Want(**usual | given)


def a_policy(queue: str = "", *, hour: float = 3.0, **given: Any) -> BurstPolicy:
    """`hour`: dollars that an hour of delay of a device costs."""
    name = QueueName(queue) if queue else None
    usual: dict[str, Any] = {"allowed": True, "hour_of_delay": round(hour * MICROS)}
    return BurstPolicy(name, **usual | given)


def an_instance(number: int = 1, offer: Offer | None = None, **given: Any) -> Instance:
    """READY and idle for a minute."""
    usual: dict[str, Any] = {
        "id": InstanceId(number),
        "token": f"token-{number}",
        "offer": offer or an_offer(),
        "state": InstanceState.READY,
        "requested_at": NOW - 4000,
        "created_at": NOW - 3990,
        "ready_at": NOW - 3600,
        "idle_since": NOW - 60,
        "queue": RESEARCH,
    }
    return Instance(**usual | given)


def a_ground(*wants: Want, **given: Any) -> Ground:
    """One offer, everybody may, no bounds."""
    usual: dict[str, Any] = {
        "now": NOW,
        "wants": wants,
        "offers": (an_offer(),),
        "policies": {None: a_policy()},
    }
    return Ground(**usual | given)


def room(rate: float | None = None, month: float | None = None) -> Room:
    """Dollars."""
    return Room(*(None if each is None else round(each * MICROS) for each in (rate, month)))


IDLE = Use(joined=True)
BUSY = Use(joined=True, live=1)
