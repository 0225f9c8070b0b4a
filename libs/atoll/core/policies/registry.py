"""Policies by name. A new one is one file and one line here."""

from typing import Final

from atoll.core.policies.alignment import DotProduct
from atoll.core.policies.best_fit import BestFit
from atoll.core.policies.chance import Random
from atoll.core.policies.fair_share import FairShare, FairShareSettings
from atoll.core.policies.fgd import FragmentationGradient
from atoll.core.policies.fit import KeptApart, LabelsMatch, OpenCluster, OpenNode
from atoll.core.policies.interfaces import (
    BOOT_GAP_S,
    Filter,
    Objective,
    Policies,
    QueueOrder,
    Score,
    VictimOrder,
)
from atoll.core.policies.least_loss import LeastLoss
from atoll.core.policies.priority_fifo import PriorityFifo
from atoll.core.policies.victim_order import Goodput, MinimalLoss

ORDERS: Final[dict[str, QueueOrder]] = {
    "fair_share": FairShare(),
    "priority_fifo": PriorityFifo(),
}
FILTERS: Final[dict[str, Filter]] = {
    "open_cluster": OpenCluster(),
    "open_node": OpenNode(),
    "labels_match": LabelsMatch(),
    "kept_apart": KeptApart(),
}
SCORES: Final[dict[str, Score]] = {
    "atoll": LeastLoss(),
    "best_fit": BestFit(),
    "dotprod": DotProduct(),
    "fgd": FragmentationGradient(),
    "random": Random(),
}

VICTIMS: Final[dict[str, VictimOrder]] = {
    "minimal_loss": MinimalLoss(),
    "goodput": Goodput(),
}
OBJECTIVES: Final[dict[str, Objective]] = {str(each): each for each in Objective}
USUAL_VICTIMS: Final = {Objective.SPEED: "minimal_loss", Objective.GOODPUT: "goodput"}


def policies(
    *,
    order: str = "fair_share",
    score: str = "atoll",
    victims: str = "",
    objective: str = Objective.SPEED,
    shares: FairShareSettings | None = None,
    boot_gap_s: float = BOOT_GAP_S,
) -> Policies:
    """The named policies with all filters; raises KeyError for an unknown name.

    `victims`: other ones than the objective's own.
    `shares`: weights and switches of the order `fair_share` other than the usual ones.
    `boot_gap_s`: clusters whose boots differ by less are alike.
    """
    filters = tuple(FILTERS.values())
    chosen = ORDERS[order]
    if shares is not None and isinstance(chosen, FairShare):
        chosen = FairShare(shares)
    wanted = OBJECTIVES[objective]
    costs = VICTIMS[victims or USUAL_VICTIMS[wanted]]
    return Policies(chosen, filters, SCORES[score], costs, wanted, boot_gap_s)


def order_name(order: QueueOrder) -> str:
    """The name of an order; empty for one that is not registered."""
    return next((name for name, each in ORDERS.items() if type(each) is type(order)), "")
