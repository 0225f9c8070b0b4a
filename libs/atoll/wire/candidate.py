"""Places where a job could run."""

from atoll.api.placement.v1 import placement_pb2
from atoll.core.model.burst_wants import Candidate


def candidate_to_proto(candidate: Candidate) -> placement_pb2.Candidate:
    """One place, with what it would cost."""
    return placement_pb2.Candidate(
        cluster=candidate.cluster,
        offer=candidate.offer,
        start_at=candidate.start_at,
        finish_at=candidate.finish_at,
        delay_cost=candidate.delay_cost,
        price=candidate.price,
        total=candidate.total,
        allowed=candidate.allowed,
        why=candidate.why,
    )
