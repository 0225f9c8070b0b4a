"""Makes agents' reports true: one transaction for many sessions.

Whatever happens to a report it is dealt with once: `report_seq` moves past it in
the transaction that applies or refuses it, so the whole batch may be done again
when nobody knows whether the last try was committed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from atoll.core.model.errors import StaleSession
from atoll.core.model.ids import AttemptId, ClusterName, job_of
from atoll.core.model.inventory import Cluster
from atoll.core.model.lifecycle import AttemptEvent, JobState
from atoll.core.model.messages import ChangeKind, Report
from atoll.dispatch.usecases.fold import Fold, Split, attempts_in, split, to_stop
from atoll.dispatch.usecases.observer import BatchKind, Observer, Settled
from atoll.dispatch.usecases.session import Session
from atoll.ports.store.common import Change
from atoll.ports.store.dispatch import DispatchStore, DispatchTx
from atoll.ports.topics import EVENTS, PLACEMENT

FREES: Final = frozenset({
    AttemptEvent.FINISHED,
    AttemptEvent.STOPPED,
    AttemptEvent.REJECTED,
    AttemptEvent.RESIZED,
})
"""Reports after which capacity may be free."""

UNDER_WAY: Final = frozenset({JobState.ASSIGNED, JobState.RUNNING})


@dataclass(frozen=True, slots=True)
class Reported:
    """Reports of a session, ascending, as they came in."""

    session: Session
    reports: tuple[Report, ...]
    since: float
    """Wall time at which they came."""


@dataclass(slots=True)
class _Answer:
    report_seq: int
    stop: set[AttemptId]


class Reports:
    """Applies reports by the lifecycle's tables."""

    def __init__(
        self, store: DispatchStore, *, wake: Callable[[str], None], observer: Observer
    ) -> None:
        self._store = store
        self._wake = wake
        self._observer = observer

    async def apply(self, batch: Sequence[Reported]) -> None:
        """Apply a batch and answer its sessions; sessions that were taken over end.

        Raises Unavailable when nothing was answered: the same batch may be given again.
        """
        by_session = _by_session(batch)
        if not by_session:
            return
        async with self._store.begin() as tx:
            rows = await tx.lock_sessions(sorted(s.cluster for s in by_session))
            held = {s: r for s, r in by_session.items() if _holds(s, rows)}
            parts = {s.cluster: split(r, rows[s.cluster].report_seq) for s, r in held.items()}
            fold = await _folded(tx, parts)
            answers = {c: _answer(rows[c], part, fold) for c, part in parts.items()}
            await tx.set_report_seqs([(c, a.report_seq) for c, a in sorted(answers.items())])
            await _write(tx, fold)
        for session in by_session:
            if session in held:
                answer = answers[session.cluster]
                session.outbox.reports_ack(answer.report_seq, answer.stop)
            else:
                session.end(StaleSession())
        self._tell(batch, fold)

    def _tell(self, batch: Sequence[Reported], fold: Fold) -> None:
        self._observer.batch(BatchKind.REPORTS, len(fold.applied) + len(fold.refused))
        since = {id(report): each.since for each in batch for report in each.reports}
        self._observer.applied(_settled(fold.applied, fold, since))
        self._observer.accepted(fold.accepted())
        self._observer.refused(_settled(fold.refused, fold, since))
        # Repeated ones too: they may be repeated because the answer to the COMMIT was lost.
        if any(report.event in FREES for each in batch for report in each.reports):
            self._wake(PLACEMENT)
        if fold.events:
            self._wake(EVENTS)


def _by_session(batch: Iterable[Reported]) -> dict[Session, list[Report]]:
    reports: dict[Session, list[Report]] = {}
    for each in batch:
        if each.session.open:
            reports.setdefault(each.session, []).extend(each.reports)
    return reports


def _holds(session: Session, rows: Mapping[ClusterName, Cluster]) -> bool:
    row = rows.get(session.cluster)
    return row is not None and row.session_epoch == session.epoch


async def _folded(tx: DispatchTx, parts: Mapping[ClusterName, Split]) -> Fold:
    attempts = attempts_in(parts)
    jobs = await tx.lock_jobs(sorted({job_of(attempt) for attempt in attempts}))
    rows = await tx.lock_attempts(sorted(attempts))
    fold = Fold(jobs, rows, await tx.now())
    for cluster in sorted(parts):
        fold.take(parts[cluster].fresh)
    return fold


def _answer(row: Cluster, part: Split, fold: Fold) -> _Answer:
    seq = part.fresh[-1].number if part.fresh else row.report_seq
    return _Answer(seq, to_stop(part, fold, row.name))


async def _write(tx: DispatchTx, fold: Fold) -> None:
    attempts = sorted(fold.moved)
    jobs = sorted({job_of(attempt) for attempt in attempts})
    if not attempts:
        return
    await tx.update_jobs([fold.jobs[job] for job in jobs])
    await tx.update_attempts([fold.attempts[attempt] for attempt in attempts])
    await tx.set_tasks(fold.resized())
    await tx.end_allocations(fold.ended())
    await tx.note_rejections([r for r in fold.applied if r.event is AttemptEvent.REJECTED])
    await tx.add_events(fold.events)
    # A leader need not read jobs again that have only come further on where it put them.
    await tx.changed([
        Change(ChangeKind.JOBS, ids=tuple(j for j in jobs if fold.jobs[j].state not in UNDER_WAY)),
        Change(ChangeKind.ATTEMPTS, ids=tuple(attempts)),
    ])


def _settled(reports: Iterable[Report], fold: Fold, since: Mapping[int, float]) -> list[Settled]:
    return [Settled(r, fold.jobs.get(job_of(r.attempt)), since[id(r)]) for r in reports]
