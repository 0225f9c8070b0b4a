"""The life of one server: start, prove it ready, stop, and the faults that tests inflict."""

import asyncio
import json
import signal
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from atoll.runtime.servers.account import outer_folder, server_account
from atoll.runtime.servers.errors import ServerError
from atoll.runtime.servers.ports import LOOPBACK, free_ports, is_free
from atoll.runtime.servers.process import Launch, Process, find, spawn

READY_WITHIN_S: Final = 60.0
STOPPED_WITHIN_S: Final = 30.0
PROBE_EVERY_S: Final = 0.05
START_TRIES: Final = 3
KEPT_LOG_BYTES: Final = 8 << 20
TAIL_LINES: Final = 20


class Server(ABC):
    """A server in a folder of its own, which keeps its data, log, pid and ports.

    `detached` servers live on after this process, and a later one finds them by their
    pid file; others are killed by the kernel when the thread that started them dies
    (on Linux), so start those from a thread that lasts.
    """

    name: ClassVar[str]
    port_count: ClassVar[int] = 1
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    death_signal: ClassVar[signal.Signals] = signal.SIGKILL

    def __init__(self, data_dir: Path, *, port: int | None = None, detached: bool = False) -> None:
        self.data_dir = data_dir.absolute()
        self.host: str = LOOPBACK
        self._asked_port = port
        self._detached = detached
        self._account = server_account()
        self._ports: tuple[int, ...] = ()
        self._process: Process | None = None

    @property
    def port(self) -> int:
        """The port that clients use; the same over restarts unless another took it."""
        return self._known_ports()[0]

    @property
    def pid(self) -> int:
        """The server's process; raises ServerError when it does not run."""
        return self._running().pid

    @property
    def _store(self) -> Path:
        return self.data_dir / "data"

    @property
    def log(self) -> Path:
        """What the server writes about itself."""
        return self.data_dir / "log"

    def running(self) -> bool:
        """Whether the process lives, be it paused."""
        return self._find() is not None

    @abstractmethod
    async def serves(self) -> bool:
        """Ask it something that only a working server answers; it was started at least once."""

    async def start(self) -> None:
        """Start it, or find it running, and return when it serves.

        Raises ServerError with the end of its log.
        """
        if self._find() is None:
            await self._start_afresh()
        else:
            await self._until_ready()

    async def stop(self) -> None:
        """End it in good order, by force if that takes too long; nothing if it does not run."""
        process = self._find()
        if process is None:
            return
        process.send_to_all(signal.SIGCONT)
        process.send(self.stop_signal)
        if not await process.ended(STOPPED_WITHIN_S):
            self.kill()
        self._process = None

    async def restart(self) -> None:
        """Stop and start it on the same data."""
        await self.stop()
        await self.start()

    def kill(self) -> None:
        """SIGKILL it and all its children, as a crash would."""
        process = self._running()
        process.send_to_all(signal.SIGKILL)
        process.wait_killed(STOPPED_WITHIN_S)
        self._process = None

    def pause(self) -> None:
        """SIGSTOP it and all its children: connections stay open and nothing answers."""
        self._running().send_to_all(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT it and all its children."""
        self._running().send_to_all(signal.SIGCONT)

    def log_tail(self) -> str:
        """The last lines of the log."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:])

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @abstractmethod
    async def _prepare(self) -> None:
        """Bring the folder into the state that the command line expects."""

    @abstractmethod
    def _command(self) -> tuple[str, ...]:
        """The command line; `_marker` is one of its arguments."""

    @abstractmethod
    def _marker(self) -> str:
        """An argument that no other process has."""

    async def _start_afresh(self) -> None:
        outer_folder(self.data_dir, self._account)
        for tries_left in reversed(range(START_TRIES)):
            self._choose_ports()
            try:
                await self._prepare()
                await self._launch()
                return
            except ServerError:
                taken = not all(is_free(port) for port in self._ports)
                if self._asked_port is not None or not taken or not tries_left:
                    raise
                self._ports = ()

    async def _launch(self) -> None:
        self._bound_log()
        process = self._process = spawn(
            Launch(
                argv=self._command(),
                folder=self._store,
                log=self.log,
                account=self._account,
                death_signal=None if self._detached else self.death_signal,
            )
        )
        try:
            self._remember(process.pid)
            await self._until_ready()
        except BaseException:
            process.send_to_all(signal.SIGKILL)
            raise

    async def _until_ready(self) -> None:
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                while not await self.serves():
                    if self._find() is None:
                        raise ServerError(f"{self.name} ended while starting:\n{self.log_tail()}")
                    await asyncio.sleep(PROBE_EVERY_S)
        except TimeoutError:
            raise ServerError(
                f"{self.name} does not answer after {READY_WITHIN_S:.0f} s:\n{self.log_tail()}"
            ) from None
        # Somebody else's server may have answered on a port that ours could not get.
        if self._find() is None:
            raise ServerError(f"{self.name} ended while starting:\n{self.log_tail()}")

    def _running(self) -> Process:
        process = self._find()
        if process is None:
            raise ServerError(f"{self.name} in {self.data_dir} does not run")
        return process

    def _find(self) -> Process | None:
        """Our child, or the process that an earlier one of us left behind."""
        if self._process is None and (pid := self._state().get("pid")):
            self._process = find(pid, self._marker())
        if self._process is not None and not self._process.alive():
            self._process = None
        return self._process

    def _choose_ports(self) -> None:
        """Those of last time if they are free, so that clients find a restarted server."""
        known = self._ports or tuple(self._state().get("ports", ()))
        if known and self._asked_port in {None, known[0]} and all(map(is_free, known)):
            self._ports = known
            return
        free = free_ports(self.port_count)
        self._ports = free if self._asked_port is None else (self._asked_port, *free[1:])

    def _known_ports(self) -> tuple[int, ...]:
        if not self._ports:
            self._ports = tuple(self._state().get("ports", ()))
        if not self._ports:
            raise ServerError(f"{self.name} in {self.data_dir} has never been started")
        return self._ports

    @property
    def _state_file(self) -> Path:
        return self.data_dir / "server.json"

    def _state(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self._state_file.read_text()))
        except (FileNotFoundError, ValueError):
            return {}

    def _remember(self, pid: int) -> None:
        state = {"pid": pid, "ports": list(self._ports)}
        draft = self._state_file.with_suffix(".new")
        draft.write_text(json.dumps(state))
        draft.replace(self._state_file)

    def _bound_log(self) -> None:
        """Keep one old log beside the present one."""
        if self.log.exists() and self.log.stat().st_size > KEPT_LOG_BYTES:
            self.log.replace(self.log.with_suffix(".old"))
