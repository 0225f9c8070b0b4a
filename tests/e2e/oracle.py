"""Joins what clients were told, what rows say and what really ran: nothing lost, nothing twice."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import asyncpg

from atoll.core.model.lifecycle import TERMINAL_JOB
from tests.e2e.stack import Stack


@dataclass(frozen=True)
class Run:
    """One real run, as a simulated cluster's own ledger has it."""

    cluster: str
    attempt: int
    job: int
    begun: float
    ended: float | None
    how: str | None
    partial: bool


def runs_of(stack: Stack) -> list[Run]:
    """All runs of all clusters; fails on a violation that a cluster saw by itself."""
    found: list[Run] = []
    for cluster in stack.agents:
        entries = stack.ledger(cluster)
        assert not [e for e in entries if e["t"] == "violation"]
        found += _runs(cluster, entries)
    return found


def check_runs(runs: Iterable[Run]) -> None:
    """An attempt starts once, and a job's runs never overlap, wherever they are."""
    by_attempt: dict[int, list[Run]] = defaultdict(list)
    by_job: dict[int, list[Run]] = defaultdict(list)
    for run in runs:
        by_attempt[run.attempt].append(run)
        by_job[run.job].append(run)
    twice = [runs for runs in by_attempt.values() if sum(not r.partial for r in runs) > 1]
    assert not twice, twice
    for job in by_job.values():
        job.sort(key=lambda run: run.begun)
        for before, after in pairwise(job):
            assert before.ended is not None, (before, after)
            assert before.ended <= after.begun, (before, after)


async def check(stack: Stack, acknowledged: Iterable[int]) -> list[Run]:
    """Everything that must hold once all is quiet. Returns the runs."""
    runs = runs_of(stack)
    check_runs(runs)
    connection = await asyncpg.connect(stack.dsn)
    try:
        await _check_rows(connection, list(acknowledged), runs)
    finally:
        await connection.close()
    return runs


async def _check_rows(
    connection: asyncpg.Connection, acknowledged: list[int], runs: list[Run]
) -> None:
    rows = await connection.fetch(
        "SELECT id, state::text FROM jobs WHERE id = ANY($1::bigint[])", acknowledged
    )
    states = {row["id"]: row["state"] for row in rows}
    assert set(states) == set(acknowledged), "an acknowledged job is lost"
    assert {s for s in states.values() if s not in TERMINAL_JOB} == set(), states
    finished = {run.job for run in runs if run.how == "FINISHED"}
    missing = [job for job, state in states.items() if state == "SUCCEEDED" and job not in finished]
    assert not missing, f"succeeded without a run: {missing}"
    assert await connection.fetchval("SELECT count(*) FROM allocations") == 0
    await _check_numbers(connection)


LATE = (
    "SELECT count(*) FROM (SELECT epoch < lag(epoch) OVER (PARTITION BY cluster ORDER BY number)"
    " AS late FROM (SELECT cluster, number, ARRAY[epoch_generation, epoch_revision] AS epoch"
    " FROM decisions) AS made) AS steps WHERE late"
)


async def _check_numbers(connection: asyncpg.Connection) -> None:
    """Decision numbers are dense per cluster, and no leader decides after its successor."""
    assert await connection.fetchval(LATE) == 0
    rows = await connection.fetch(
        "SELECT cluster, count(*) AS n, min(number) AS low, max(number) AS high"
        " FROM decisions GROUP BY cluster"
    )
    for row in rows:
        assert row["n"] == row["high"] - row["low"] + 1, dict(row)
        assert row["low"] == 1, dict(row)


def _runs(cluster: str, entries: list[dict[str, Any]]) -> Iterable[Run]:
    open_runs: dict[int, dict[str, Any]] = {}
    for entry in entries:
        if entry["t"] == "start":
            open_runs[entry["attempt"]] = entry
        elif entry["t"] == "stop":
            begun = open_runs.pop(entry["attempt"])
            yield _run(cluster, begun, ended=entry["at"], how=entry["how"])
    for begun in open_runs.values():
        yield _run(cluster, begun, ended=None, how=None)


def _run(cluster: str, begun: dict[str, Any], *, ended: float | None, how: str | None) -> Run:
    return Run(
        cluster,
        begun["attempt"],
        begun["job"],
        begun["at"],
        ended,
        how,
        partial=begun["partial"],
    )
