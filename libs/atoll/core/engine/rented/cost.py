"""What room on a machine that is rented already costs a job, against what it may cost at most."""

from functools import lru_cache
from typing import Final

from atoll.core.engine.burst.broker.parts import part_of
from atoll.core.engine.choice.asks import asks_of
from atoll.core.engine.choice.worth import HOUR_S, dollars
from atoll.core.model.burst import Offer, Rental
from atoll.core.model.ids import JobId
from atoll.core.model.plan import GangRequest

CACHED: Final = 1 << 14


def too_dear(rental: Rental, request: GangRequest, job: JobId | None = None) -> str:
    """Why a job's own limit forbids spare room on a rented machine; empty when it does not.

    It pays its part of the machine until its time limit, for a machine with work on it is not
    given back. Those for whom it was rented (`rental.jobs`) were judged before it was.
    """
    if not request.burst_max_cost or job in rental.jobs:
        return ""
    return _too_dear(rental.offer, request)


@lru_cache(maxsize=CACHED)
def _too_dear(offer: Offer, request: GangRequest) -> str:
    most, limit_s = dollars(request.burst_max_cost), request.terms.time_limit_s
    if not limit_s:
        return f"without a time limit nobody knows whether it would cost more than its {most}"
    part = min((max(part_of(offer, ask)) for ask in asks_of(request)), default=1.0)
    cost = round(offer.price * min(1.0, part) * limit_s / HOUR_S)
    if cost <= request.burst_max_cost:
        return ""
    return f"until its time limit it would cost {dollars(cost)}, the job's limit is {most}"
