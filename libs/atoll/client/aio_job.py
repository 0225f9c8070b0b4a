"""One job, for programs on an event loop."""

from collections.abc import AsyncIterator, Generator, Mapping
from typing import TYPE_CHECKING, Any, Self

from atoll.client.streams import ALL_RANKS
from atoll.client.views import Eta, Event, Explanation, JobInfo, LogChunk
from atoll.client.waiting import Handle

if TYPE_CHECKING:
    from atoll.client.aio import AsyncClient


class AsyncJob(Handle):
    """A job, and what can be done with it."""

    def __init__(self, client: "AsyncClient", info: JobInfo) -> None:
        super().__init__(info)
        self._client = client

    def __await__(self) -> Generator[Any, None, Self]:
        """Like wait(), without a time limit."""
        return self.wait().__await__()

    async def refresh(self) -> Self:
        """Read it again."""
        self.info = (await self._client.get(self.id)).info
        return self

    async def wait(self, timeout: float | None = None) -> Self:  # noqa: ASYNC109 - as in Client
        """Return when it has ended; TimedOut after `timeout` seconds. A failure is no error."""
        async for _ in self._client.as_completed([self], timeout):
            pass
        return self

    async def states(self) -> AsyncIterator[JobInfo]:
        """The job as it is now, and after every change, until it has ended."""
        async for info in self._client.states(self.id):
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
    ) -> AsyncIterator[LogChunk]:
        """Its output; see AsyncClient.logs."""
        return self._client.logs(
            self.id,
            follow=follow,
            rank=rank,
            attempt=attempt,
            tail_lines=tail_lines,
            resume=resume,
        )

    def watch(self, cursor: str = "") -> AsyncIterator[Event]:
        """Its events from now on, or after `cursor`."""
        return self._client.watch(cursor, job_ids=[self.id])

    async def cancel(self) -> Self:
        """End it, or ask its cluster to stop it."""
        (self.info,) = await self._client.cancel([self.id])
        return self

    async def hold(self) -> Self:
        """Keep it from being placed."""
        self.info = await self._client.hold(self.id)
        return self

    async def release(self) -> Self:
        """Let it be placed again."""
        self.info = await self._client.release(self.id)
        return self

    async def set_priority(self, priority: int) -> Self:
        """Change its priority; higher goes first."""
        self.info = await self._client.set_priority(self.id, priority)
        return self

    async def explain(self) -> Explanation:
        """Why it waits, or where it is."""
        return await self._client.explain(self.id)

    async def eta(self) -> Eta | None:
        """When it will start, while it is queued; None: nobody can tell (yet)."""
        wait = (await self._client.waits([self.id])).get(self.id)
        return wait.eta if wait is not None else None
