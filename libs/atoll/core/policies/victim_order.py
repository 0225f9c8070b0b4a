"""What it costs to stop running work, so that the cheapest is stopped."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.state.mig import UNITS_PER_DEVICE
from atoll.core.state.ragged import spans
from atoll.core.state.run_columns import Runs
from atoll.core.state.running import Running

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]

CPU_PER_DEVICE = 100_000
"""Milli-CPU that weigh as much as a device, so that work without devices is not free to stop."""
BEFORE_S = 600.0
"""Device-seconds per device for each time that a run was stopped before."""
LATE_S = 3600.0
"""The same for a deadline that is kept now and would not be any more."""


class MinimalLoss:
    """Device-seconds that are lost, and what people mind beside them.

    devices x (now - last checkpoint) + devices x (checkpoint + restart), and more for a run
    that would miss its deadline, and for one that was stopped before. The grace is the time
    in which it saves its work. Who borrows most pays first.
    """

    excess: Final = 3.0

    def costs(self, running: Running, slots: Slots, *, now: float) -> Floats:
        """(S) above 0, in device-seconds."""
        runs = Runs._make(column[slots] for column in running.runs)
        lost = lost_s(runs, now=now)
        burden = BEFORE_S * runs.preemptions + np.where(_is_late(runs, lost, now), LATE_S, 0.0)
        costs: Floats = devices_of(running, slots) * (lost + burden)
        return costs


class Goodput:
    """Device-seconds that are not useful: work done again, saved and loaded; nothing else."""

    excess: Final = 0.0

    def costs(self, running: Running, slots: Slots, *, now: float) -> Floats:
        """(S) above 0, in device-seconds."""
        runs = Runs._make(column[slots] for column in running.runs)
        costs: Floats = devices_of(running, slots) * lost_s(runs, now=now)
        return costs


def lost_s(runs: Runs, *, now: float) -> Floats:
    """Seconds of each run that being stopped now costs it, at least one."""
    ran = np.maximum(now - runs.started_at, 0.0)
    interval = np.where(runs.checkpoint_s > 0, runs.checkpoint_s, np.inf)
    since: Floats = ran - np.floor(ran / interval) * np.where(runs.checkpoint_s > 0, interval, 0.0)
    return np.maximum(since + runs.grace_s + runs.restart_s, 1.0)


def devices_of(running: Running, slots: Slots) -> Floats:
    """What each run holds in devices; CPU counts a little."""
    tasks = running.tasks
    counts = np.diff(tasks.first_task)[slots]
    each = spans(tasks.first_task, slots)
    of = np.repeat(np.arange(len(slots)), counts)
    cpu = np.bincount(of, tasks.cpu[each], len(slots))
    shares = np.diff(tasks.first_grant)[each]
    units = tasks.units[spans(tasks.first_grant, each)]
    devices = np.bincount(np.repeat(of, shares), units, len(slots))
    return devices / UNITS_PER_DEVICE + cpu / CPU_PER_DEVICE + 1e-6


def _is_late(runs: Runs, lost: Floats, now: float) -> NDArray[np.bool_]:
    # Without a limit nobody knows when it ends; then only a deadline that is near counts.
    ends = np.where(np.isfinite(runs.ends_at), np.maximum(runs.ends_at, now), now)
    has = runs.deadline_at > 0
    return has & (ends <= runs.deadline_at) & (ends + lost > runs.deadline_at)
