"""The admission answer for jobs with deadlines, from a snapshot and the promises that stand.

All promises that stand are planned first: those of running work where it
runs, those of queued jobs wherever they fit, by deadline. What is asked comes
last, so that it takes nothing from them.
"""

from collections.abc import Iterable, Sequence

from atoll.core.engine.deadlines.book import Book
from atoll.core.engine.deadlines.pools import Held, Pool, Pools, whole_seconds
from atoll.core.engine.deadlines.quota import QuotaLeft
from atoll.core.engine.deadlines.terms import Answer
from atoll.core.engine.deadlines.wishes import Ask, book_job, book_jobs, cannot_promise
from atoll.core.model.deadline import Chance, Verdict
from atoll.core.model.plan import GangRequest, RunFacts
from atoll.core.state.snapshot import Snapshot


def promise(
    snapshot: Snapshot, standing: Iterable[Ask], asks: Sequence[Ask], *, now: float
) -> list[Verdict]:
    """An answer for each of `asks`, in their order; those before it count as promised.

    `standing`: queued jobs that were promised their deadline. Running ones are in the snapshot.
    """
    desk = _Desk(snapshot, whole_seconds(now, up=True))
    for ask in sorted(standing, key=lambda ask: ask.deadline_at):
        desk.answer(ask)
    return [desk.answer(ask) for ask in asks]


class _Desk:
    """The books of all pools at one moment."""

    def __init__(self, snapshot: Snapshot, now: int) -> None:
        self._now = now
        self._quota = QuotaLeft(snapshot)
        self._numbers = 0
        pools = Pools(snapshot, now)
        slots, running = pools.promised()
        taken = pools.taken(without=slots)
        self._books = {
            pool: Book(devices, now, taken=taken.get(pool, ()))
            for pool, devices in sorted(pools.capacities().items())
        }
        self._restore(running)

    def answer(self, ask: Ask) -> Verdict:
        """Promise it if that can be."""
        if ask.deadline_at <= self._now:
            return Verdict(Chance.CANNOT, why="its deadline is over")
        why = cannot_promise(ask)
        if why:
            return Verdict(Chance.LIKELY, why=why)
        refused: list[tuple[int, Pool]] = []
        chance = Chance.CANNOT
        for pool, told in self._tried(ask):
            if told.chance is Chance.GUARANTEED:
                return self._granted(ask, pool, told)
            refused.append((told.earliest, pool))
            chance = Chance.LIKELY if told.chance is Chance.LIKELY else chance
        if not refused:
            return Verdict(Chance.LIKELY, why="no cluster has such devices just now")
        earliest, (cluster, _) = min(refused)
        return Verdict(chance, float(earliest), cluster, _WHY[chance])

    def _tried(self, ask: Ask) -> Iterable[tuple[Pool, Answer]]:
        for kind, job in book_jobs(ask, self._next()):
            for pool, book in self._books.items():
                if pool[1] == kind:
                    yield pool, book.admit(job, self._now)

    def _granted(self, ask: Ask, pool: Pool, told: Answer) -> Verdict:
        book, number = self._books[pool], self._numbers
        if self._quota.take(ask.queue, pool[1], book.most_of(number)):
            return Verdict(Chance.GUARANTEED, float(told.earliest), pool[0])
        book.withdraw(number, self._now)
        why = "it would take its queue beyond its quota: only work inside quota is guaranteed"
        return Verdict(Chance.LIKELY, float(told.earliest), pool[0], why)

    def _restore(self, running: Iterable[Held]) -> None:
        for held in running:
            facts = held.holding.run
            if facts is None or held.pool not in self._books:
                continue
            tasks = len(held.holding.tasks)
            each = max(1, held.devices // tasks)
            ask = Ask(held.holding.queue, GangRequest((), terms=facts.terms), facts.deadline_at)
            self._books[held.pool].restore(
                book_job(ask, self._next(), each=each, tasks=tasks),
                self._now,
                devices=held.devices,
                since=_since(facts),
            )
        for book in self._books.values():
            book.renew(self._now)

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers


_WHY = {
    Chance.LIKELY: "what is promised to others, or runs, is in its way",
    Chance.CANNOT: "not even alone on all devices would it be done by then",
    Chance.GUARANTEED: "",
}


def _since(facts: RunFacts) -> int:
    return whole_seconds(facts.started_at, up=True)
