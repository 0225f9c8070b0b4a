"""The book of promises over one pool of devices: admission, plans, spare devices.

Every job in the book has a plan, and the plans together never hold more
devices than there are, now or later. So whoever was admitted meets its
deadline by its plan, and plans are only replaced by others that do as well.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from atoll.core.engine.deadlines.fill_kernels import NONE, Rows, draft
from atoll.core.engine.deadlines.plan_kernels import (
    CHEAPEST,
    KEEP,
    SMALLEST,
    earliest_end,
    make_plan,
    replan,
    settle_all,
)
from atoll.core.engine.deadlines.profile_kernels import (
    Profile,
    enlarged,
    forget,
    profile_of,
    step_at,
    take,
)
from atoll.core.engine.deadlines.run_kernels import due, next_time, through
from atoll.core.engine.deadlines.spare_kernels import grow
from atoll.core.engine.deadlines.table import Table
from atoll.core.engine.deadlines.terms import (
    FOR_EVER,
    Answer,
    BookPolicy,
    Chance,
    Change,
    DeadlineJob,
    Taken,
)

ATOLL: Final = BookPolicy(how=CHEAPEST)
"""Plans stay as they are unless a new job needs another; changes are paid for in the plan."""
ELASTICFLOW: Final = BookPolicy(how=SMALLEST, knee=1.0, reserve=0.0, replans=True)
"""Minimum satisfactory shares anew at each event, the rest to the largest gain (ASPLOS'23)."""


class Book:
    """Promises over `capacity` devices, of which others hold `taken`. Times are whole seconds."""

    def __init__(
        self,
        capacity: int,
        now: int = 0,
        *,
        policy: BookPolicy = ATOLL,
        taken: Iterable[Taken] = (),
    ) -> None:
        self.policy = policy
        self.table = Table()
        self._capacity, self._taken = capacity, tuple(taken)
        self._draft = draft()
        self._profile = self._empty(now)
        self._order = self.table.by_deadline()

    def admit(self, job: DeadlineJob, now: int, *, thorough: bool = True) -> Answer:
        """Promise the deadline if all promises can be kept; the job is in the book only then.

        `thorough`: others' plans are made anew when there is no room beside them as they are.
        """
        row = self._add(job, now)
        if make_plan(self._profile, self._rows, row, now, self.policy.how, self._draft):
            return self._admitted(row)
        if thorough and self._replanned(now):
            return self._admitted(row)
        answer = self._refusal(row, now)
        self.table.remove(job.id)
        return answer

    def finish(self, now: int) -> list[Change]:
        """Take out the jobs that are through by `now`."""
        done, ends = through(self._rows, self._order, now)
        changes = [
            Change(self.table.job(row).id, end, 0)
            for row, end in zip(done.tolist(), ends.tolist(), strict=True)
        ]
        for change in changes:
            self.table.remove(change.job)
        if changes:
            self._order = self.table.by_deadline()
        return changes

    def begin(self, now: int, *, charge: int | None = None) -> list[Change]:
        """Change the sizes that are due. `charge`: pause after a change, if not as planned."""
        changed = due(self._rows, self._order, now, -1 if charge is None else charge)
        return [Change(self.table.job(row).id, now, self._devices(row)) for row in changed.tolist()]

    def lend(self, now: int) -> None:
        """Let jobs be larger from `now` on where devices are spare."""
        forget(self._profile, now)
        free = int(self._profile.free[0])
        spare = free - int(self.policy.reserve * self._capacity)
        if spare <= 0 or not self._order.size:
            return
        rows = self._rows
        settle_all(rows, self._order, now)
        laxity = (rows.deadline - rows.end)[self._order]
        order = self._order[np.argsort(laxity, kind="stable")]
        grow(self._profile, rows, order, now, spare, self.policy.knee, self._draft)

    def renew(self, now: int) -> tuple[int, ...]:
        """Make all plans anew: jobs that cannot meet their deadline any more, and go on without."""
        rows = self._rows
        late: list[int] = []
        settle_all(rows, self._order, now)
        while True:
            self._profile = self._empty(now)
            planned = replan(self._profile, rows, self._order, now, self.policy.how, self._draft)
            if planned == self._order.size:
                return tuple(late)
            row = int(self._order[planned])
            late.append(self.table.job(row).id)
            rows.deadline[row] = now + FOR_EVER
            self._order = self.table.by_deadline()

    def next_time(self, now: int) -> int:
        """The first time after `now` at which a job ends or changes its size; else FOR_EVER."""
        return int(next_time(self._rows, self._order, now, FOR_EVER))

    def holds(self, job: int) -> bool:
        """Whether the job is in the book."""
        return job in self.table

    def free_at(self, time: int) -> int:
        """Devices that no plan and nobody else holds then."""
        return int(self._profile.free[step_at(self._profile, time)])

    @property
    def _rows(self) -> Rows:
        return self.table.rows

    def _add(self, job: DeadlineJob, now: int) -> int:
        row = self.table.add(job, now)
        if 2 * int(self._profile.steps[0]) > self._profile.times.size:
            forget(self._profile, now)
        if self._profile.times.size < self._room():
            self._profile = enlarged(self._profile, self._room())
        return row

    def _devices(self, row: int) -> int:
        at = int(self._rows.at[row])
        return 0 if at == NONE else int(self._rows.size[row, at])

    def _admitted(self, row: int) -> Answer:
        self._order = self.table.by_deadline()
        return Answer(Chance.GUARANTEED, int(self._rows.end[row]))

    def _replanned(self, now: int) -> bool:
        rows, order = self._rows, self.table.by_deadline()
        before = rows.steps.copy(), rows.step_from.copy(), rows.step_at.copy(), rows.end.copy()
        settle_all(rows, order, now)
        for how in (KEEP, self.policy.how):
            profile = self._empty(now)
            if replan(profile, rows, order, now, how, self._draft) == order.size:
                self._profile = profile
                return True
        rows.steps[:], rows.step_from[:], rows.step_at[:], rows.end[:] = before
        return False

    def _refusal(self, row: int, now: int) -> Answer:
        rows = self._rows
        limit = now + FOR_EVER
        alone = earliest_end(self._empty(now), rows, row, now, limit, self._draft)
        beside = earliest_end(self._profile, rows, row, now, limit, self._draft)
        chance = Chance.CANNOT if alone > rows.deadline[row] else Chance.LIKELY
        return Answer(chance, int(beside))

    def _empty(self, now: int) -> Profile:
        profile = profile_of(self._capacity, self._room(), origin=now)
        for part in self._taken:
            take(profile, max(now, part.start), part.end, part.devices)
        return profile

    def _room(self) -> int:
        return self.table.most_steps + 2 * len(self._taken) + 2
