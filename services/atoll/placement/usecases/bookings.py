"""Whom bookings are for, among jobs: by marks, of which only those matter that one names."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from atoll.core.model.booking import Owners, Window
from atoll.core.model.ids import JobId
from atoll.core.model.plan import PendingJob


@dataclass(slots=True)
class MarkBook:
    """Users and labels that bookings ask for; none is ever forgotten."""

    _asked: set[str] = field(default_factory=set)

    def ask(self, windows: Iterable[Window]) -> Owners:
        """Take in windows; users and labels that none before them named."""
        users, labels = set[str](), set[tuple[str, str]]()
        for owners in {window.owners for window in windows}:
            new = [mark for mark in owners.marks if mark not in self._asked]
            if new:
                self._asked.update(new)
                users.update(owners.users)
                labels.update(owners.labels)
        return Owners(users=tuple(sorted(users)), labels=tuple(sorted(labels)))

    def marked(self, job: PendingJob, marks: tuple[str, ...]) -> PendingJob:
        """A job with those of its marks that somebody asks for."""
        asked = self.asked(marks)
        return replace(job, request=replace(job.request, marks=asked)) if asked else job

    def asked(self, marks: tuple[str, ...]) -> tuple[str, ...]:
        """Those of some marks that somebody asks for."""
        return tuple(mark for mark in marks if mark in self._asked) if self._asked else ()

    def of(self, marks: Mapping[JobId, tuple[str, ...]]) -> dict[JobId, tuple[str, ...]]:
        """Those that somebody asks for, by job."""
        return {job: self.asked(each) for job, each in marks.items()}
