"""Policies by name. A new one is one file and one line here."""

from typing import Final

from atoll.core.policies.best_fit import BestFit
from atoll.core.policies.fit import LabelsMatch, OpenCluster, OpenNode
from atoll.core.policies.interfaces import Filter, Policies, QueueOrder, Score
from atoll.core.policies.priority_fifo import PriorityFifo

ORDERS: Final[dict[str, QueueOrder]] = {
    "priority_fifo": PriorityFifo(),
}
FILTERS: Final[dict[str, Filter]] = {
    "open_cluster": OpenCluster(),
    "open_node": OpenNode(),
    "labels_match": LabelsMatch(),
}
SCORES: Final[dict[str, Score]] = {
    "best_fit": BestFit(),
}


def policies(*, order: str = "priority_fifo", score: str = "best_fit") -> Policies:
    """The named policies with all filters; raises KeyError for an unknown name."""
    return Policies(ORDERS[order], tuple(FILTERS.values()), SCORES[score])
