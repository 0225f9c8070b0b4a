"""What the supervisor keeps alive: servers and services, behind one small interface."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

import psutil

from atoll.runtime.servers import Server, ServerError
from atoll.runtime.servers.process import Launch, Process, spawn

S = TypeVar("S", bound=Server)

ANSWER_WITHIN_S: Final = 2.0
POLL_S: Final = 0.1
TAIL_LINES: Final = 20
KILLED_WITHIN_S: Final = 10.0


class PartFailed(Exception):
    """A part did not come up; the message says why, `tail` is the end of its log."""

    def __init__(self, message: str, *, log: Path, tail: str) -> None:
        super().__init__(message)
        self.log = log
        self.tail = tail


class Part(Protocol):
    """A process that is to run from `up` to `down`."""

    @property
    def name(self) -> str:
        """Its name in tables and logs; no two parts share one."""
        ...

    @property
    def log(self) -> Path:
        """The file that it writes to."""
        ...

    @property
    def pid(self) -> int | None:
        """Its process, or None while there is none."""
        ...

    @property
    def address(self) -> str:
        """`host:port` for its clients; empty: none."""
        ...

    @property
    def metrics(self) -> str:
        """`host:port` of /readyz; empty: none."""
        ...

    async def start(self) -> None:
        """Start it and return when it serves; raises PartFailed, and nothing is left running."""
        ...

    def alive(self) -> bool:
        """Whether its process lives."""
        ...

    async def ready(self) -> bool:
        """Whether it answers and can serve."""
        ...

    async def end(self) -> None:
        """End it in good order, by force if it takes longer than its grace."""
        ...


class ServerPart(Generic[S]):
    """PostgreSQL, etcd or Valkey; made anew for every start, since its port may have to change."""

    metrics: str = ""

    def __init__(self, name: str, make: Callable[[], S]) -> None:
        self.name = name
        self._make = make
        self._tried = False
        self.server = make()

    @property
    def log(self) -> Path:
        """The file that it writes to."""
        return self.server.log

    @property
    def pid(self) -> int | None:
        """Its process, or None while there is none."""
        return self.server.pid if self.server.running() else None

    @property
    def address(self) -> str:
        """`host:port` for its clients."""
        return f"{self.server.host}:{self.server.port}"

    async def start(self) -> None:
        """Start it and return when it serves; raises PartFailed."""
        if self._tried:
            self.server = self._make()
        self._tried = True
        try:
            await self.server.start()
        except (ServerError, OSError) as error:
            first = str(error).splitlines()[0] if str(error) else repr(error)
            raise PartFailed(first, log=self.log, tail=self.server.log_tail()) from error

    def alive(self) -> bool:
        """Whether its process lives."""
        return self.server.running()

    async def ready(self) -> bool:
        """Whether it answers."""
        return self.alive() and await self.server.serves()

    async def end(self) -> None:
        """End it in good order, by force if that takes too long."""
        await self.server.stop()


@dataclass(frozen=True, slots=True)
class Service:
    """How to run one of our own services."""

    argv: tuple[str, ...]
    folder: Path
    """The working folder."""
    address: str
    """`host:port` for its clients; empty: none."""
    metrics: str
    """`host:port` of /readyz."""
    ready_within_s: float = 60.0
    grace_s: float = 15.0


class ServicePart:
    """One of our own services, as a process in a session of its own.

    The kernel kills it when the supervisor dies: nothing must run that nobody keeps.
    `make` is asked before every start, since ports may have to change.
    """

    def __init__(self, name: str, log: Path, make: Callable[[], Service]) -> None:
        self.name = name
        self.log = log
        self._make = make
        self._service: Service | None = None
        self._process: Process | None = None
        self._listening: int | None = None
        """The process that was seen to hold its port; looking for that is costly."""

    @property
    def pid(self) -> int | None:
        """Its process, or None while there is none."""
        return self._process.pid if self._process is not None and self.alive() else None

    @property
    def address(self) -> str:
        """`host:port` for its clients; empty: none."""
        return self._service.address if self._service is not None else ""

    @property
    def metrics(self) -> str:
        """`host:port` of /readyz; empty before the first start."""
        return self._service.metrics if self._service is not None else ""

    async def start(self) -> None:
        """Start it and return when it is ready; raises PartFailed."""
        begin = self.log.stat().st_size if self.log.exists() else 0
        self._service = service = self._make()
        try:
            self._process = spawn(self._launch(service))
            async with asyncio.timeout(service.ready_within_s):
                await self._until_ready(begin)
        except (OSError, ServerError) as error:  # a TimeoutError is an OSError
            await self._end_by_force()
            late = f"is not ready after {service.ready_within_s:.0f} s"
            why = late if isinstance(error, TimeoutError) else f"cannot be run: {error}"
            raise self._failed(why, begin) from error
        except BaseException:
            await self._end_by_force()
            raise

    def alive(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.alive()

    async def ready(self) -> bool:
        """Whether /readyz says 200, and it is this process that says so.

        Somebody else may have taken the port before ours could.
        """
        pid = self.pid
        answered = pid is not None and await http_ok(self.metrics, "/readyz")
        if not answered or not self.alive():
            return False
        if pid != self._listening and _listens(pid, self.metrics):
            self._listening = pid
        return pid == self._listening

    async def end(self) -> None:
        """SIGTERM, and SIGKILL for it and its children after its grace."""
        if self._process is None or self._service is None:
            return
        self._process.send_to_all(signal.SIGCONT)
        self._process.send(signal.SIGTERM)
        if not await self._process.ended(self._service.grace_s):
            await self._end_by_force()

    def _launch(self, service: Service) -> Launch:
        return Launch(
            argv=service.argv,
            folder=service.folder,
            log=self.log,
            account=None,
            death_signal=signal.SIGKILL,
        )

    async def _until_ready(self, begin: int) -> None:
        while not await self.ready():
            if not self.alive():
                raise self._failed("ended while starting", begin)
            await asyncio.sleep(POLL_S)

    async def _end_by_force(self) -> None:
        if self._process is not None:
            self._process.send_to_all(signal.SIGKILL)
            await self._process.ended(KILLED_WITHIN_S)

    def _failed(self, why: str, begin: int) -> PartFailed:
        return PartFailed(f"{self.name} {why}", log=self.log, tail=log_tail(self.log, begin))


def _listens(pid: int | None, address: str) -> bool:
    port = int(address.rpartition(":")[2])
    try:
        sockets = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return False
    return any(s.status == psutil.CONN_LISTEN and s.laddr.port == port for s in sockets)


def log_tail(log: Path, begin: int = 0) -> str:
    """The last lines of a log, not counting what was in its first `begin` bytes."""
    if not log.exists():
        return ""
    text = log.read_bytes()
    # A log that was cut short meanwhile has nothing old in it.
    fresh = text[begin:] if begin <= len(text) else text
    return "\n".join(fresh.decode(errors="replace").splitlines()[-TAIL_LINES:])


async def http_ok(address: str, path: str) -> bool:
    """Whether a GET over plain HTTP answers 200."""
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(ANSWER_WITHIN_S):
            reader, writer = await asyncio.open_connection(host, int(port))
            with contextlib.closing(writer):
                writer.write(f"GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
                return b" 200 " in await reader.readline()
    return False
