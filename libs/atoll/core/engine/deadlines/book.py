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
    book,
    earliest_end,
    make_plan,
    replan,
    settle,
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
    Change,
    DeadlineJob,
    Taken,
)
from atoll.core.model.deadline import Chance

ATOLL: Final = BookPolicy(how=CHEAPEST)
"""Plans stay as they are unless a new job needs another; changes are paid for in the plan."""
ELASTICFLOW: Final = BookPolicy(how=SMALLEST, knee=0.0, reserve=0.0, replans=True)
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

    def restore(self, job: DeadlineJob, now: int, *, devices: int = 0, since: int = 0) -> None:
        """Enter a job that was promised its deadline before; `renew` gives it its plan.

        `devices`: how many it has held since `since`; 0: it has not started.
        """
        row = self._add(job, now)
        rows = self._rows
        if devices:
            fitting = [i for i, (size, _) in enumerate(job.sizes) if size <= devices]
            rows.at[row] = fitting[-1] if fitting else 0
            rows.seen[row], rows.idle[row] = since, since + job.cost
            rows.lock[row] = since + rows.hold[row]
            settle(rows, row, now)
        self._order = self.table.by_deadline()

    def withdraw(self, job: int, now: int) -> None:
        """Take a job out, and what it was to hold back."""
        row = self.table.row(job)
        book(self._profile, self._rows, row, now, -1)
        self.table.remove(job)
        self._order = self.table.by_deadline()

    def most_of(self, job: int) -> int:
        """The most devices that the job's plan has at a time."""
        rows, row = self._rows, self.table.row(job)
        at = rows.step_at[row, : rows.steps[row]]
        return int(rows.size[row, at[at != NONE]].max(initial=0))

    def plan_of(self, job: int) -> list[tuple[int, int, int]]:
        """(start, end, devices) of each step of the job's plan."""
        rows, row = self._rows, self.table.row(job)
        steps = int(rows.steps[row])
        starts = rows.step_from[row, :steps].tolist()
        sizes = [int(rows.size[row, at]) if at != NONE else 0 for at in rows.step_at[row, :steps]]
        return list(zip(starts, [*starts[1:], int(rows.end[row])], sizes, strict=True))

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
        """Make all plans anew: jobs that cannot meet their deadline any more.

        They go on without one, behind all others; one that there will never be room for is out.
        """
        rows = self._rows
        late: list[int] = []
        if self._replanned(now):
            return ()
        settle_all(rows, self._order, now)
        while True:
            self._profile = self._empty(now)
            planned = replan(self._profile, rows, self._order, now, self.policy.how, self._draft)
            if planned == self._order.size:
                return tuple(late)
            row = int(self._order[planned])
            job = self.table.job(row)
            if job.id in late:
                self.table.remove(job.id)
            else:
                late.append(job.id)
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

    def spare(self, now: int, until: int) -> int:
        """Devices that may be lent from `now` to `until`: no plan and nobody else has them."""
        times, free = self._profile.times, self._profile.free
        steps = int(self._profile.steps[0])
        first, end = step_at(self._profile, now), int(np.searchsorted(times[:steps], until))
        least = int(free[first : max(end, first + 1)].min())
        return least - int(self.policy.reserve * self._capacity)

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
        for how in (self.policy.how,) if self.policy.replans else (KEEP, self.policy.how):
            profile = self._empty(now)
            if replan(profile, rows, order, now, how, self._draft) == order.size:
                self._profile = profile
                return True
        rows.steps[:], rows.step_from[:], rows.step_at[:], rows.end[:] = before
        return False

    def _refusal(self, row: int, now: int) -> Answer:
        rows = self._rows
        limit = now + FOR_EVER
        empty = profile_of(self._capacity, self._room(), origin=now)
        alone = earliest_end(empty, rows, row, now, limit, self._draft)
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
