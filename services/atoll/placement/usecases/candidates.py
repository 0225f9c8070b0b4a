"""Where a job could run, as it is told: beside the cycles, off the event loop."""

import asyncio
from collections.abc import Mapping
from typing import Final

from atoll.core.engine.choice.candidates import Asked, candidates
from atoll.core.engine.choice.scene import Renting, Scene
from atoll.core.engine.choice.wanting import NO_HOPE, Hope
from atoll.core.engine.timeline.eta_kernels import LEVELS
from atoll.core.engine.timeline.forecast import Forecast
from atoll.core.model.burst_wants import Candidate
from atoll.core.model.ids import ClusterName
from atoll.core.model.plan import PendingJob
from atoll.core.state.snapshot import Snapshot
from atoll.placement.usecases.etas import Eta
from atoll.placement.usecases.leader import Leader

MIDDLE: Final = LEVELS.index(0.5)


async def candidates_of(
    leader: Leader, look: Snapshot, pending: PendingJob, *, eta: Eta | None, made: Forecast
) -> tuple[Candidate, ...]:
    """The best first. `eta`: as the job is told, without rented machines; `made`: where else."""
    scene = scene_of(leader, look)
    asked = Asked(
        pending,
        _told(leader, made.starts(pending), now=look.now),
        NO_HOPE if eta is None else Hope(eta.p50_at, eta.p90_at, eta.cluster),
        promised=eta is not None and eta.promised,
    )
    return await asyncio.to_thread(candidates, scene, asked)


def scene_of(leader: Leader, look: Snapshot) -> Scene:
    """Everything around the question."""
    burst, world = leader.memory.burst, leader.memory.world
    policies = {policy.queue: policy for policy in burst.policies}
    renting = Renting(burst.offers, policies)
    return Scene(look, world.run_times.freeze(), leader.policies, renting)


def _told(
    leader: Leader, starts: Mapping[ClusterName, float], *, now: float
) -> dict[ClusterName, float]:
    """With even chances, by what past forecasts turned out to be."""
    record = leader.foresight.record
    return {
        name: now + record.quantiles_s(max(0.0, start - now))[MIDDLE]
        for name, start in starts.items()
    }
