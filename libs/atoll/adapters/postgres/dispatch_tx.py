"""One transaction of dispatch."""

from collections.abc import Iterable, Sequence
from typing import Final

from atoll.adapters.postgres.cluster_rows import CLUSTER_COLUMNS, cluster_from
from atoll.adapters.postgres.live import NOW, LiveRowsTx
from atoll.core.model.ids import ClusterName
from atoll.core.model.inventory import Cluster
from atoll.core.model.messages import Report

LOCK_SESSIONS: Final = (
    f"SELECT {CLUSTER_COLUMNS}, {NOW} AS now"
    " FROM clusters c JOIN sessions s ON s.cluster = c.name"
    " WHERE s.cluster = ANY($1::text[]) ORDER BY s.cluster FOR NO KEY UPDATE OF s"
)
SET_REPORT_SEQS: Final = """
UPDATE sessions s SET report_seq = u.seq FROM unnest($1::text[], $2::bigint[]) AS u(cluster, seq)
WHERE s.cluster = u.cluster
"""
NOTE_REJECTIONS: Final = """
UPDATE attempts a SET suspects = u.suspects::bigint[], rejected_inventory = u.inventory
FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS u(id, suspects, inventory)
WHERE a.id = u.id
"""


class PostgresDispatchTx(LiveRowsTx):
    """One transaction of dispatch."""

    async def lock_sessions(self, names: Iterable[ClusterName]) -> dict[ClusterName, Cluster]:
        """Lock the sessions' rows by ascending name. The clusters' own rows are read unlocked."""
        rows = await self._sql.rows(LOCK_SESSIONS, list(names))
        self._now = next((row["now"] for row in rows), None)
        return {ClusterName(row["name"]): cluster_from(row) for row in rows}

    async def set_report_seqs(self, seqs: Sequence[tuple[ClusterName, int]]) -> None:
        """Reports are dealt with up to here."""
        if seqs:
            await self._sql.run(
                SET_REPORT_SEQS, [name for name, _ in seqs], [seq for _, seq in seqs]
            )

    async def note_rejections(self, reports: Sequence[Report]) -> None:
        """Keep what a REJECTED said of nodes with its attempt, for the leader to read."""
        if reports:
            await self._sql.run(
                NOTE_REJECTIONS,
                [r.attempt for r in reports],
                ["{" + ",".join(map(str, r.suspects)) + "}" for r in reports],
                [r.inventory_number for r in reports],
            )
