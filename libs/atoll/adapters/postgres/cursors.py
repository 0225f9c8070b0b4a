"""How far changes and events were read.

A cursor is a whole snapshot: what comes after it are the rows that it did not see, whenever their
transactions began. Reading above the greatest id or transaction seen would miss what commits late.
"""

from dataclasses import dataclass, replace
from typing import Final

from atoll.adapters.postgres.sql import Record
from atoll.core.model.errors import ErrorCode, FailedPrecondition
from atoll.ports.store.common import Cursor

VERSION: Final = "1"
PARTS: Final = 7
CHANGES_KEPT_S: Final = 900.0
MARGIN_S: Final = 60.0
"""More than any transaction of ours may take, and than a reader waits for a lock."""

HERE: Final = """
    (SELECT system_identifier FROM pg_control_system())::text AS system,
    left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline,
    extract(epoch FROM clock_timestamp())::double precision AS at,
    pg_current_snapshot()::text AS snapshot
"""
"""Columns that make a Position of the statement that they are in."""


@dataclass(frozen=True, slots=True)
class Position:
    """A snapshot of one database in one of its lives."""

    system: str
    timeline: str
    at: float
    """Database time."""
    snapshot: str
    upto: str = ""
    """Set in the middle of pages: the snapshot up to which they go."""
    after_id: int = 0
    """Then: the last row shown."""

    @classmethod
    def of(cls, row: Record) -> "Position":
        """From the columns HERE."""
        return cls(row["system"], row["timeline"], row["at"], row["snapshot"])

    @classmethod
    def parse(cls, cursor: Cursor) -> "Position":
        """Raises CURSOR_EXPIRED for a text that is no cursor of this store."""
        parts = cursor.text.split("/")
        if len(parts) != PARTS or parts[0] != VERSION:
            raise expired("it is no cursor of this store")
        try:
            return cls(
                parts[1], parts[2], float(parts[3]), _unpack(parts[4]), _unpack(parts[5]),
                int(parts[6]),
            )  # fmt: skip
        except ValueError as error:
            raise expired("it is no cursor of this store") from error

    def cursor(self) -> Cursor:
        """The text that callers hold."""
        parts = (
            VERSION, self.system, self.timeline, f"{self.at:.3f}", _pack(self.snapshot),
            _pack(self.upto), str(self.after_id),
        )  # fmt: skip
        return Cursor("/".join(parts))

    def amid(self, *, upto: str, after_id: int) -> "Position":
        """Where a page ended that was not the last."""
        return replace(self, upto=upto, after_id=after_id)

    def reached(self) -> "Position":
        """Where the pages end. The time stays: what they lack was pruned no earlier than that."""
        return replace(self, snapshot=self.upto, upto="", after_id=0)

    def require_same_life(self, here: "Position") -> None:
        """Raises CURSOR_EXPIRED when the database is another, or went back in time."""
        if (self.system, self.timeline) != (here.system, here.timeline):
            raise expired("it is of another database, or of one before a failover")
        if _xmax(self.upto or self.snapshot) > _xmax(here.snapshot):
            raise expired("it is of a database that was restored from an older copy since")


def expired(why: str) -> FailedPrecondition:
    """Everything must be loaded anew."""
    return FailedPrecondition(f"the cursor is of no use: {why}", code=ErrorCode.CURSOR_EXPIRED)


def _xmax(snapshot: str) -> int:
    return int(snapshot.split(":")[1])


def _pack(snapshot: str) -> str:
    """Transactions by their distance: users carry this text about."""
    if not snapshot:
        return ""
    first, last, running = snapshot.split(":")
    base = int(first)
    gaps = (str(int(xid) - base) for xid in running.split(",") if xid)
    return ":".join((first, str(int(last) - base), ",".join(gaps)))


def _unpack(text: str) -> str:
    if not text:
        return ""
    first, last, running = text.split(":")
    base = int(first)
    xids = (str(base + int(gap)) for gap in running.split(",") if gap)
    return ":".join((first, str(base + int(last)), ",".join(xids)))
