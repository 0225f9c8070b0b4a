"""Compiles the kernels of forecasts beforehand."""

import numpy as np

from atoll.core.engine.timeline.forecast import forecast
from atoll.core.engine.timeline.track_record import TrackRecord
from atoll.core.model.ids import JobId, QueueName
from atoll.core.policies.registry import policies
from atoll.core.state.run_times import EndedRun
from atoll.core.state.world import World


def warm_forecasts(world: World) -> None:
    """Forecast a world's queue, and note what came of it. `world`: one with jobs and a run."""
    world.run_times.note([EndedRun(QueueName("warm"), 1, limit_s, 1.0) for limit_s in (0.0, 9.0)])
    forecast(world.survey(1.0), policies(), rng=np.random.default_rng(0))
    record = TrackRecord()
    record.tell({JobId(1): 10.0}, now=0.0)
    record.still_wait(now=1e6)
    record.started([JobId(1)], now=2e6)
