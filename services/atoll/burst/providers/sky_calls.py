"""Calls of SkyPilot's SDK off the event loop. The SDK is given, and untyped here."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from atoll.ports.provider import ProviderUnavailable

T = TypeVar("T")
THREADS: Final = 4
UNFINISHED: Final = frozenset({"PENDING", "WAITING", "RUNNING"})


@dataclass(frozen=True, slots=True)
class Records:
    """What SkyPilot says at a time."""

    clusters: Sequence[Any]
    requests: Mapping[str, str]
    """By cluster: `launch` or `down`, whichever is under way."""


class Calls:
    """The calls that are needed; all but `launch` and `result` raise ProviderUnavailable only."""

    def __init__(self, sky: Any, *, timeout_s: float) -> None:
        self._sky = sky
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="skypilot")

    async def alive(self) -> None:
        """Whether the API server answers."""
        await self._ask(lambda: self._sky.api_status(limit=1))

    def task(self, name: str, *, run: str, **resources: Any) -> Any:
        """A task for one node."""
        task = self._sky.Task(name=name, run=run)
        task.set_resources(self._sky.Resources(**resources))
        return task

    async def launch(self, task: Any, cluster: str) -> str:
        """The request's id; raises what SkyPilot raises."""
        return await self._off_loop(
            lambda: str(self._sky.launch(task, cluster_name=cluster, retry_until_up=False))
        )

    async def finished(self, request: str) -> bool:
        """Whether a request has ended, in whatever way."""
        found = await self._ask(lambda: self._sky.api_status([request], all_status=True))
        return all(_status(each) not in UNFINISHED for each in found)

    async def result(self, request: str) -> Any:
        """Of a finished request; raises what it failed with."""
        return await self._off_loop(lambda: self._sky.get(request))

    async def look(self, names: Sequence[str] | None) -> Records:
        """Clusters of these names (None: all), and what is under way."""
        # Requests first: a launch that ends in between is then among the clusters.
        under_way = await self._ask(lambda: self._sky.api_status(all_status=False))
        refresh = self._sky.StatusRefreshMode.AUTO
        clusters = await self._ask(
            lambda: self._sky.get(
                self._sky.status(None if names is None else list(names), refresh=refresh)
            )
        )
        return Records(clusters, dict(map(_what, filter(_matters, under_way))))

    async def ended(self, names: Iterable[str]) -> list[str]:
        """Those that the history knows, and that are no more."""
        wanted = set(names)
        history = await self._ask(lambda: self._sky.get(self._sky.cost_report()))
        gone = {field(each, "name") for each in history if field(each, "status") is None}
        return sorted(wanted & gone)

    async def down(self, name: str) -> None:
        """Begin to take a cluster down."""
        await self._ask(lambda: self._sky.down(name))

    def close(self) -> None:
        """Let the threads go."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, act: Callable[[], T]) -> T:
        try:
            return await self._off_loop(act)
        except ProviderUnavailable:
            raise
        except Exception as error:
            raise ProviderUnavailable(f"{type(error).__name__}: {error}") from error

    async def _off_loop(self, act: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await asyncio.get_running_loop().run_in_executor(self._threads, act)
        except TimeoutError as error:
            raise ProviderUnavailable(f"no answer within {self._timeout_s} s") from error


def field(record: Any, name: str) -> Any:
    """Of a dict or an object, as versions of the SDK differ; None: it has none."""
    if isinstance(record, Mapping):
        return record.get(name)
    return getattr(record, name, None)


def _matters(request: Any) -> bool:
    return bool(field(request, "cluster_name")) and _what(request)[1] in {"launch", "down"}


def _what(request: Any) -> tuple[str, str]:
    return str(field(request, "cluster_name")), str(field(request, "name")).removeprefix("sky.")


def _status(request: Any) -> str:
    status = field(request, "status")
    return str(getattr(status, "value", status))
