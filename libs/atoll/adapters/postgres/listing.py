"""The statement of a list of jobs."""

import json
from typing import Final

from atoll.adapters.postgres.rows import JOB_COLUMNS
from atoll.core.model.ids import JobId
from atoll.core.model.lifecycle import TERMINAL_JOB
from atoll.ports.store.submission import JobFilter

AFTER_DOT: Final = "/"
"""The character after the dot: names below `a.b` lie between `a.b.` and `a.b/`."""


def list_statement(
    wanted: JobFilter, *, before: JobId | None, limit: int
) -> tuple[str, list[object]]:
    """A statement and its values. Only what restricts is in it, so that each gets its own plan."""
    where = _Where()
    where.add("j.tenant = {}", wanted.tenant)
    if before is not None:
        where.add("j.id < {}", before)
    if wanted.queue:
        where.add(
            "(j.queue = {} OR j.queue > {} AND j.queue < {})",
            wanted.queue,
            wanted.queue + ".",
            wanted.queue + AFTER_DOT,
        )
    if wanted.ids:
        where.add("j.id = ANY({}::bigint[])", list(wanted.ids))
    if wanted.array_id is not None:
        where.add("j.array_id = {}", wanted.array_id)
    if wanted.cluster:
        where.add("j.cluster = {}", wanted.cluster)
    if wanted.labels:
        where.add("j.labels @> {}::jsonb", json.dumps(dict(wanted.labels)))
    _add_states(where, wanted)
    limited = f" ORDER BY j.id DESC LIMIT {where.value(limit)}"
    return f"SELECT {JOB_COLUMNS} FROM jobs j WHERE {where.text}{limited}", where.values


class _Where:
    def __init__(self) -> None:
        self.values: list[object] = []
        self._conditions: list[str] = []

    @property
    def text(self) -> str:
        return " AND ".join(self._conditions)

    def value(self, value: object) -> str:
        self.values.append(value)
        return f"${len(self.values)}"

    def add(self, condition: str, *values: object) -> None:
        self._conditions.append(condition.format(*(self.value(value) for value in values)))


def _add_states(where: _Where, wanted: JobFilter) -> None:
    # `outcome` is what is indexed; see the migration.
    ended = sorted(wanted.states & TERMINAL_JOB)
    live = sorted(wanted.states - TERMINAL_JOB)
    if ended and live:
        where.add("j.state = ANY({}::text[])", [*live, *ended])
    elif ended:
        where.add("j.outcome IS NOT NULL AND j.outcome = ANY({}::text[])", ended)
    elif live:
        where.add("j.outcome IS NULL AND j.state = ANY({}::text[])", live)
