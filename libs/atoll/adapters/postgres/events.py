"""The history of jobs that watches show."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from atoll.adapters.postgres.database import Database
from atoll.adapters.postgres.event_pages import page_after, pages_of
from atoll.adapters.postgres.sql import Record
from atoll.core.model.ids import AttemptId, ClusterName, JobId, QueueName, Tenant
from atoll.core.model.lifecycle import JobEvent, JobState
from atoll.core.model.messages import Event
from atoll.core.model.reason import ReasonCode
from atoll.ports.store.common import Cursor
from atoll.ports.store.submission import WatchPage

EVENTS_AFTER: Final = pages_of(
    "events",
    "e.job, e.queue, e.event, e.state, e.attempt, e.cluster, e.reason, e.message, e.principal",
    """e.tenant = $6
        AND ($7 = '' OR e.queue = $7 OR e.queue LIKE $8)
        AND ($9::bigint[] = '{}' OR e.job = ANY($9::bigint[]))""",
)


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Whose events are wanted. Empty members do not restrict."""

    tenant: Tenant
    queue: str = ""
    jobs: Sequence[JobId] = ()


async def events_after(
    database: Database, cursor: Cursor, wanted: EventFilter, *, limit: int
) -> WatchPage:
    """The next page; one that is not full has all there is. Raises CURSOR_EXPIRED."""
    events, after = await page_after(
        database,
        EVENTS_AFTER,
        cursor,
        wanted.tenant,
        wanted.queue,
        _below(wanted.queue),
        list(wanted.jobs),
        build=_event_from,
        limit=limit,
    )
    return WatchPage(tuple(events), after)


def _below(queue: str) -> str:
    escaped = queue.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"{escaped}.%"


def _event_from(row: Record) -> Event:
    return Event(
        job=JobId(row["job"]),
        queue=QueueName(row["queue"]),
        event=None if row["event"] is None else JobEvent(row["event"]),
        state=JobState(row["state"]),
        at=row["event_at"],
        attempt=None if row["attempt"] is None else AttemptId(row["attempt"]),
        cluster=None if row["cluster"] is None else ClusterName(row["cluster"]),
        reason=None if row["reason"] is None else ReasonCode(row["reason"]),
        message=row["message"],
        principal=row["principal"],
    )
