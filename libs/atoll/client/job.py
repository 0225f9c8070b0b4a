"""One job, for programs that wait."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Self

from atoll.client.streams import ALL_RANKS
from atoll.client.views import Eta, Event, Explanation, JobInfo, LogChunk
from atoll.client.waiting import Handle

if TYPE_CHECKING:
    from atoll.client.sync import Client


class Job(Handle):
    """A job, and what can be done with it."""

    def __init__(self, client: "Client", info: JobInfo) -> None:
        super().__init__(info)
        self._client = client

    def refresh(self) -> Self:
        """Read it again."""
        self.info = self._client.get(self.id).info
        return self

    def wait(self, timeout: float | None = None) -> Self:
        """Return when it has ended; TimedOut after `timeout` seconds. A failure is no error."""
        for _ in self._client.as_completed([self], timeout):
            pass
        return self

    def states(self) -> Iterator[JobInfo]:
        """The job as it is now, and after every change, until it has ended."""
        for info in self._client.states(self.id):
            self.info = info
            yield info

    def logs(
        self,
        *,
        follow: bool = False,
        rank: int = ALL_RANKS,
        attempt: int = 0,
        tail_lines: int = 0,
        resume: Mapping[int, int] | int | None = None,
    ) -> Iterator[LogChunk]:
        """Its output; see Client.logs."""
        return self._client.logs(
            self.id,
            follow=follow,
            rank=rank,
            attempt=attempt,
            tail_lines=tail_lines,
            resume=resume,
        )

    def watch(self, cursor: str = "") -> Iterator[Event]:
        """Its events from now on, or after `cursor`."""
        return self._client.watch(cursor, job_ids=[self.id])

    def cancel(self) -> Self:
        """End it, or ask its cluster to stop it."""
        (self.info,) = self._client.cancel([self.id])
        return self

    def hold(self) -> Self:
        """Keep it from being placed."""
        self.info = self._client.hold(self.id)
        return self

    def release(self) -> Self:
        """Let it be placed again."""
        self.info = self._client.release(self.id)
        return self

    def set_priority(self, priority: int) -> Self:
        """Change its priority; higher goes first."""
        self.info = self._client.set_priority(self.id, priority)
        return self

    def explain(self) -> Explanation:
        """Why it waits, or where it is."""
        return self._client.explain(self.id)

    def eta(self) -> Eta | None:
        """When it will start, while it is queued; None: nobody can tell (yet)."""
        wait = self._client.waits([self.id]).get(self.id)
        return wait.eta if wait is not None else None
