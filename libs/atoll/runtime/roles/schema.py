"""Migrations as a job, and services that wait for them."""

import argparse
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Final

import asyncpg

from atoll.adapters.postgres.migrate import is_current, newest, upgrade
from atoll.adapters.system import SystemClock
from atoll.ports.clock import Clock
from atoll.runtime import config
from atoll.runtime.settings import StoreSettings

AGAIN_S: Final = 1.0
FAILURES: Final = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)
USAGE_ERROR: Final = 2


def migrate(arguments: Sequence[str]) -> int:
    """Apply what is missing, as soon as the database answers; the exit code."""
    return _run("migrate", arguments, _upgraded)


def wait(arguments: Sequence[str]) -> int:
    """Return when the schema is as new as this program, or newer; the exit code."""
    return _run("schema", arguments, is_current)


def repeat(step: Callable[[], bool], clock: Clock, *, within_s: float) -> str:
    """Do a step until it succeeds; what was wrong at last, empty when nothing is."""
    until = clock.monotonic() + within_s
    while True:
        try:
            if step():
                return ""
            problem = "the schema is older than this program; has `migrate` run?"
        except FAILURES as error:
            problem = f"{type(error).__name__}: {error}"
        if clock.monotonic() >= until:
            return problem
        threading.Event().wait(AGAIN_S)


def _run(role: str, arguments: Sequence[str], step: Callable[[str], bool]) -> int:
    parser = argparse.ArgumentParser(prog=role, description="Takes ATOLL_DSN or ATOLL_DSN_FILE.")
    parser.add_argument("--within-s", type=float, default=300.0, help="give up after so long")
    within_s: float = parser.parse_args(arguments).within_s
    try:
        dsn = config.load(StoreSettings, role).settings.dsn.get_secret_value()
    except config.ConfigError as error:
        return _failed(role, str(error), USAGE_ERROR)
    if not dsn:
        return _failed(role, "ATOLL_DSN or ATOLL_DSN_FILE must name the database", USAGE_ERROR)
    if problem := repeat(lambda: step(dsn), SystemClock(), within_s=within_s):
        return _failed(role, problem, 1)
    print(f"{role}: the schema is at {newest()} or newer")  # noqa: T201 - the job's answer
    return 0


def _upgraded(dsn: str) -> bool:
    upgrade(dsn)
    return True


def _failed(role: str, problem: str, code: int) -> int:
    print(f"{role}: {problem}", file=sys.stderr)  # noqa: T201 - the job's answer
    return code
