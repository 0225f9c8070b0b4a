"""Where a request may go at all: clusters that take it, nodes that take work, labels that match."""

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.plan import GangRequest
from atoll.core.model.reason import ReasonCode
from atoll.core.model.resources import TaskShape
from atoll.core.policies.interfaces import MAY_GO, WHY_NUMBER
from atoll.core.state.columns import STATUS_CORDONED, STATUS_DOWN, STATUS_SUSPECT
from atoll.core.state.snapshot import Snapshot


class OpenCluster:
    """Leaves out clusters that take no new work, lack a needed guard, or are avoided."""

    def key(
        self, snapshot: Snapshot, request: GangRequest, *, shape: TaskShape, now: float
    ) -> Hashable:
        """Whether a guard is needed, and what is avoided for the request."""
        del shape
        return request.needs_guard, tuple(snapshot.avoids(request, now=now))

    def refuses(
        self, snapshot: Snapshot, request: GangRequest, *, shape: TaskShape, now: float
    ) -> NDArray[np.int8]:
        """The reason of each node's cluster, or CLUSTER_AVOIDED where only the node is."""
        del shape
        closed = [snapshot.closed(n, request, now=now) for n in range(len(snapshot.clusters))]
        by_cluster = np.array([WHY_NUMBER[c] if c else MAY_GO for c in closed] or [0], np.int8)
        codes: NDArray[np.int8] = by_cluster[snapshot.nodes.cluster]
        avoided = snapshot.avoided_rows(request, now=now)
        codes[avoided[codes[avoided] == MAY_GO]] = WHY_NUMBER[ReasonCode.CLUSTER_AVOIDED]
        return codes


class OpenNode:
    """Leaves out nodes that are down, cordoned or suspect."""

    def key(
        self, snapshot: Snapshot, request: GangRequest, *, shape: TaskShape, now: float
    ) -> Hashable:
        """It is the same for every request."""
        del snapshot, request, shape, now
        return None

    def refuses(
        self, snapshot: Snapshot, request: GangRequest, *, shape: TaskShape, now: float
    ) -> NDArray[np.int8]:
        """NODE_UNSCHEDULABLE or NODE_SUSPECT."""
        del request, shape, now
        codes: NDArray[np.int8] = _BY_STATUS[snapshot.nodes.status]
        return codes


class LabelsMatch:
    """Leaves out nodes without the labels that a shape asks for, and with those it shuns."""

    def key(
        self, snapshot: Snapshot, request: GangRequest, *, shape: TaskShape, now: float
    ) -> Hashable:
        """The labels."""
        del snapshot, request, now
        return shape.labels, shape.labels_not

    def refuses(
        self, snapshot: Snapshot, request: GangRequest, *, shape: TaskShape, now: float
    ) -> NDArray[np.int8]:
        """LABELS_MISMATCH unless every label is there with its value, and no unwanted one."""
        del request, now
        matching = snapshot.label_sets_with(shape.labels)
        if shape.labels_not:
            matching &= snapshot.label_sets_without(shape.labels_not)
        codes: NDArray[np.int8] = (~matching * _MISMATCH)[snapshot.nodes.labels]
        return codes


class KeptApart:
    """Leaves out nodes that share a domain with a job that the request is kept apart from."""

    def key(
        self, snapshot: Snapshot, request: GangRequest, *, shape: TaskShape, now: float
    ) -> Hashable:
        """Whom it is kept apart from."""
        del snapshot, shape, now
        return request.anti_affinity

    def refuses(
        self, snapshot: Snapshot, request: GangRequest, *, shape: TaskShape, now: float
    ) -> NDArray[np.int8]:
        """ANTI_AFFINITY where such a job runs, or capacity is held for one."""
        del shape, now
        if request.anti_affinity is None:
            return np.zeros(len(snapshot.names), np.int8)
        codes: NDArray[np.int8] = snapshot.too_close(request.anti_affinity) * _TOO_CLOSE
        return codes


_MISMATCH = np.int8(WHY_NUMBER[ReasonCode.LABELS_MISMATCH])
_TOO_CLOSE = np.int8(WHY_NUMBER[ReasonCode.ANTI_AFFINITY])
_BY_STATUS = np.zeros(4, np.int8)
_BY_STATUS[[STATUS_DOWN, STATUS_CORDONED]] = WHY_NUMBER[ReasonCode.NODE_UNSCHEDULABLE]
_BY_STATUS[STATUS_SUSPECT] = WHY_NUMBER[ReasonCode.NODE_SUSPECT]
