"""Valkey, which speaks Redis' protocol: streams of decisions and hints."""

import asyncio
import contextlib
import secrets
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Final

from atoll.runtime.servers.account import inner_folder, private_file
from atoll.runtime.servers.programs import find_valkey, reachable
from atoll.runtime.servers.server import Server

ANSWER_WITHIN_S: Final = 2.0

CONFIGURATION: Final = """\
bind {host}
port {port}
requirepass {password}
dir {store}
protected-mode yes
daemonize no
# The command line is how a later process recognises this one.
set-proc-title no
loglevel warning
# Losing all of it costs latency only: a second of writes may go with the machine.
appendonly yes
appendfsync everysec
save ""
# Full means refused, never silently dropped.
maxmemory 512mb
maxmemory-policy noeviction
"""


class ValkeyServer(Server):
    """One Valkey instance with a generated password."""

    name: ClassVar[str] = "Valkey"

    @property
    def url(self) -> str:
        """Where it is, as Redis clients take it, password included."""
        return f"redis://:{self._password()}@{self.host}:{self.port}/0"

    async def serves(self) -> bool:
        """PING by hand; while it loads its data it answers -LOADING."""
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(ANSWER_WITHIN_S):
                reader, writer = await asyncio.open_connection(self.host, self.port)
                with contextlib.closing(writer):
                    writer.write(f"AUTH {self._password()}\r\nPING\r\n".encode())
                    answers = [await reader.readline(), await reader.readline()]
                    return answers == [b"+OK\r\n", b"+PONG\r\n"]
        return False

    async def _prepare(self) -> None:
        inner_folder(self._store, self._account)
        if not self._password_file.exists():
            private_file(self._password_file, secrets.token_urlsafe(24), self._account)
        text = CONFIGURATION.format(
            host=self.host, port=self.port, password=self._password(), store=self._store
        )
        private_file(self._configuration, text, self._account)

    def _command(self) -> tuple[str, ...]:
        return (str(self._valkey), self._marker())

    def _marker(self) -> str:
        return str(self._configuration)

    @property
    def _configuration(self) -> Path:
        return self.data_dir / "valkey.conf"

    @property
    def _password_file(self) -> Path:
        return self.data_dir / "password"

    def _password(self) -> str:
        return self._password_file.read_text().strip()

    @cached_property
    def _valkey(self) -> Path:
        program = find_valkey()
        return reachable(program, account=self._account, copies=self.data_dir / "programs")
