"""Keeps the reservations of one cycle: begins with those promised, ends with new promises."""

from collections import Counter
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from atoll.core.engine.gangs import Outcome, gang_placer
from atoll.core.engine.limits import units_left
from atoll.core.engine.line import Lineup
from atoll.core.engine.masks import Masks
from atoll.core.engine.run_kernels import AT_LIMIT, NO_PLACE, WAITING
from atoll.core.engine.score_kernels import Scoring
from atoll.core.engine.timeline.reservations import Reservations, candidates, masks_of
from atoll.core.model.ids import ClusterName, JobId
from atoll.core.model.plan import Promise
from atoll.core.policies.time_order import AGEING
from atoll.core.state.snapshot import ClassView
from atoll.core.state.statement import Statement

MOST_SLIPPED: Final = 64
"""Classes that are tried in what is kept, in one cycle."""
MOST_FAILED: Final = 4
"""Blocked jobs in a row that have no known start before it is given up to find one."""


@dataclass(slots=True)
class Keeper:
    """Reservations of a cycle."""

    lineup: Lineup
    masks: Masks
    statement: Statement
    scoring: Scoring
    reservations: Reservations

    def begin(self) -> None:
        """Keep free what promised jobs need that cannot start yet; the others go first."""
        snapshot, line = self.lineup.snapshot, self.lineup.line
        if not snapshot.pace.promised:
            return
        heads = {
            int(line.job[line.next[group]]): group
            for group in range(len(snapshot.queue.classes))
            if line.next[group] < line.end[group]
        }
        for job in snapshot.pace.promised:
            group = heads.get(job)
            if group is None:
                continue
            found = self.reservations.find(snapshot, group, int(line.next[group]))
            if found is not None and found.promise.start > self.masks.now:
                line.state[group] = self._why(snapshot.queue.classes[group])
                self.reservations.hold(found)

    def slip_in(self, blocked: Iterable[int], charge: Callable[[int, int], bool]) -> None:
        """Start what ends before the place that it takes is needed; then nothing is kept any more.

        `charge`: takes a class's placement since a mark from its limits, or refuses.
        """
        if self.reservations.held:
            for group in [*blocked][:MOST_SLIPPED]:
                self._slip_in(group, charge)
            self.reservations.release()

    def promises(
        self, blocked: Iterable[int], *, without: Container[JobId], most: int
    ) -> tuple[Promise, ...]:
        """Reservations for the first blocked jobs, `most` in a cluster and one more for an aged.

        `without`: jobs for which capacity is held in another way.
        """
        snapshot, line = self.lineup.snapshot, self.lineup.line
        if not most or not _some_end(snapshot.running.runs.ends_at[snapshot.running.live]):
            return ()
        waiting = [(group, int(line.next[group])) for group in blocked]
        waiting = [each for each in waiting if JobId(int(line.job[each[1]])) not in without]
        cap_s = AGEING.cap * snapshot.pace.backlog_s if snapshot.pace.backlog_s else np.inf
        count: Counter[ClusterName] = Counter()
        failed = 0
        for group, job in candidates(snapshot, waiting, cap_s=cap_s):
            aged = snapshot.now - snapshot.queue.submitted_at[job] > cap_s
            if failed == MOST_FAILED or _full(count, most, len(snapshot.clusters)):
                break
            found = self.reservations.find(snapshot, group, job)
            if found is None:
                failed += 1
            elif count[found.promise.cluster] < most + aged:
                count[found.promise.cluster] += 1
                self.reservations.hold(found)
        promised = tuple(each.promise for each in self.reservations.held)
        self.reservations.release()
        return promised

    def _why(self, view: ClassView) -> int:
        need = sum(units for _, units in view.need.devices)
        left = units_left(view, self.lineup.snapshot, used=self.lineup.quota.used)
        return AT_LIMIT if need > left else NO_PLACE

    def _slip_in(self, group: int, charge: Callable[[int, int], bool]) -> None:
        snapshot, line = self.lineup.snapshot, self.lineup.line
        view = snapshot.queue.classes[group]
        lent = self.reservations.open_to(view, group)
        if not lent:
            return
        self.reservations.give(lent)
        while line.next[group] < line.end[group] and self._place(view, group, charge):
            line.next[group] += 1
        self.reservations.take(lent)
        if line.next[group] == line.end[group]:
            line.state[group] = WAITING

    def _place(self, view: ClassView, group: int, charge: Callable[[int, int], bool]) -> bool:
        mark, job = self.statement.checkpoint(), int(self.lineup.line.next[group])
        left = units_left(view, self.lineup.snapshot, used=self.lineup.quota.used)
        # What is kept comes and goes beside the statement, so nothing is known of rooms.
        gangs = gang_placer(
            self.lineup.snapshot, self.statement, self.scoring, gathers=self.reservations.gathers
        )
        where = masks_of(self.masks, view)
        if gangs.place(view, where, job=job, units_left=left) is not Outcome.PLACED:
            return False
        if not charge(group, mark):
            self.statement.rollback(mark)
            return False
        self.masks.note(view.request, self.statement.rows_since(mark))
        return True


def _some_end(ends: np.ndarray) -> bool:
    return bool(np.isfinite(ends).any())


def _full(count: Counter[ClusterName], most: int, clusters: int) -> bool:
    return sum(n >= most for n in count.values()) == clusters
