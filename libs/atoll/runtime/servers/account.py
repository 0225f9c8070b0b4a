"""Whose account the servers run under, and which paths that account can reach.

PostgreSQL refuses to run as root, and the others have no need of root either:
started by root, all of them run as nobody.
"""

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from atoll.runtime.servers.errors import ServerError


@dataclass(frozen=True, slots=True)
class Account:
    """The user and group a server runs as."""

    name: str
    uid: int
    gid: int


def server_account() -> Account | None:
    """The account to change to, or None to stay who we are."""
    if os.geteuid() != 0:
        return None
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise ServerError("root needs a user named nobody to run the servers as") from None
    return Account(name=nobody.pw_name, uid=nobody.pw_uid, gid=nobody.pw_gid)


def own(path: Path, account: Account | None, mode: int) -> None:
    """Give `path` to the account, with the permissions `mode`."""
    if account is not None:
        os.chown(path, account.uid, account.gid)
    path.chmod(mode)


def outer_folder(path: Path, account: Account | None) -> None:
    """Make the folder around a server's own ones: ours, and the account may pass through.

    It stays ours because we write into it: in a folder of nobody's, any process of
    nobody could plant a link under the name that root is about to write.
    Raises ServerError naming the parent folder that is closed to the account.
    """
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700 if account is None else 0o711)
    closed = closed_parent(path, account)
    if closed is not None and account is not None:
        raise ServerError(
            f"{path} lies below {closed}, which is closed to the user {account.name} that runs "
            "the servers when root starts them; choose another data folder, for example below "
            f"/var/lib, or open that one with: chmod o+x {closed}"
        )


def inner_folder(path: Path, account: Account | None, mode: int = 0o700) -> None:
    """Make a folder that belongs to the server's account."""
    path.mkdir(exist_ok=True)
    own(path, account, mode)


def private_file(path: Path, text: str, account: Account | None) -> None:
    """Write a file that only the account can read; it is never readable by others meanwhile."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600, exist_ok=False)
    draft.write_text(text)
    own(draft, account, 0o600)
    draft.replace(path)


def closed_parent(path: Path, account: Account | None) -> Path | None:
    """The outermost parent of `path` that the account may not pass through, or None."""
    if account is None:
        return None
    parents = reversed(path.resolve().parents)
    return next((parent for parent in parents if not _passable(parent, account)), None)


def _passable(folder: Path, account: Account) -> bool:
    state = folder.stat()
    if state.st_uid == account.uid:
        return bool(state.st_mode & stat.S_IXUSR)
    if state.st_gid == account.gid:
        return bool(state.st_mode & stat.S_IXGRP)
    return bool(state.st_mode & stat.S_IXOTH)
