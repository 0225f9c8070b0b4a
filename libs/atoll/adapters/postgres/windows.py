"""Windows of bookings, as the leader of a shard is told of them."""

from collections.abc import Sequence
from typing import Final

from atoll.adapters.postgres.sql import Record, Sql
from atoll.core.model.booking import KEPT_AFTER_S, OccurrenceId, Window
from atoll.core.model.ids import ClusterName, ShardId
from atoll.core.model.reservation import OccurrenceState, Part
from atoll.core.model.windows import window_of
from atoll.wire.booking import decode_shares
from atoll.wire.reservation_spec import decode_spec

# Owners' runs are to leave a window that has come to its end, whoever was there to tell them.
WINDOWS: Final = f"""
SELECT o.id, o.start_at, o.end_at, o.state, p.cluster, p.shares, r.spec
FROM occurrences o JOIN reservations r ON r.id = o.reservation
    JOIN occurrence_parts p ON p.occurrence = o.id JOIN clusters c ON c.name = p.cluster
WHERE c.shard = $1 AND (o.live OR (
    NOT o.live AND o.state = 'ENDED'
    AND o.ended_at > extract(epoch FROM now()) - {KEPT_AFTER_S}
))
"""
LIVE_WINDOWS: Final = f"{WINDOWS} ORDER BY o.id, p.cluster"
WINDOWS_NUMBERED: Final = f"{WINDOWS} AND o.id = ANY($2::bigint[]) ORDER BY o.id, p.cluster"

STATES: Final = {state.value: state for state in OccurrenceState}


def window_from(row: Record) -> Window:
    """A window from WINDOWS."""
    return window_of(
        decode_spec(row["spec"]),
        Part(ClusterName(row["cluster"]), decode_shares(row["shares"])),
        occurrence=OccurrenceId(row["id"]),
        start=row["start_at"],
        end=row["end_at"],
        state=STATES[row["state"]],
    )


async def read_windows(
    sql: Sql, shard: ShardId, ids: Sequence[int]
) -> tuple[tuple[Window, ...], tuple[OccurrenceId, ...]]:
    """Windows of occurrences in a shard, and the occurrences that have none there."""
    if not ids:
        return (), ()
    found = tuple(map(window_from, await sql.rows(WINDOWS_NUMBERED, shard, ids)))
    here = {window.id for window in found}
    return found, tuple(OccurrenceId(each) for each in ids if each not in here)
