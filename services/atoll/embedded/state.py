"""What the supervisor tells about itself: one file that it replaces at every change.

`atoll up` follows it, `atoll status` shows it; nothing is ever read back into the supervisor.
"""

from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError


class Phase(StrEnum):
    """Where the whole stack is in its life."""

    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


class PartState(StrEnum):
    """Where one process is in its life."""

    WAITING = "waiting"
    STARTING = "starting"
    HEALTHY = "healthy"
    UNREADY = "unready"
    """It lives and does not answer, or says that it cannot serve now."""
    BACKOFF = "backoff"
    """It died or could not start, and is tried again soon."""
    ENDING = "ending"
    ENDED = "ended"


class PartView(BaseModel):
    """One process as others see it."""

    model_config = ConfigDict(frozen=True)

    name: str
    state: PartState = PartState.WAITING
    pid: int | None = None
    address: str = ""
    """`host:port` that its clients dial; empty: none."""
    metrics: str = ""
    """`host:port` of /metrics and /readyz; empty: none."""
    restarts: int = 0
    detail: str = ""
    """Why it is not healthy."""
    log: str = ""


class Failure(BaseModel):
    """Why the stack did not come up."""

    model_config = ConfigDict(frozen=True)

    what: str
    log: str = ""
    tail: str = ""


class Report(BaseModel):
    """All there is to know."""

    model_config = ConfigDict(frozen=True)

    name: str
    pid: int
    """The supervisor's."""
    started_at: float
    """Unix seconds."""
    phase: Phase = Phase.STARTING
    step: str = ""
    """What is being done beside starting processes, such as migrations."""
    parts: tuple[PartView, ...] = ()
    failure: Failure | None = None


class Board:
    """The supervisor's end of the file."""

    def __init__(self, path: Path, report: Report) -> None:
        self._path = path
        self._report = report
        self._write()

    @property
    def report(self) -> Report:
        """As it stands."""
        return self._report

    def tell(self, **changes: object) -> None:
        """Change fields of the report."""
        self._report = self._report.model_copy(update=changes)
        self._write()

    def add(self, *views: PartView) -> None:
        """Show further parts, below the others."""
        self.tell(parts=(*self._report.parts, *views))

    def part(self, name: str, **changes: object) -> None:
        """Change fields of one part; nothing is written when nothing changed."""
        parts = tuple(
            view.model_copy(update=changes) if view.name == name else view
            for view in self._report.parts
        )
        if parts != self._report.parts:
            self.tell(parts=parts)

    def view(self, name: str) -> PartView:
        """One part as it is shown now."""
        return next(view for view in self._report.parts if view.name == name)

    def _write(self) -> None:
        draft = self._path.with_suffix(".new")
        draft.write_text(self._report.model_dump_json(indent=1))
        draft.replace(self._path)


def read_report(path: Path) -> Report | None:
    """The last report, or None if there is none that can be read."""
    try:
        return Report.model_validate_json(path.read_text())
    except (OSError, ValidationError):
        return None
