"""Chooses what to run by the first argument."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn

from atoll.runtime.roles import kernels

SERVICES: Final = ("submission", "placement", "dispatch", "reservation", "burst", "agent")
USAGE_ERROR: Final = 2

Job = Callable[[Sequence[str]], int]


def main(arguments: Sequence[str]) -> int:
    """Become the service, or do the job; the exit code: that of the job, 2 for a wrong role."""
    role, *rest = arguments or ["--help"]
    if role in SERVICES:
        become(role, rest)
    if role in JOBS:
        return JOBS[role](rest)
    asked = role in {"-h", "--help", "help"}
    _say(usage() if asked else f"unknown role {role!r}\n\n{usage()}", failed=not asked)
    return 0 if asked else USAGE_ERROR


def become(service: str, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by the service."""
    environment = dict(os.environ)
    if service in {"placement", "reservation", "burst"}:
        environment |= kernels.environment()
    command = [sys.executable, "-m", f"atoll.{service}", *arguments]
    sys.stdout.flush()
    os.execve(sys.executable, command, environment)


def usage() -> str:
    """The roles, one a line."""
    width = max(map(len, JOBS))
    jobs = "\n".join(f"  {name:<{width}}  {_first_line(job)}" for name, job in JOBS.items())
    return f"usage: ROLE [ARGUMENTS]\n\nservices: {', '.join(SERVICES)}\n\njobs:\n{jobs}"


def _first_line(job: Job) -> str:
    return (job.__doc__ or "").partition(";")[0].partition("\n")[0].rstrip(".").lower()


def _say(text: str, *, failed: bool) -> None:
    print(text, file=sys.stderr if failed else sys.stdout)


def _migrate(arguments: Sequence[str]) -> int:
    """Bring the database to the newest schema; waits for the server."""
    from atoll.runtime.roles import schema

    return schema.migrate(arguments)


def _schema(arguments: Sequence[str]) -> int:
    """Wait until the schema is as new as this program."""
    from atoll.runtime.roles import schema

    return schema.wait(arguments)


def _dev_ca(arguments: Sequence[str]) -> int:
    """Make certificates and passwords for development; keeps those that are there."""
    from atoll.runtime.roles import dev_ca

    return dev_ca.main(arguments)


def _kernels(arguments: Sequence[str]) -> int:
    """Compile the scheduler's kernels into the image, or check that they are there."""
    return kernels.main(arguments)


def _probe(arguments: Sequence[str]) -> int:
    """Ask the service in this container whether it is ready."""
    from atoll.runtime.roles import probe

    return probe.main(arguments)


JOBS: Final[Mapping[str, Job]] = {
    "migrate": _migrate,
    "schema": _schema,
    "dev-ca": _dev_ca,
    "kernels": _kernels,
    "probe": _probe,
}
