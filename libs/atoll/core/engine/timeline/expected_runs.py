"""What holds capacity now and when it is expected to end, by how long its like have run."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.timeline.loads import SOON_S
from atoll.core.state.ledger_kernels import Uses
from atoll.core.state.ragged import spans
from atoll.core.state.run_columns import uses_of
from atoll.core.state.run_times import RunTimesView, form_of
from atoll.core.state.running import Running
from atoll.core.state.survey import Survey

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
STRETCH: Final = 1.5
"""A run that has outlived what was expected is expected to last so many times as long."""


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedRuns:
    """L runs with T tasks."""

    slots: Ints
    """(L) in `Running`."""
    ends: Floats
    """(L) unix seconds."""
    uses: Uses
    """One gang per run."""
    by_end: Ints
    """(T) tasks in the order in which they end."""
    task_end: Floats
    """(T)."""

    @property
    def run_of_task(self) -> Ints:
        """(T) index of its run."""
        return np.repeat(np.arange(len(self.slots)), np.diff(self.uses.first_task))


def expected_runs(survey: Survey, *, now: float) -> ExpectedRuns:
    """All runs of a survey; the user's request bounds what is expected."""
    running = survey.snapshot.running
    slots = running.slots()
    ends = _ends(running, slots, survey.times, now=now)
    uses = uses_of(running.tasks, slots, survey.snapshot.nodes)
    task_end = np.repeat(ends, np.diff(uses.first_task))
    return ExpectedRuns(slots, ends, uses, np.argsort(task_end, kind="stable"), task_end)


def _ends(running: Running, slots: Ints, times: RunTimesView, *, now: float) -> Floats:
    runs = running.runs
    start, latest = runs.started_at[slots], runs.ends_at[slots]
    limit = np.where(np.isfinite(latest), latest - start, 0.0)
    numbers = times.owners(running.queues.values)
    lasts = times.expected(numbers[runs.queue[slots]], _forms(running, slots), limit)[:, 1]
    ran = np.maximum(0.0, now - start)
    ends = np.minimum(start + np.where(lasts > ran, lasts, ran * STRETCH), latest)
    told = running.stopping[slots]
    ends = np.where(told, np.minimum(ends, now + runs.grace_s[slots]), ends)
    return np.maximum(ends, now + SOON_S)


def _forms(running: Running, slots: Ints) -> Ints:
    tasks = running.tasks
    each = spans(tasks.first_task, slots)
    of_task = np.repeat(np.arange(len(slots)), np.diff(tasks.first_task)[slots])
    of_grant = np.repeat(of_task, np.diff(tasks.first_grant)[each])
    cpu = np.zeros(len(slots), np.int64)
    units = np.zeros(len(slots), np.int64)
    np.add.at(cpu, of_task, tasks.cpu[each])
    np.add.at(units, of_grant, tasks.units[spans(tasks.first_grant, each)])
    return form_of(cpu, units)
