"""What the last cycles found out, for those who ask between them."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from atoll.core.model.ids import JobId, QueueName
from atoll.core.model.plan import GangRequest, PendingJob, Plan, Promise
from atoll.core.model.reason import Reason, ReasonCode
from atoll.core.state.snapshot import Snapshot

MOST_CLASSES: Final = 1 << 16
"""Whose reasons are kept; the oldest are forgotten first."""

_Class = tuple[QueueName, GangRequest]


@dataclass(slots=True)
class Outlook:
    """Why classes wait, and when blocked jobs will start, as of the cycles that tried them."""

    _waits: OrderedDict[_Class, Reason] = field(default_factory=OrderedDict)
    _promises: dict[JobId, Promise] = field(default_factory=dict)

    def note(self, snapshot: Snapshot, plan: Plan) -> None:
        """Take in what a cycle found; of classes that it did not try the older word stands."""
        for view in snapshot.queue.classes:
            self._waits.pop((view.queue, view.request), None)
        for waiting in plan.waiting:
            if waiting.reasons:
                self._waits[waiting.queue, waiting.request] = waiting.reasons[0]
        while len(self._waits) > MOST_CLASSES:
            self._waits.popitem(last=False)
        self._promises = {promise.job: promise for promise in plan.promises}

    def wait_of(self, pending: PendingJob, *, now: float) -> Reason | None:
        """Why a queued job waits, in short; None: no cycle has tried it yet."""
        if pending.depends_on:
            names = ", ".join(str(job) for job in pending.depends_on)
            return Reason(ReasonCode.DEPENDENCY, f"waits for {names}")
        if pending.begin_at > now:
            return Reason(ReasonCode.BEGIN_IN_FUTURE, "is not to begin yet")
        return self._waits.get((pending.queue, pending.request))

    def code_of(self, queue: QueueName, request: GangRequest) -> ReasonCode | None:
        """Why a class waits, as a code; None: no cycle has tried it yet."""
        reason = self._waits.get((queue, request))
        return reason.code if reason is not None else None

    def promise_of(self, job: JobId) -> Promise | None:
        """The reservation of a blocked job, if the last cycle made one."""
        return self._promises.get(job)
