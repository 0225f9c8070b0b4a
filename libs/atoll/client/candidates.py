"""Places where a job could run, as values. Times are unix seconds; 0 means: nobody knows."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from atoll.api.placement.v1 import placement_pb2

_MICROS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place where a job could run, and what makes it better or worse. Dollars."""

    cluster: str
    """Empty for what is not rented yet."""
    offer: str
    """Empty for what is there."""
    start_at: float
    """With even chances."""
    finish_at: float
    delay_cost: Decimal
    """What the time until then costs its queue."""
    price: Decimal
    """What is paid for running there."""
    total: Decimal
    """The least is the best."""
    allowed: bool
    """False: it may not, or cannot."""
    why: str


def candidate_of(proto: placement_pb2.Candidate) -> Candidate:
    """A candidate of an answer."""
    return Candidate(
        cluster=proto.cluster,
        offer=proto.offer,
        start_at=proto.start_at,
        finish_at=proto.finish_at,
        delay_cost=Decimal(proto.delay_cost) / _MICROS,
        price=Decimal(proto.price) / _MICROS,
        total=Decimal(proto.total) / _MICROS,
        allowed=proto.allowed,
        why=proto.why,
    )
