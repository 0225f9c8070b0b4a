"""How much of everything: what bounds memory, batches and waits."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one replica."""

    window: int = 1024
    """Decisions of a session that its agent has not journalled yet."""
    push_batch: int = 128
    """Decisions in one message, whose specs are in memory then."""
    push_total: int = 1024
    """Decisions of all sessions in one transaction."""
    repair_batch: int = 512
    """Decisions read from the store at once for one session."""
    repairs: int = 4
    """Sessions whose decisions are read from the store at the same time."""
    report_batch: int = 1000
    """Reports in one transaction."""
    reports_waiting: int = 2000
    """Reports of one session that wait; then its stream is not read on."""
    beat_batch: int = 500
    """Heartbeats in one transaction."""
    nodes: int = 100_000
    """Nodes in one inventory."""
    relays: int = 64
    """Readers of output per session."""
    log_requests: int = 4096
    """Tasks of one session whose output is read at the same time."""
    log_bytes: int = 1 << 20
    """Output that waits for one reader; then the agent is told to pause."""
    sessions: int = 5000
    """Sessions of one replica."""
