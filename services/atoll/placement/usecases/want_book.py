"""Which wants a leader wrote last, and which classes could have anything that is on offer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from atoll.core.engine.burst.broker.parts import holds
from atoll.core.engine.choice.asks import asks_of
from atoll.core.model.burst import Offer
from atoll.core.model.burst_rules import refusal
from atoll.core.model.burst_wants import Ask, Want
from atoll.core.model.ids import JobId, QueueName
from atoll.core.model.plan import GangRequest
from atoll.ports.store.placement import BurstGround

MOVED_S: Final = 60.0
MOVED_PART: Final = 0.1
"""Of the time until a start; one that moves by less, or by less than MOVED_S, is where it was."""

ClassKey = tuple[QueueName, GangRequest]


@dataclass(slots=True)
class WantBook:
    """What was written last, and which classes could have anything on offer."""

    written: tuple[Want, ...] | None = None
    """None: nobody knows."""
    _ground: BurstGround | None = None
    _asks: dict[ClassKey, tuple[Ask, ...]] = field(default_factory=dict)

    def asks(
        self, ground: BurstGround, classes: Iterable[ClassKey]
    ) -> dict[ClassKey, tuple[Ask, ...]]:
        """By class, what of an instance its jobs take; those that may have none are left out."""
        if ground is not self._ground:
            self._ground, self._asks = ground, {}
        policies = {policy.queue: policy for policy in ground.policies}
        allowed: dict[QueueName, list[Offer]] = {}
        known, self._asks = self._asks, {}
        for queue, request in classes:
            found = known.get((queue, request))
            if found is None:
                if queue not in allowed:
                    allowed[queue] = [
                        each for each in ground.offers if not refusal(policies, queue, each)
                    ]
                offers = allowed[queue]
                asks = asks_of(request) if offers else ()
                found = tuple(a for a in asks if any(holds(offer, a) for offer in offers))
            self._asks[queue, request] = found
        return {each: asks for each, asks in self._asks.items() if asks}


def changed(before: Sequence[Want], after: Sequence[Want]) -> bool:
    """Whether jobs came or went, what they take changed, or a start moved."""
    known: Mapping[JobId, Want] = {want.job: want for want in before}
    return len(before) != len(after) or any(
        want.job not in known or _moved(known[want.job], want) for want in after
    )


def _moved(before: Want, after: Want) -> bool:
    same = (before.asks, before.placed_on, before.max_cost, before.deadline_at) == (
        after.asks,
        after.placed_on,
        after.max_cost,
        after.deadline_at,
    )
    if not same or bool(before.local_p50_at) != bool(after.local_p50_at):
        return True
    allowed_s = max(MOVED_S, MOVED_PART * (after.local_p50_at - after.as_of))
    return abs(after.local_p50_at - before.local_p50_at) > allowed_s
