"""A heartbeat is answered by what the store says of its session."""

from collections.abc import Sequence

import pytest

from atoll.adapters.memory.clock import ManualClock
from atoll.core.model.errors import ErrorCode, FailedPrecondition, StaleSession
from atoll.core.model.ids import ClusterName
from atoll.core.model.inventory import Cluster, ClusterState
from atoll.dispatch.telemetry import Telemetry
from atoll.dispatch.usecases.beats import Beats, Heartbeat
from atoll.dispatch.usecases.outbox import BeatAck
from atoll.ports.store.dispatch import Beat
from tests.services.dispatch.stubs import session
from tests.services.dispatch.values import CLUSTER


class BeatStore:
    """Answers every heartbeat with one cluster's row."""

    def __init__(self, **row: object) -> None:
        self.row = Cluster(name=CLUSTER, **{"session_epoch": 1, "head_seq": 5} | row)  # type: ignore[arg-type]
        self.beats: list[Beat] = []

    async def beat(self, beats: Sequence[Beat]) -> dict[ClusterName, Cluster]:
        self.beats += beats
        return {CLUSTER: self.row}


def beats_over(store: BeatStore) -> Beats:
    return Beats(store, lease_s=9.0, observer=Telemetry(ManualClock()))  # type: ignore[arg-type]


async def test_the_newest_of_several_stands_for_all() -> None:
    store, one = BeatStore(), session(start=4)
    await beats_over(store).commit([Heartbeat(one, 2), Heartbeat(one, 3), Heartbeat(one, 1)])
    assert store.beats == [Beat(CLUSTER, 1, applied_seq=4, lease_s=9.0)]
    assert await one.outbox.next() == BeatAck(3, 5)
    assert one.lane.head == 5


@pytest.mark.parametrize(
    ("row", "error", "code"),
    [
        ({"session_epoch": 2}, StaleSession, ErrorCode.STALE_SESSION),
        ({"state": ClusterState.RETIRED}, FailedPrecondition, ErrorCode.CLUSTER_RETIRED),
        ({"head_seq": 3}, FailedPrecondition, ErrorCode.WRONG_STATE),
    ],
    ids=["taken over", "retired", "the store is an older copy"],
)
async def test_what_ends_a_session(
    row: dict[str, object], error: type[Exception], code: ErrorCode
) -> None:
    one = session(start=4)
    await beats_over(BeatStore(**row)).commit([Heartbeat(one, 1)])
    with pytest.raises(error) as ended:
        await one.outbox.next()
    assert getattr(ended.value, "code", None) is code
