"""A certificate authority and passwords for development, made by a container that runs once.

Never for production: the authority's key lies beside what it signed. What is there is kept, so a
second run only adds certificates of new names.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import trustme

from atoll.adapters.system import SystemIds
from atoll.ports.clock import Ids

PASSWORD_BYTES: Final = 24
LOCAL: Final = ("localhost", "127.0.0.1", "::1")
OWNER_ONLY: Final = 0o600
GROUP_READS: Final = 0o640
ALL_READ: Final = 0o644


def main(arguments: Sequence[str]) -> int:
    """Fill a folder; prints the names of the files that are new."""
    parser = argparse.ArgumentParser(prog="dev-ca", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder to fill")
    parser.add_argument("--postgres", metavar="HOST:PORT", help="make a password and `dsn`")
    parser.add_argument("--redis", metavar="HOST:PORT", help="make a password and `redis-url`")
    parser.add_argument(
        "--give", metavar="NAME=FOLDER", action="append", default=[],
        help="copy what NAME needs for TLS to a folder of its own",
    )  # fmt: skip
    parser.add_argument("names", nargs="*", metavar="NAME", help="DNS names of servers and callers")
    given = parser.parse_args(arguments)
    folder = Folder(given.out)
    certify(folder, given.names)
    if given.postgres:
        postgres_access(folder, given.postgres, SystemIds())
    if given.redis:
        redis_access(folder, given.redis, SystemIds())
    for name, _, path in (pair.partition("=") for pair in given.give):
        give(folder, name, Folder(Path(path)))
    print(f"dev-ca: made {', '.join(folder.made) or 'nothing'}")  # noqa: T201 - the job's answer
    return 0


class Folder:
    """Files that are made when they are missing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.made: list[str] = []
        path.mkdir(parents=True, exist_ok=True)

    def has(self, name: str) -> bool:
        """Whether the file is there."""
        return (self._path / name).exists()

    def read(self, name: str) -> bytes:
        """The file's content."""
        return (self._path / name).read_bytes()

    def keep(self, name: str, make: Callable[[], str]) -> str:
        """The text of the file, made first if need be."""
        if not self.has(name):
            self.replace(name, make().encode())
        return self.read(name).decode()

    def replace(self, name: str, content: bytes, *, mode: int = GROUP_READS) -> None:
        """Write the file, never half of it."""
        draft = self._path / f".{name}.new"
        draft.touch(mode=OWNER_ONLY)
        draft.write_bytes(content)
        draft.chmod(mode)
        draft.rename(self._path / name)
        self.made.append(name)


def certify(folder: Folder, names: Sequence[str]) -> None:
    """`ca.pem`, and NAME.pem with NAME.key for every name, which serve and call."""
    authority = _authority(folder)
    for name in names:
        if not folder.has(f"{name}.pem"):
            made = authority.issue_cert(name, *LOCAL, common_name=name)
            chain = b"".join(blob.bytes() for blob in made.cert_chain_pems)
            # The certificate comes last: where it is, its key is.
            folder.replace(f"{name}.key", made.private_key_pem.bytes())
            folder.replace(f"{name}.pem", chain, mode=ALL_READ)


def give(folder: Folder, name: str, to: Folder) -> None:
    """Copy a certificate with its key, and the roots: for one who must not see the rest."""
    for file, mode in (
        ("ca.pem", ALL_READ),
        (f"{name}.key", GROUP_READS),
        (f"{name}.pem", ALL_READ),
    ):
        to.replace(file, folder.read(file), mode=mode)


def postgres_access(folder: Folder, address: str, ids: Ids) -> None:
    """`postgres-password` for the server, `dsn` for services."""
    password = folder.keep("postgres-password", lambda: ids.token(PASSWORD_BYTES))
    folder.keep("dsn", lambda: f"postgresql://atoll:{password}@{address}/atoll")


def redis_access(folder: Folder, address: str, ids: Ids) -> None:
    """`redis-auth.conf` for the server, `redis-url` for services."""
    password = folder.keep("redis-password", lambda: ids.token(PASSWORD_BYTES))
    folder.keep("redis-auth.conf", lambda: f"requirepass {password}\n")
    folder.keep("redis-url", lambda: f"redis://:{password}@{address}/0")


def _authority(folder: Folder) -> trustme.CA:
    if folder.has("ca.pem"):
        return trustme.CA.from_pem(folder.read("ca.pem"), folder.read("ca.key"))
    made = trustme.CA(organization_name="Atoll", organization_unit_name="development only")
    folder.replace("ca.key", made.private_key_pem.bytes(), mode=OWNER_ONLY)
    folder.replace("ca.pem", made.cert_pem.bytes(), mode=ALL_READ)
    return made
