"""Everything around the question where a job could run."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from atoll.core.model.burst import Offer
from atoll.core.model.burst_rules import Policies as BurstPolicies
from atoll.core.policies.interfaces import Policies
from atoll.core.state.run_times import RunTimesView
from atoll.core.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Renting:
    """What could be rented, and by whom."""

    offers: Sequence[Offer] = ()
    policies: BurstPolicies = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """As of one moment."""

    look: Snapshot
    """Without a queue."""
    times: RunTimesView
    policies: Policies
    renting: Renting = field(default_factory=Renting)
