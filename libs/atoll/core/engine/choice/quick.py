"""Quick clusters first: where a job would begin to run later is tried after where it begins sooner.

What begins to run at once ends the earlier by what other clusters take to boot, so of
clusters with room now the one that boots sooner has the least expected finish. Clusters
whose boots differ by little are alike, and then the best node of all is taken.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.policies.interfaces import Objective, Policies
from atoll.core.state.snapshot import ClassView, Snapshot

MOST: Final = 3
"""Steps from quick to slow; what is slower still is alike."""
USELESS: Final = 0.02
"""Part of a run that devices may be held without being of use before goodput minds it."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Clusters that boot sooner than the next ones."""

    rows: NDArray[np.bool_]
    """(N) nodes of these and of all that boot sooner still."""
    saved_s: float
    """What the next ones take more, at least."""


def steps(snapshot: Snapshot, policies: Policies) -> tuple[Step, ...]:
    """The quickest first; none when clusters that take work boot alike."""
    views = snapshot.clusters
    boots = np.array([view.boot_s for view in views], np.float64)
    known = np.unique(boots[[view.closed is None for view in views]])
    gaps = np.diff(known)
    cuts = np.flatnonzero(gaps > policies.boot_gap_s)[:MOST].tolist()
    return tuple(
        Step((boots <= known[cut])[snapshot.nodes.cluster], float(gaps[cut])) for cut in cuts
    )


def minds(view: ClassView, step: Step, policies: Policies) -> bool:
    """Whether a class is tried on a step's clusters before all others.

    For speed it is what saves time. For goodput it is the part of the run in which its devices
    would do nothing that has to be worth it: quick clusters are left to short runs.
    """
    if policies.objective is Objective.SPEED:
        return True
    return step.saved_s > USELESS * (step.saved_s + view.expected[1])


def late_s(snapshot: Snapshot, policies: Policies) -> NDArray[np.float64]:
    """(clusters) how much later than in the quickest a job begins to run there; alike: 0."""
    boots = np.array([view.boot_s for view in snapshot.clusters], np.float64)
    works = [view.closed is None for view in snapshot.clusters]
    late = np.maximum(0.0, boots - boots[works].min(initial=np.inf))
    return np.where(late > policies.boot_gap_s, late, 0.0)
