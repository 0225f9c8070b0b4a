"""Where an embedded stack keeps what it has: one folder, in which each process has its own."""

import os
import pwd
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from atoll.client.endpoints import endpoints_file
from atoll.core.model.errors import ErrorCode, FailedPrecondition, FieldViolation, InvalidInput
from atoll.runtime.servers.account import outer_folder, server_account

MARK: Final = "atoll.folder"
ROOTS_BASE: Final = Path("/var/lib/atoll")
NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class WrongFolder(FailedPrecondition):
    """The data folder cannot be used for what is asked."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=ErrorCode.WRONG_STATE)


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of one stack; `make` creates the folders."""

    name: str
    data: Path

    @classmethod
    def of(cls, name: str, data_dir: Path | None) -> Self:
        """The stack `name`: in `data_dir`, else where it runs now, else in its default folder."""
        if not NAME.fullmatch(name):
            message = f"{name!r} is no name: use a-z, 0-9 and -, 63 characters at most"
            raise InvalidInput((FieldViolation("name", message),))
        if data_dir is not None:
            return cls(name, data_dir.expanduser().absolute())
        return cls(name, _remembered(name) or default_data_dir(name))

    def make(self) -> None:
        """Create the folders; raises WrongFolder when something else is in there already."""
        self._claim()
        outer_folder(self.data, server_account())
        for folder in (self.logs, self.agents, self.configs):
            folder.mkdir(mode=0o700, exist_ok=True)
        self.pointer.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.pointer.write_text(str(self.data))

    def forget(self) -> None:
        """Take back what tells others where the running stack is."""
        self.endpoints.unlink(missing_ok=True)
        self.pointer.unlink(missing_ok=True)

    @property
    def lock(self) -> Path:
        """Held by the supervisor, with its pid."""
        return self.data / "supervisor.pid"

    @property
    def report(self) -> Path:
        """What the supervisor tells."""
        return self.data / "report.json"

    @property
    def ports(self) -> Path:
        """The ports of last time."""
        return self.data / "ports.json"

    @property
    def clusters(self) -> Path:
        """The clusters that agents run for."""
        return self.data / "clusters.yaml"

    @property
    def logs(self) -> Path:
        """Logs of our own processes; servers keep theirs in their folders."""
        return self.data / "logs"

    @property
    def agents(self) -> Path:
        """A folder for each cluster's agent."""
        return self.data / "agents"

    @property
    def rented(self) -> Path:
        """A folder for each machine that is rented here, by provider."""
        return self.data / "rented"

    @property
    def join_secret(self) -> Path:
        """From it come the words with which rented agents join."""
        return self.data / "join-secret"

    @property
    def configs(self) -> Path:
        """Settings of our own processes, with passwords."""
        return self.data / "config"

    @property
    def endpoints(self) -> Path:
        """Where the client finds the addresses."""
        return endpoints_file(self.name)

    @property
    def pointer(self) -> Path:
        """Says where the data of the stack are while it runs."""
        return self.endpoints.with_name("data-dir")

    def server(self, name: str) -> Path:
        """The folder of a server."""
        return self.data / name

    def log(self, part: str) -> Path:
        """The log of one of our own processes."""
        return self.logs / f"{part}.log"

    def _claim(self) -> None:
        mark = self.data / MARK
        if self.data.exists() and not mark.exists() and any(self.data.iterdir()):
            raise WrongFolder(f"{self.data} holds other things; choose another --data-dir")
        self.data.mkdir(parents=True, exist_ok=True)
        mark.touch()


def default_data_dir(name: str) -> Path:
    """Below the user's state folder; for root below /var/lib.

    The servers run as nobody when root starts them, and root's home is closed to nobody.
    """
    chosen = {"ATOLL_STATE_DIR", "XDG_STATE_HOME"} & os.environ.keys()
    if os.geteuid() == 0 and not chosen:
        return ROOTS_BASE / name
    return endpoints_file(name).parent / "data"


def account_name() -> str:
    """The user that this process runs as."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _remembered(name: str) -> Path | None:
    try:
        return Path(endpoints_file(name).with_name("data-dir").read_text())
    except FileNotFoundError:
        return None
