"""PostgreSQL, durable and sized for a small machine."""

import asyncio
import secrets
import shutil
import signal
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Final

from atoll.runtime.servers.account import (
    inner_folder,
    outer_folder,
    private_file,
)
from atoll.runtime.servers.errors import ServerError
from atoll.runtime.servers.process import clean_environment, command_line
from atoll.runtime.servers.programs import find_postgres, reachable
from atoll.runtime.servers.server import Server

USER: Final = "atoll"
DATABASE: Final = "atoll"
LONGEST_SOCKET_PATH: Final = 100
"""The kernel takes 107 bytes; the file's own name is in there too."""

SETTINGS: Final = {
    # An acknowledged commit survives everything but the disk.
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    # Two cores, many short transactions, bulk loads by COPY.
    "max_connections": "200",
    "shared_buffers": "256MB",
    "effective_cache_size": "1GB",
    "work_mem": "8MB",
    "maintenance_work_mem": "64MB",
    "wal_buffers": "16MB",
    "wal_compression": "on",
    "min_wal_size": "256MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "10min",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
    "random_page_cost": "1.1",
    # Queues are rows that die young.
    "autovacuum_naptime": "10s",
    "autovacuum_vacuum_scale_factor": "0.05",
    # No plan of ours hangs on fresh statistics, and a busy table would be sampled all the time.
    "autovacuum_analyze_threshold": "10000",
    "autovacuum_analyze_scale_factor": "0.5",
    "autovacuum_vacuum_cost_limit": "2000",
    # A client that vanished must not hold row locks.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "log_checkpoints": "off",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


class PostgresServer(Server):
    """One PostgreSQL instance with a superuser `atoll` and its generated password.

    `settings` are added to SETTINGS, or replace them, by name.
    """

    name: ClassVar[str] = "PostgreSQL"
    stop_signal: ClassVar[signal.Signals] = signal.SIGINT  # "fast": clients are cut off
    death_signal: ClassVar[signal.Signals] = signal.SIGQUIT  # SIGKILL would leak shared memory

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int | None = None,
        detached: bool = False,
        settings: dict[str, str] | None = None,
    ) -> None:
        super().__init__(data_dir, port=port, detached=detached)
        self._settings = SETTINGS | (settings or {})

    @property
    def dsn(self) -> str:
        """Where the services' database is, over TCP, password included."""
        return self.dsn_of(DATABASE)

    def dsn_of(self, database: str) -> str:
        """The same for another database of this server."""
        return f"postgresql://{USER}:{self._password()}@{self.host}:{self.port}/{database}"

    @property
    def socket_dir(self) -> Path | None:
        """The folder of the Unix socket, or None where the path is too long for one."""
        folder = self.data_dir / "run"
        return folder if len(bytes(folder)) + 18 <= LONGEST_SOCKET_PATH else None

    async def start(self) -> None:
        """Start it and see to it that the services' database exists."""
        await super().start()
        if not await self._query(f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'"):
            await self._query(f'CREATE DATABASE "{DATABASE}"')

    async def serves(self) -> bool:
        """Run a statement over TCP."""
        try:
            return await self._query("SELECT 1") == "1"
        except ServerError:
            return False

    async def _prepare(self) -> None:
        if self.socket_dir is not None:
            inner_folder(self.socket_dir, self._account, 0o711)
        if not self._store.exists():
            await self._initdb()

    def _command(self) -> tuple[str, ...]:
        return (str(self._postgres), "-D", self._marker(), *self._options())

    def _marker(self) -> str:
        return str(self._store)

    async def _initdb(self) -> None:
        """Fill a folder beside the final one, so that an interrupted try leaves nothing behind."""
        draft = self.data_dir / "data.new"
        shutil.rmtree(draft, ignore_errors=True)
        inner_folder(draft, self._account)
        private_file(self._password_file, secrets.token_urlsafe(24), self._account)
        initdb = (
            str(self._postgres.with_name("initdb")),
            f"--pgdata={draft}",
            f"--username={USER}",
            f"--pwfile={self._password_file}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--locale=C.UTF-8",
            "--no-instructions",
        )
        await self._run(*command_line(initdb, self._account, signal.SIGKILL))
        draft.rename(self._store)

    def _options(self) -> Iterator[str]:
        places = {
            "listen_addresses": self.host,
            "port": str(self.port),
            "unix_socket_directories": str(self.socket_dir or ""),
        }
        for key, text in (self._settings | places).items():
            yield from ("-c", f"{key}={text}")

    async def _query(self, statement: str) -> str:
        psql = str(self._postgres.with_name("psql"))
        quiet = ("--no-psqlrc", "--no-password", "--tuples-only", "--no-align")
        return await self._run(psql, *quiet, f"--command={statement}", self._admin_dsn())

    def _admin_dsn(self) -> str:
        """Without the password, which would show in the list of processes."""
        return f"postgresql://{USER}@{self.host}:{self.port}/postgres?connect_timeout=5"

    async def _run(self, *argv: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd="/",
            env=clean_environment() | {"PGPASSWORD": self._password()},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            told, failed = await process.communicate()
        except BaseException:
            process.kill()
            await process.wait()
            raise
        if process.returncode:
            raise ServerError(f"{Path(argv[0]).name}: {failed.decode(errors='replace').strip()}")
        return told.decode().strip()

    @property
    def _password_file(self) -> Path:
        return self.data_dir / "password"

    def _password(self) -> str:
        return self._password_file.read_text().strip()

    @cached_property
    def _postgres(self) -> Path:
        program = find_postgres()
        outer_folder(self.data_dir, self._account)
        return reachable(program, account=self._account, copies=self.data_dir / "programs")
