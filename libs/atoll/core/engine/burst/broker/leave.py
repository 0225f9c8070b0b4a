"""What each want may have, and why it may not."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from atoll.core.engine.burst.broker.ground import Floats, Ground
from atoll.core.engine.burst.broker.table import Bools
from atoll.core.model.burst import Market, Offer
from atoll.core.model.burst_rules import refusal
from atoll.core.model.burst_wants import Want
from atoll.core.model.ids import QueueName


class Bar(enum.StrEnum):
    """Why nothing was rented for a job."""

    NO_OFFER = "no_offer"
    POLICY = "policy"
    SPOT_ONLY = "spot_only"
    """And the job must not be stopped."""
    MAX_COST = "max_cost"
    WAITS_FOR_SPOT = "waits_for_spot"
    SOON = "soon"
    """It would save less than it costs."""
    BUDGET = "budget"
    TRIED = "tried"
    """It was rented for several times, and did not start there."""
    MANY = "many"
    """Enough was rented in one decision; the next one is soon."""


@dataclass(frozen=True, slots=True, eq=False)
class Leave:
    """W wants against O offers."""

    open: Bools
    """(W, O)."""
    bars: tuple[Bar | None, ...]
    """(W) why nothing is open."""
    refusals: tuple[str, ...]
    """(W) what a policy says, where it is that."""


def leave_of(
    ground: Ground, wants: Sequence[Want], offers: Sequence[Offer], *, fits: Bools, costs: Floats
) -> Leave:
    """`costs`: (W, O) micro-dollars that a job would bear."""
    texts = {queue: _refusals(ground, queue, offers) for queue in {want.queue for want in wants}}
    free = {queue: np.array([not each for each in told]) for queue, told in texts.items()}
    allowed = np.array([free[want.queue] for want in wants])
    spot = np.array([offer.market is Market.SPOT for offer in offers])
    stoppable = np.array([want.preemptible for want in wants])
    most = np.array([want.max_cost or np.inf for want in wants])
    layers = (
        (Bar.NO_OFFER, fits),
        (Bar.POLICY, allowed),
        (Bar.SPOT_ONLY, ~spot | stoppable[:, None]),
        (Bar.MAX_COST, costs <= most[:, None]),
    )
    opened, bars = _narrowed(layers)
    refusals = tuple(
        next((why for n, why in enumerate(texts[want.queue]) if fits[w, n] and why), "")
        for w, want in enumerate(wants)
    )
    return Leave(opened, bars, refusals)


def _narrowed(layers: Sequence[tuple[Bar, Bools]]) -> tuple[Bools, tuple[Bar | None, ...]]:
    """What passes all, and by which layer the last offer of a want was lost."""
    opened = np.ones_like(layers[0][1])
    bars: list[Bar | None] = [None] * len(opened)
    for bar, layer in layers:
        opened &= layer
        for want in np.flatnonzero(~opened.any(axis=1)):
            bars[want] = bars[want] or bar
    return opened, tuple(bars)


def _refusals(ground: Ground, queue: QueueName, offers: Sequence[Offer]) -> list[str]:
    return [refusal(ground.policies, queue, offer) for offer in offers]
