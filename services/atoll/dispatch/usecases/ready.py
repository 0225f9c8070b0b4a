"""Makes decisions ready for their agent: specs, addresses, and what has ended since."""

import asyncio
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Final

from atoll.core.model.ids import AttemptId, JobId, NodeId, job_of
from atoll.core.model.messages import Decision, DecisionKind
from atoll.dispatch.usecases.observer import Observer
from atoll.dispatch.usecases.outbox import Ready
from atoll.ports.store.dispatch import DispatchStore, StartSpec

WITH_SPEC: Final = frozenset({DecisionKind.START, DecisionKind.RESIZE})
"""An agent starts tasks on these."""


class Readier:
    """Joins decisions with the store, many in one go."""

    def __init__(self, store: DispatchStore, observer: Observer) -> None:
        self._store = store
        self._observer = observer

    async def __call__(self, decisions: Sequence[Decision]) -> list[Ready]:
        """The decisions as agents get them, in the same order.

        Call it after `mark_sent` is committed: whatever the leader took back before
        that has ended by then, and becomes VOID here. What it takes back later it
        knows to be sent, and stops.
        """
        starts = [d for d in decisions if d.kind in WITH_SPEC]
        if not starts:
            return [Ready(d) for d in decisions]
        gangs = {task.node for d in starts if len(d.tasks) > 1 for task in d.tasks}
        live, specs, addresses = await asyncio.gather(
            self._store.live_in(d.attempt for d in starts),
            self._store.start_specs({job_of(d.attempt) for d in starts}),
            self._addresses(gangs),
        )
        return [self._ready(d, live=live, specs=specs, addresses=addresses) for d in decisions]

    async def _addresses(self, nodes: Set[NodeId]) -> Mapping[NodeId, str]:
        return await self._store.node_addresses(sorted(nodes)) if nodes else {}

    def _ready(
        self,
        decision: Decision,
        *,
        live: Set[AttemptId],
        specs: Mapping[JobId, StartSpec],
        addresses: Mapping[NodeId, str],
    ) -> Ready:
        if decision.kind not in WITH_SPEC:
            return Ready(decision)
        if decision.attempt not in live:
            return Ready(voided(decision))
        start = specs.get(job_of(decision.attempt))
        if start is None:
            # The attempt stays unanswered, so the leader takes it back at its bind deadline.
            self._observer.spec_missing(decision.cluster, decision.number)
            return Ready(voided(decision))
        return Ready(decision, start, _reached_at(decision, addresses))


def voided(decision: Decision) -> Decision:
    """The decision's number, and nothing to do."""
    return replace(decision, kind=DecisionKind.VOID, tasks=())


def _reached_at(decision: Decision, addresses: Mapping[NodeId, str]) -> dict[str, str]:
    if len(decision.tasks) < 2:
        return {}
    return {t.node_name: addresses.get(t.node) or t.node_name for t in decision.tasks}
