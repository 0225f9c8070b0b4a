"""Rented capacity: the verbs for programs that wait."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from atoll.adapters.system import SystemIds
from atoll.api.burst.v1 import burst_pb2 as pb
from atoll.client import burst_calls as calls
from atoll.client.burst_views import (
    BurstExplanation,
    BurstStatus,
    ForecastInfo,
    InstanceInfo,
    OfferInfo,
    PolicyInfo,
    SpendHistory,
)
from atoll.client.operating import PAGE_SIZE
from atoll.client.transport import Transport

Instances: TypeAlias = list[InstanceInfo]


class Burst:
    """What is rented, what may be, and why. Amounts of money are dollars."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._ids = SystemIds()

    def status(self) -> BurstStatus:
        """Where it stands: limits, instances, spending, providers, the last decision."""
        return self._transport.run(calls.status())

    def forecast(
        self, kind: str = "", *, queue: str = "", horizon_s: float = 0.0, past_s: float = 0.0
    ) -> list[ForecastInfo]:
        """Demand to come by kind of device, as quantiles; a day ahead and of the past."""
        return self._transport.run(calls.forecast(kind, queue, horizon_s=horizon_s, past_s=past_s))

    def offers(self, kind: str = "", *, queue: str = "") -> list[OfferInfo]:
        """What can be rented by price per device; with a queue, only what it may rent."""
        return self._transport.run(calls.offers(kind, queue))

    def policy(self, queue: str = "") -> PolicyInfo:
        """What a queue, or all together, may rent."""
        return self._transport.run(calls.policy(queue))

    def policies(self) -> list[PolicyInfo]:
        """All policies: of all together first, then by queue."""
        return self._transport.run(calls.policies())

    def set_policy(self, policy: PolicyInfo, fields: Iterable[str]) -> PolicyInfo:
        """Change what `fields` name, such as `budget.per_hour`, to the values of `policy`.

        With its etag only if nobody has changed it since.
        """
        return self._transport.run(calls.set_policy(policy, fields))

    def request(
        self,
        offer: str = "",
        *,
        kind: str = "",
        count: int = 1,
        queue: str = "",
        keep_s: float = 0.0,
        why: str = "",
        request_id: str | None = None,
    ) -> Instances:
        """Rent by hand, within the same limits; the same request_id finds the same instances.

        Args:
            offer: Key of an offer, of which `count` instances are rented.
            kind: Without an offer: the cheapest allowed, until it is `count` devices of the kind.
            count: Instances, or devices.
            queue: Whose budget pays; empty: everybody's.
            keep_s: So long it is kept although nothing runs there; 0: by the keep-alive rule.
            why: For people.
            request_id: Made up when not given, so that this call can be repeated safely inside.
        """
        wanted = pb.RequestCapacityRequest(
            offer=offer,
            kind=kind,
            count=count,
            queue=queue,
            keep_s=keep_s,
            request_id=request_id or self._ids.uuid(),
            why=why,
        )
        return self._transport.run(calls.request(wanted))

    def release(
        self, ids: Iterable[int] = (), *, all: bool = False, now: bool = False
    ) -> Instances:
        """End instances, or all: what runs there may end, with `now` it is stopped."""
        return self._transport.run(calls.release(ids, all=all, now=now))

    def instances(self, *, all: bool = False, page_size: int = PAGE_SIZE) -> Iterator[InstanceInfo]:
        """Instances, the latest first; with `all` ended ones too."""
        token = ""
        while True:
            page = self._transport.run(calls.instances(all=all, page_size=page_size, token=token))
            yield from page.items
            if not (token := page.next_token):
                return

    def spend(self, queue: str = "", *, from_at: float = 0.0, step_s: float = 0.0) -> SpendHistory:
        """Spending now and over time; a day by hours."""
        return self._transport.run(calls.spend(queue, from_at=from_at, step_s=step_s))

    def explain(self, job_id: int = 0, *, instance_id: int = 0, most: int = 0) -> BurstExplanation:
        """Why something was rented or not, for a job or an instance; else the last decisions."""
        return self._transport.run(calls.explain(job_id=job_id, instance_id=instance_id, most=most))
