"""A heartbeat is answered by what the store says of its session."""

import asyncio
from collections.abc import Sequence

import pytest

from atoll.adapters.memory.clock import ManualClock
from atoll.adapters.system import SystemClock, SystemIds
from atoll.core.model.errors import ErrorCode, FailedPrecondition, StaleSession
from atoll.core.model.ids import ClusterName
from atoll.core.model.inventory import Cluster, ClusterState
from atoll.dispatch.loops import BeatLoop
from atoll.dispatch.telemetry import Telemetry
from atoll.dispatch.usecases.beats import Beats, Heartbeat
from atoll.dispatch.usecases.outbox import BeatAck
from atoll.ports.store.common import StoreUnavailable
from atoll.ports.store.dispatch import Beat
from tests.services.dispatch.stubs import session
from tests.services.dispatch.values import CLUSTER
from tests.support.waiting import eventually


class BeatStore:
    """Answers every heartbeat with one cluster's row."""

    def __init__(self, **row: object) -> None:
        self.row = Cluster(name=CLUSTER, **{"session_epoch": 1, "head_seq": 5} | row)  # type: ignore[arg-type]
        self.beats: list[Beat] = []
        self.away = 0
        """Calls that are still to fail."""

    async def beat(self, beats: Sequence[Beat]) -> dict[ClusterName, Cluster]:
        if self.away > 0:
            self.away -= 1
            raise StoreUnavailable("away", code=ErrorCode.UNAVAILABLE)
        self.beats += beats
        return {CLUSTER: self.row}


def beats_over(store: BeatStore) -> Beats:
    return Beats(store, lease_s=9.0, observer=Telemetry(ManualClock()))  # type: ignore[arg-type]


async def test_the_newest_of_several_stands_for_all() -> None:
    store, one = BeatStore(), session(start=4)
    loop = BeatLoop(beats_over(store), SystemClock(), SystemIds(), most=10)
    for number in (2, 3, 1):
        loop.put(Heartbeat(one, number))
    running = asyncio.create_task(loop.run())
    assert await one.outbox.next() == BeatAck(3, 5)
    running.cancel()
    assert store.beats == [Beat(CLUSTER, 1, applied_seq=4, lease_s=9.0)]
    assert one.lane.head == 5


async def test_a_heartbeat_waits_for_a_store_that_is_away() -> None:
    store, one = BeatStore(), session(start=4)
    store.away = 1000
    loop = BeatLoop(beats_over(store), SystemClock(), SystemIds(), most=10)
    loop.put(Heartbeat(one, 1))
    running = asyncio.create_task(loop.run())
    await eventually(lambda: store.away < 999)
    loop.put(Heartbeat(one, 2))
    store.away = 1
    assert await one.outbox.next() == BeatAck(2, 5)
    running.cancel()


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
