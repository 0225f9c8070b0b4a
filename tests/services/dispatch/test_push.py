"""One bounded round of pushes serves all sessions in turn."""

from collections.abc import Iterable, Sequence

import pytest

from atoll.adapters.memory.clock import ManualClock
from atoll.core.model.errors import StaleSession
from atoll.core.model.ids import AttemptId, ClusterName, JobId
from atoll.core.model.inventory import ClusterState
from atoll.core.model.messages import DecisionKind
from atoll.dispatch.telemetry import Telemetry
from atoll.dispatch.usecases.limits import Limits
from atoll.dispatch.usecases.outbox import Decisions
from atoll.dispatch.usecases.push import Pusher
from atoll.dispatch.usecases.ready import Readier
from atoll.dispatch.usecases.table import SessionTable
from atoll.ports.store.dispatch import StartSpec
from tests.services.dispatch.stubs import session
from tests.services.dispatch.values import decision, spec


class SentStore:
    """Just what a push asks of the store, and the order in which it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.sent: list[Sequence[tuple[ClusterName, int, int]]] = []
        self.lost: set[str] = set()
        self.ended: set[AttemptId] = set()
        self.specs = True

    async def mark_sent(self, sent: Sequence[tuple[ClusterName, int, int]]) -> set[ClusterName]:
        self.asked.append("mark_sent")
        self.sent.append(sent)
        return {cluster for cluster, _, _ in sent} - self.lost

    async def live_in(self, attempts: Iterable[AttemptId]) -> set[AttemptId]:
        self.asked.append("live_in")
        return set(attempts) - self.ended

    async def start_specs(self, jobs: Iterable[JobId]) -> dict[JobId, StartSpec]:
        return {job: StartSpec(spec(), "q", "t") for job in jobs} if self.specs else {}


class Desk:
    """A pusher over some sessions with decisions 1 to 10 each."""

    def __init__(self, clusters: int = 1, **limits: int) -> None:
        self.store = SentStore()
        self.table = SessionTable(most=100)
        observer = Telemetry(ManualClock())
        self.pusher = Pusher(
            self.store,  # type: ignore[arg-type] # it asks for nothing else
            self.table,
            Readier(self.store, observer),  # type: ignore[arg-type]
            observer=observer,
            clock=ManualClock(),
            limits=Limits(**limits),
        )
        self.sessions = [session(f"c{number}") for number in range(clusters)]
        for each in self.sessions:
            each.lane.offer_all(decision(number) for number in range(1, 11))
            self.table.enter(each)


async def test_sent_is_committed_before_anything_is_looked_up_or_pushed() -> None:
    desk = Desk()
    assert await desk.pusher.push()
    assert desk.store.asked == ["mark_sent", "live_in"]
    assert desk.store.sent == [[("c0", 1, 10)]]
    message = await desk.sessions[0].outbox.next()
    assert isinstance(message, Decisions)
    assert [item.decision.number for item in message.items] == list(range(1, 11))
    assert not await desk.pusher.push()


async def test_every_session_gets_its_turn() -> None:
    desk = Desk(clusters=5, push_total=4, push_batch=4)
    for _ in range(5):
        await desk.pusher.push()
    assert [each.lane.sent for each in desk.sessions] == [4] * 5


async def test_an_agent_that_does_not_read_gets_no_more_than_two_batches() -> None:
    desk = Desk(push_batch=3)
    while await desk.pusher.push():
        pass
    assert desk.sessions[0].lane.sent == 6


async def test_a_quarantined_cluster_gets_nothing() -> None:
    desk = Desk()
    desk.sessions[0].state = ClusterState.QUARANTINED
    assert not await desk.pusher.push()


async def test_a_session_that_does_not_hold_ends_and_gets_nothing() -> None:
    desk = Desk(clusters=2)
    desk.store.lost = {"c0"}
    await desk.pusher.push()
    with pytest.raises(StaleSession):
        await desk.sessions[0].outbox.next()
    assert desk.sessions[1].lane.sent == 10


@pytest.mark.parametrize("why", ["ended", "no spec"])
async def test_a_start_that_no_longer_stands_keeps_its_number(why: str) -> None:
    desk = Desk()
    if why == "ended":
        desk.store.ended = {decision(3).attempt}
    else:
        desk.store.specs = False
    await desk.pusher.push()
    message = await desk.sessions[0].outbox.next()
    assert isinstance(message, Decisions)
    third = message.items[2].decision
    assert (third.number, third.kind, third.tasks) == (3, DecisionKind.VOID, ())
