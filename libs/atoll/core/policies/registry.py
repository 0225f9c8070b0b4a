"""Policies by name. A new one is one file and one line here."""

from typing import Final

from atoll.core.policies.best_fit import BestFit
from atoll.core.policies.fair_share import FairShare
from atoll.core.policies.fit import KeptApart, LabelsMatch, OpenCluster, OpenNode
from atoll.core.policies.interfaces import Filter, Policies, QueueOrder, Score, VictimOrder
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
    "best_fit": BestFit(),
}

VICTIMS: Final[dict[str, VictimOrder]] = {
    "minimal_loss": MinimalLoss(),
    "goodput": Goodput(),
}


def policies(
    *,
    order: str = "priority_fifo",
    score: str = "best_fit",
    victims: str = "minimal_loss",
) -> Policies:
    """The named policies with all filters; raises KeyError for an unknown name."""
    filters = tuple(FILTERS.values())
    return Policies(ORDERS[order], filters, SCORES[score], VICTIMS[victims])
