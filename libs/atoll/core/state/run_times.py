"""How long runs lasted, by queue and by what they held, and what that says of others.

Runs with a time limit are remembered by how they used it. Of those without one
only the past tells, and while there is none a round guess does.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import QueueName
from atoll.core.model.plan import TaskPlacement
from atoll.core.state.history_kernels import (
    TRUST,
    Expected,
    Floats,
    History,
    Ints,
    empty_history,
    expect_each,
    note,
)
from atoll.core.state.interning import Interner
from atoll.core.state.mig import grant_units
from atoll.core.state.needs import Need

REMEMBERED: Final = 64
"""Runs of a queue."""
GUESS_S: Final = 3600.0
"""Of a job without a time limit when nothing is known of any."""
_ENDLESS_S: Final = 1e9
"""Stands for the time limit of those that have none."""
_NOBODY: Final = QueueName("")
_WIDE: Final = 31


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that came to its own end; one that was stopped tells little."""

    queue: QueueName
    form: int
    """As `form_of` tells."""
    limit_s: float
    """0: none."""
    ran_s: float


@dataclass(frozen=True, slots=True, eq=False)
class RunTimesView:
    """Everything that is known at one moment."""

    number: dict[QueueName, int]
    """Of queues that are known; 0 is for all others."""
    limited: History
    endless: History

    def expected(self, owner: Ints, form: Ints, limit_s: Floats) -> Floats:
        """(J, 2) E[1 / run] in 1/s and E[run] in s of jobs by their queues' numbers."""
        found = np.empty((len(owner), 2))
        bounded = limit_s > 0
        known = self.endless.ratio_count[0] > 0
        request = np.where(bounded, limit_s, _ENDLESS_S if known else GUESS_S)
        for history, chosen in ((self.limited, bounded), (self.endless, ~bounded)):
            each = np.empty((int(chosen.sum()), 2))
            expect_each(history, owner[chosen], request[chosen], form[chosen], TRUST, each)
            found[chosen] = each
        return found

    def one(self, like: EndedRun) -> Expected:
        """The same of one job that is like a run, however long that ran."""
        owner, form = np.array([self.number.get(like.queue, 0)]), np.array([like.form])
        hurry, length = self.expected(owner, form, np.array([like.limit_s], np.float64))[0].tolist()
        return hurry, length

    def owners(self, queues: Iterable[QueueName]) -> Ints:
        """Numbers of queues."""
        return np.array([self.number.get(queue, 0) for queue in queues], np.int64)


class RunTimes:
    """Learns from runs as they end."""

    def __init__(self) -> None:
        self._owners: Interner[QueueName] = Interner()
        self._owners(_NOBODY)
        self._limited = empty_history(1, REMEMBERED)
        self._endless = empty_history(1, REMEMBERED)

    def note(self, runs: Iterable[EndedRun]) -> None:
        """Runs have ended, in the order in which they did."""
        for run in runs:
            owner = self._owners(run.queue)
            if owner >= len(self._limited.ended):
                self._limited, self._endless = _wider(self._limited), _wider(self._endless)
            history = self._limited if run.limit_s else self._endless
            note(history, owner, run.ran_s, run.limit_s or _ENDLESS_S, run.form)

    def view(self) -> RunTimesView:
        """What is known now; good until the next `note`, and not in another thread."""
        return RunTimesView(self._owners.number, self._limited, self._endless)

    def freeze(self) -> RunTimesView:
        """What is known now, for good."""
        limited = History._make(column.copy() for column in self._limited)
        endless = History._make(column.copy() for column in self._endless)
        return RunTimesView(dict(self._owners.number), limited, endless)


def ended_run(
    queue: QueueName, tasks: Sequence[TaskPlacement], *, limit_s: float, ran_s: float
) -> EndedRun:
    """A run by what its tasks held."""
    cpu = sum(task.cpu_milli for task in tasks)
    units = sum(grant_units(grant) for task in tasks for grant in task.devices)
    form = form_of(np.array([cpu]), np.array([units]))
    return EndedRun(queue, int(form[0]), limit_s, ran_s)


def job_like(queue: QueueName, need: Need, *, limit_s: float) -> EndedRun:
    """A job as a run that has not run, by what it asks for."""
    units = sum(units for _, units in need.devices)
    form = form_of(np.array([need.cpu_milli]), np.array([units]))
    return EndedRun(queue, int(form[0]), limit_s, 0.0)


def form_of(cpu_milli: Ints, units: Ints) -> Ints:
    """Equal for jobs that take the same in all. `units`: of devices, in 1/56 block."""
    form: NDArray[np.int64] = (units << _WIDE) ^ cpu_milli
    return form


def _wider(history: History) -> History:
    more = len(history.ended)
    return history._replace(
        run=np.pad(history.run, ((0, more), (0, 0))),
        request=np.pad(history.request, ((0, more), (0, 0))),
        size=np.pad(history.size, ((0, more), (0, 0))),
        ended=np.pad(history.ended, (0, more)),
    )
