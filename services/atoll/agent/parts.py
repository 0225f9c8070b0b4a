"""What the sessions of an agent share, one after the other."""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from atoll.agent.journal import Journal
from atoll.agent.lease import Lease
from atoll.agent.reports import Reports
from atoll.agent.stock import Stock
from atoll.agent.worker import Worker
from atoll.api.agent.v1 import agent_pb2
from atoll.core.model.ids import ClusterName
from atoll.ports.backend import Backend
from atoll.ports.clock import Clock


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """When a guard has certainly ended its run, in seconds of silence."""

    stop_after_s: float
    max_grace_s: float
    clock_margin_s: float

    def in_time(self, lost_after_s: float) -> bool:
        """Whether that is before the control plane gives the run up."""
        return self.stop_after_s + self.max_grace_s + self.clock_margin_s < lost_after_s


@dataclass(frozen=True, slots=True)
class Parts:
    """The agent without its session."""

    cluster: ClusterName
    labels: tuple[tuple[str, str], ...]
    limits: GuardLimits
    clock: Clock
    backend: Backend
    journal: Journal
    reports: Reports
    stock: Stock
    worker: Worker
    lease: Lease
    join_token: str = ""
    """What a rented cluster shows; empty: it is not rented."""

    @property
    def applied(self) -> int:
        """Decisions taken in: all up to this number. Dispatch is told only of `journal.applied`."""
        return self.journal.memory.applied or 0

    def hello(self, *, can_guard: bool) -> agent_pb2.SessionRequest:
        """Opens a session."""
        what, memory = self.backend.capabilities, self.journal.memory
        return agent_pb2.SessionRequest(
            hello=agent_pb2.Hello(
                cluster=self.cluster,
                agent_instance=memory.instance,
                backend=what.name,
                can_guard=can_guard,
                applied_seq=self.journal.applied,
                last_report=self.reports.last,
                levels=what.levels,
                labels=dict(what.labels) | dict(self.labels),
                version=_version(),
                stop_after_s=self.limits.stop_after_s if can_guard else 0.0,
                max_grace_s=self.limits.max_grace_s + self.limits.clock_margin_s
                if can_guard
                else 0.0,
                fresh_journal=memory.applied is None,
                join_token=self.join_token,
            )
        )


def _version() -> str:
    try:
        return version("atoll")
    except PackageNotFoundError:
        return ""
