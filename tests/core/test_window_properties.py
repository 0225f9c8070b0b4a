"""What holds for bookings whatever comes: small worlds on a virtual clock, checked by counting."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.model.booking import NodeShare, Owners, Window, owned_by
from atoll.core.model.ids import JobId, QueueName, job_of
from atoll.core.model.plan import PendingJob
from tests.core.booked_worlds import LEFT, RIGHT, WHOLE, Shard, faults, job, window

GRACE_S, MARGIN_S = 30.0, 5.0
NODES = 2
PARTS = ((LEFT,), (RIGHT,), (LEFT, RIGHT), (WHOLE,))
TIMES = st.integers(2, 30).map(lambda n: 50.0 * n)


@dataclass(frozen=True)
class Case:
    """Windows that fit beside each other, when each is booked, and jobs by their submits."""

    windows: tuple[Window, ...]
    jobs: tuple[tuple[float, PendingJob], ...]


def _parts(share: NodeShare) -> frozenset[str]:
    return frozenset("lr") if share.whole else frozenset("l" if share is LEFT else "r")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    taken: list[tuple[int, frozenset[str], float, float]] = []
    windows = []
    for number in range(1, draw(st.integers(1, 5)) + 1):
        start, length = draw(TIMES), 50.0 * draw(st.integers(1, 6))
        nodes = draw(st.lists(st.integers(1, NODES), min_size=1, max_size=NODES, unique=True))
        pairs = [(node, share) for node in nodes for share in draw(st.sampled_from(PARTS))]
        free = [p for p in pairs if not _meets(taken, p, start, start + length)]
        taken += [(node, _parts(share), start, start + length) for node, share in free]
        owner = draw(st.sampled_from(("nlp", "nlp", "vision", "")))
        owners = Owners(queues=(QueueName(owner),)) if owner else Owners()
        if free:
            lend = draw(st.booleans())
            windows.append(window(number, start, start + length, free, owners=owners, lend=lend))
    count = draw(st.integers(1, 12))
    return Case(tuple(windows), tuple(_job(draw, number) for number in range(1, count + 1)))


def _meets(
    taken: Iterable[tuple[int, frozenset[str], float, float]],
    pair: tuple[int, NodeShare],
    start: float,
    end: float,
) -> bool:
    node, parts = pair[0], _parts(pair[1])
    return any(n == node and p & parts and s < end and start < e for n, p, s, e in taken)


def _job(draw: st.DrawFn, number: int) -> tuple[float, PendingJob]:
    queue = draw(st.sampled_from(("a", "a", "nlp", "nlp.x", "vision")))
    at = draw(st.sampled_from((0.0, 0.0, 75.0, 260.0, 500.0, 801.0)))
    inside = f"b{draw(st.integers(1, 5))}" if draw(st.sampled_from((False, False, True))) else ""
    made = job(
        number,
        queue,
        cpu=draw(st.sampled_from((0, 1, 3, 8))),
        gpus=draw(st.sampled_from((0, 1, 2, 4))),
        tasks=draw(st.sampled_from((1, 1, 1, 2))),
        limit=draw(st.sampled_from((0.0, 60.0, 250.0, 2000.0))),
        grace=draw(st.sampled_from((0.0, GRACE_S))),
        firm=draw(st.sampled_from((False, False, True))),
        inside=inside,
        at=at,
    )
    return at, made


@dataclass
class Run:
    """One case played through."""

    case: Case
    shard: Shard = field(default_factory=lambda: Shard(NODES))
    waits: dict[JobId, float] = field(default_factory=dict)
    """Owners' jobs that asked for their booking and would have room there, and since when."""

    def play(self) -> None:
        self.shard.book(*self.case.windows)
        submits = sorted({at for at, _ in self.case.jobs})
        now, steps = 0.0, 0
        while now < 2500.0 and steps < 400:
            self.shard.submit(*(made for at, made in self.case.jobs if at == now))
            self.shard.at(now)
            self.check(now)
            wakeup = self.shard.world.next_wakeup(now)
            soon = now + 1.0 if self.shard.world.has_work(now) else 2500.0
            times = [*submits, *self.shard.ends.values(), wakeup or 2500.0, soon, 2500.0]
            now, steps = min(time for time in times if time > now), steps + 1
        assert steps < 400

    def check(self, now: float) -> None:
        assert list(faults(self.shard, self.case.windows, now)) == []
        self.check_inside(now)
        self.check_owners(now)

    def check_inside(self, now: float) -> None:
        """Who asked for a booking runs on its shares, and only while it is open."""
        for attempt, held in self.shard.world.ledger.holdings.items():
            wanted = self.shard.jobs[job_of(attempt)].request.reservation
            if not wanted:
                continue
            (own,) = (w for w in self.case.windows if w.booking == wanted)
            assert own.start <= now < own.end
            for task in held.tasks:
                shares = [share for share in own.shares if share.node == task.node]
                devices = {grant.index for share in shares for grant in share.devices}
                assert shares
                whole = any(share.whole for share in shares)
                assert whole or {grant.index for grant in task.devices} <= devices

    def check_owners(self, now: float) -> None:
        """Who asks for a booking starts at its start, or once those that it lends to are gone."""
        waiting = {}
        for _, made in self.case.jobs:
            pending = self.shard.world.pending(made.id)
            if pending is None or not made.request.reservation:
                continue
            for own in self.case.windows:
                if own.booking == made.request.reservation and self.has_room(own, made, now):
                    since = max(self.waits.get(made.id, now), own.start)
                    waiting[made.id] = since
                    early = made.submitted_at + GRACE_S + MARGIN_S <= own.start
                    patience = 0.0 if early and since == own.start else GRACE_S
                    assert now < since + patience or now == since + patience == since > own.start, (
                        f"job {made.id} waits since {since} for {own.booking} at {now}"
                    )
        self.waits = waiting

    def has_room(self, own: Window, made: PendingJob, now: float) -> bool:
        """Whether a job of one task has room in a window beside all that belongs there."""
        terms, (group,) = made.request.terms, made.request.groups
        if not own.start <= now < own.end or group.count > 1:
            return False
        if not owned_by(own.owners, made.queue, ()):
            return False
        if not terms.preemptible and not 0 < terms.time_limit_s <= own.end - now:
            return False
        return any(self.room_on(own, share, made) for share in own.shares)

    def room_on(self, own: Window, share: NodeShare, made: PendingJob) -> bool:
        shape = made.request.groups[0].shapes[0]
        cpu = 8000 if share.whole else share.cpu_milli
        free = set(range(4)) if share.whole else {grant.index for grant in share.devices}
        for held in self.shard.world.ledger.holdings.values():
            assert held.run is not None
            guest = held.run.terms.preemptible and not owned_by(own.owners, held.queue, ())
            for task in held.tasks if not guest else ():
                if task.node == share.node:
                    cpu -= task.cpu_milli
                    free -= {grant.index for grant in task.devices}
        for nomination in self.shard.world.ledger.nominations.values():
            for task in nomination.tasks:
                if task.node == share.node:
                    cpu -= task.cpu_milli
                    free -= {grant.index for grant in task.devices}
        wanted = shape.device.count if shape.device else 0
        return shape.cpu_milli <= cpu and wanted <= len(free)


@given(cases())
@settings(max_examples=40, deadline=None)
def test_bookings_have_their_capacity_and_lend_it_only_until_an_owner_comes(case: Case) -> None:
    Run(case).play()
