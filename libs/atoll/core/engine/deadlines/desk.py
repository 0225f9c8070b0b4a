"""The books of all pools at one moment."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from atoll.core.engine.deadlines.book import Book
from atoll.core.engine.deadlines.pools import Held, Pool, Pools, whole_seconds
from atoll.core.engine.deadlines.quota import QuotaLeft
from atoll.core.engine.deadlines.terms import Answer
from atoll.core.engine.deadlines.wishes import Ask, book_job, book_jobs, cannot_promise
from atoll.core.model.deadline import Chance, Verdict
from atoll.core.model.ids import AttemptId, QueueName
from atoll.core.model.plan import Claim, GangRequest, RunFacts
from atoll.core.model.resources import ANY_KIND, BLOCKS_PER_DEVICE
from atoll.core.state.snapshot import Snapshot

NOTHING: Final[Mapping[AttemptId, "SizeFacts"]] = {}
NO_OTHERS: Final[Mapping[AttemptId, int]] = {}


@dataclass(frozen=True, slots=True)
class SizeFacts:
    """An attempt that has changed its size: how often, when last (unix), the work done by then."""

    generation: int
    since: float
    done: float


class Desk:
    """A book per pool, with what running work was promised; `now` in whole seconds."""

    def __init__(
        self,
        snapshot: Snapshot,
        now: int,
        sizes: Mapping[AttemptId, SizeFacts] = NOTHING,
        *,
        slack: int = 0,
        instead: Mapping[AttemptId, int] = NO_OTHERS,
    ) -> None:
        """`slack`: seconds by which running work may be late.

        `instead`: devices of attempts that have another size than in the snapshot from now on.
        """
        self._now, self._sizes, self._slack, self._instead = now, sizes, slack, instead
        self.late: list[Held] = []
        """Running work that cannot meet its deadline any more."""
        self._running: dict[int, Held] = {}
        self._queued: dict[int, tuple[Pool, QueueName]] = {}
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

    def keep(self, standing: Iterable[Ask]) -> list[tuple[Ask, Verdict]]:
        """Plan queued jobs that were promised their deadline, the earliest first.

        Those that cannot meet it any more, with what they could be told now.
        """
        order = sorted(standing, key=lambda ask: ask.deadline_at)
        told = [(ask, self.answer(ask)) for ask in order]
        return [each for each in told if each[1].chance is not Chance.GUARANTEED]

    def windows(self) -> Iterator[Claim]:
        """What queued jobs with a promise will hold, and when."""
        for number, (pool, queue) in sorted(self._queued.items()):
            for start, end, devices in self._books[pool].plan_of(number):
                if devices:
                    yield Claim(
                        id=f"deadline-{number}",
                        start=float(start),
                        end=float(end),
                        cluster=pool[0],
                        kind=pool[1],
                        blocks=devices * BLOCKS_PER_DEVICE,
                        queues=(queue,),
                    )

    def changes(self, asked: Container[str] = ()) -> Iterator[tuple[Held, int]]:
        """Running work that is to have another number of devices from now on, and that number.

        `asked`: device kinds that are not lent, for others wait for them; see `is_asked`.
        """
        for pool, book in self._books.items():
            if not is_asked(pool[1], asked):
                book.lend(self._now)
            for change in book.begin(self._now):
                held = self._running.get(change.job)
                if held is not None and change.devices and change.devices != held.devices:
                    yield held, change.devices

    def spare(self, pool: Pool, seconds: float) -> int:
        """Devices that may be lent for so long; what is promised to others is not."""
        book = self._books.get(pool)
        return book.spare(self._now, whole_seconds(self._now + seconds, up=True)) if book else 0

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
            self._queued[number] = pool, ask.queue
            return Verdict(Chance.GUARANTEED, float(told.earliest), pool[0])
        book.withdraw(number, self._now)
        why = "it would take its queue beyond its quota: only work inside quota is guaranteed"
        return Verdict(Chance.LIKELY, float(told.earliest), pool[0], why)

    def _restore(self, running: Iterable[Held]) -> None:
        for held in running:
            facts = held.holding.run
            if facts is None or held.pool not in self._books:
                continue
            self._restore_one(held, facts)
        for book in self._books.values():
            late = book.renew(self._now)
            self.late += [self._running[number] for number in late if number in self._running]

    def _restore_one(self, held: Held, run: RunFacts) -> None:
        holding, number = held.holding, self._next()
        tasks = len(holding.tasks)
        request = GangRequest((), terms=run.terms)
        ask = Ask(holding.queue, request, run.deadline_at + self._slack)
        job = book_job(ask, number, each=max(1, held.devices // tasks), tasks=tasks)
        size = self._sizes.get(holding.attempt)
        if size is not None:
            job = replace(job, work=max(0.0, job.work - size.done))
        since = whole_seconds(size.since if size else run.started_at, up=True)
        devices = self._instead.get(holding.attempt, held.devices)
        self._books[held.pool].restore(job, self._now, devices=devices, since=since)
        self._running[number] = held

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers


def is_asked(kind: str, asked: Container[str]) -> bool:
    """Whether devices of a kind are among those that are asked for; ANY_KIND stands for all."""
    return kind in asked or ANY_KIND in asked


_WHY: Final = {
    Chance.LIKELY: "what is promised to others, or runs, is in its way",
    Chance.CANNOT: "not even alone on all devices would it be done by then",
    Chance.GUARANTEED: "",
}
