"""What waiting for jobs needs beside the network: a deadline, and who is still awaited."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar

from atoll.client.errors import TimedOut
from atoll.client.views import JobInfo
from atoll.core.model.errors import ErrorCode, NotFound
from atoll.core.model.lifecycle import JobState
from atoll.ports.clock import Clock

SLICE_S: Final = 10.0
"""A watch is opened anew after it and the jobs are read again, so that no lost event matters."""
MOST_LISTED: Final = 1000

HandleT = TypeVar("HandleT", bound="Handle")


class Handle:
    """A job that was submitted or found. `info` is how it stood when it was last read."""

    def __init__(self, info: JobInfo) -> None:
        self.info = info

    @property
    def id(self) -> int:
        """The number that people type."""
        return self.info.id

    @property
    def name(self) -> str:
        """Its name."""
        return self.info.name

    @property
    def state(self) -> JobState:
        """State when it was last read."""
        return self.info.state

    @property
    def done(self) -> bool:
        """True once nothing more happens to it."""
        return self.info.done

    @property
    def exit_code(self) -> int | None:
        """Exit code, once it ended by itself."""
        return self.info.exit_code

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.name!r} {self.state.value}>"


class Deadline:
    """A time limit that starts now; None never ends."""

    def __init__(self, clock: Clock, timeout_s: float | None) -> None:
        self._clock = clock
        self._end = None if timeout_s is None else clock.monotonic() + timeout_s

    def slice_s(self) -> float:
        """Seconds to wait at once: a slice, or what is left; never less than a moment."""
        if self._end is None:
            return SLICE_S
        return max(0.001, min(SLICE_S, self._end - self._clock.monotonic()))

    def check(self, awaited: int) -> None:
        """Raise TimedOut when the time is over."""
        if self._end is not None and self._clock.monotonic() >= self._end:
            raise TimedOut(f"{awaited} of the jobs have not ended in time")


class Awaited(Generic[HandleT]):
    """The jobs that have not ended yet, by id."""

    def __init__(self, jobs: Iterable[HandleT]) -> None:
        self._jobs = {job.id: job for job in jobs}

    def __len__(self) -> int:
        return len(self._jobs)

    def ids(self, some: Collection[int] | None = None) -> tuple[int, ...]:
        """Ids, ascending: those among `some`, or all."""
        chosen = self._jobs if some is None else self._jobs.keys() & set(some)
        return tuple(sorted(chosen))

    def known_done(self) -> Iterator[HandleT]:
        """Take out those that had ended already when they were read last."""
        for job in [job for job in self._jobs.values() if job.done]:
            yield self._jobs.pop(job.id)

    def update(self, asked: Sequence[int], infos: Iterable[JobInfo]) -> Iterator[HandleT]:
        """Take in what was read of `asked`; those that have ended come out."""
        found = {info.id: info for info in infos}
        for job_id in asked:
            if (info := found.get(job_id)) is None:
                raise NotFound(f"no job {job_id}", code=ErrorCode.JOB_NOT_FOUND)
            job = self._jobs[job_id]
            job.info = info
            if info.done:
                yield self._jobs.pop(job_id)


def batches(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """As many ids as one list request takes, at a time."""
    for start in range(0, len(ids), MOST_LISTED):
        yield ids[start : start + MOST_LISTED]
