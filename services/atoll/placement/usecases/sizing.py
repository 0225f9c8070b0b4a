"""Which running jobs are to grow or shrink, and which guarantees are lost, by what is known now."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from atoll.core.engine.deadlines.elastic import elastic_runs
from atoll.core.engine.deadlines.making_room import Borrowed, borrowed
from atoll.core.engine.deadlines.resizing import resizes
from atoll.core.engine.deadlines.wishes import Ask
from atoll.core.model.ids import AttemptId, JobId
from atoll.core.model.plan import Resize
from atoll.core.model.reason import ReasonCode
from atoll.core.model.resources import ANY_KIND
from atoll.core.policies.interfaces import Objective
from atoll.core.state.snapshot import Snapshot
from atoll.placement.usecases.guarantees import GuaranteeWatch, Lost
from atoll.placement.usecases.memory import LeaderMemory
from atoll.placement.usecases.outlook import Outlook
from atoll.placement.usecases.promises import ask_of

LOOK_S: Final = 1.0
"""Shortest time between two looks."""
SLOW_LOOK_S: Final = 10.0
"""The same while nothing changes but the time."""
NOT_FOR_ROOM: Final = frozenset({
    ReasonCode.QUEUE_LIMIT, ReasonCode.DEVICE_KIND_ABSENT, ReasonCode.PROFILE_ABSENT,
    ReasonCode.LABELS_MISMATCH, ReasonCode.ON_LOST_UNSUPPORTED,
})  # fmt: skip
"""Who waits for these would not start if there were more room."""
MOST_TOLD: Final = 100

_Seen = tuple[int, int, frozenset[AttemptId]]


@dataclass(frozen=True, slots=True)
class Found:
    """What a look found."""

    resizes: tuple[Resize, ...]
    done: Mapping[AttemptId, float]
    """Work that elastic attempts have done."""
    lost: Sequence[Lost]
    smaller: frozenset[AttemptId]
    """Attempts that could shrink now."""


@dataclass(slots=True)
class Sizing:
    """What the leader keeps of sizes between its steps. Times are monotonic."""

    shrinks: tuple[Resize, ...] = ()
    """Found by the last plan, for jobs that wait."""
    lost: deque[Lost] = field(default_factory=lambda: deque(maxlen=MOST_TOLD))
    """Guarantees, until somebody has told them to the log."""
    smaller: frozenset[AttemptId] = frozenset()
    """As of the last look."""
    watch: GuaranteeWatch = field(default_factory=GuaranteeWatch)
    _looked_at: float = float("-inf")
    _seen: _Seen | None = None

    def is_due(self, memory: LeaderMemory, *, now: float) -> bool:
        """Whether it is time for a look; it counts as taken then."""
        seen = (len(memory.live), memory.world.pending_count, memory.sizes.ready())
        pause = SLOW_LOOK_S if seen == self._seen else LOOK_S
        if now < self._looked_at + pause:
            return False
        self._looked_at, self._seen = now, seen
        return True


def standing(memory: LeaderMemory, early: Sequence[Ask]) -> list[Ask]:
    """Queued jobs whose deadline is guaranteed; `early`: promised, not here yet."""
    return [*(ask_of(job) for job in memory.world.guaranteed()), *early]


def may_give_back(
    snapshot: Snapshot, memory: LeaderMemory, asks: Sequence[Ask], *, now: float
) -> Borrowed:
    """What elastic jobs could give back to those that wait; `asks`: what was promised to others."""
    sizes = memory.sizes
    if not sizes:
        return Borrowed({})
    return borrowed(
        snapshot,
        sizes.ready(),
        sizes.facts(),
        ending=sizes.ending(),
        standing=asks,
        now=now,
    )


def asked_kinds(memory: LeaderMemory, outlook: Outlook) -> frozenset[str]:
    """Device kinds that jobs wait for; ANY_KIND: all of them."""
    wanted = (
        request
        for queue, request in memory.world.asked()
        if outlook.code_of(queue, request) not in NOT_FOR_ROOM
    )
    return frozenset(
        ANY_KIND if shape.device is None else shape.device.kind
        for request in wanted
        for group in request.groups
        for shape in group.shapes
    )


@dataclass(frozen=True, slots=True)
class Look:
    """What a look needs, taken at one moment."""

    snapshot: Snapshot
    memory: LeaderMemory
    standing: Sequence[tuple[JobId, Ask]]
    early: Sequence[Ask]
    again: frozenset[JobId]
    """Of `standing`: jobs that ran before."""
    asked: frozenset[str]
    objective: Objective

    def take(self, watch: GuaranteeWatch, *, now: float, slack: int) -> Found:
        """Look; `slack`: seconds by which a promise may seem late."""
        snapshot, sizes = self.snapshot, self.memory.sizes
        facts, ready = sizes.facts(), sizes.ready()
        asks = [ask for _, ask in self.standing] + [*self.early]
        due = resizes(
            snapshot,
            asks,
            facts,
            now=now,
            ready=ready,
            asked=self.asked,
            objective=self.objective,
        )
        given = borrowed(snapshot, ready, facts, ending=(), standing=asks, now=now)
        lost = watch.look(snapshot, self.standing, facts, now=now, slack=slack, again=self.again)
        return Found(
            tuple(resize for resize in due if resize.attempt in ready),
            {r.holding.attempt: r.done_by(now) for r in elastic_runs(snapshot, ready, facts)},
            lost,
            frozenset(run.holding.attempt for run, _ in given.runs),
        )
