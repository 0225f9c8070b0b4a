"""Admission answers of jobs with deadlines."""

from atoll.api.common.v1 import common_pb2
from atoll.core.model.deadline import Chance, Verdict
from atoll.core.model.ids import ClusterName
from atoll.wire.enums import inverse, known, to_numbers

_CHANCES = to_numbers(Chance, common_pb2.DeadlineChance, prefix="DEADLINE_CHANCE_")
_CHANCES_BACK = inverse(_CHANCES)


def verdict_to_proto(verdict: Verdict | None) -> common_pb2.DeadlineAnswer:
    """An answer; of a job without a deadline it says nothing."""
    if verdict is None:
        return common_pb2.DeadlineAnswer()
    return common_pb2.DeadlineAnswer(
        chance=_CHANCES[verdict.chance],
        earliest_at=verdict.earliest_at,
        cluster=verdict.cluster,
        why=verdict.why,
    )


def verdict_from_proto(proto: common_pb2.DeadlineAnswer) -> Verdict:
    """An answer; raises WireError for one that this version does not know."""
    return Verdict(
        chance=known(_CHANCES_BACK, proto.chance, what="chance"),
        earliest_at=proto.earliest_at,
        cluster=ClusterName(proto.cluster),
        why=proto.why,
    )
