"""`atoll status`: processes as the supervisor sees them, leader and clusters as the API does."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from atoll.adapters.system import SystemClock
from atoll.cli.money import money
from atoll.core.model.errors import DomainError
from atoll.embedded.launch import running
from atoll.embedded.layout import Layout
from atoll.embedded.progress import STYLES
from atoll.embedded.recipes import BROKER
from atoll.embedded.say import say
from atoll.embedded.state import PartState, Phase, Report

if TYPE_CHECKING:
    from atoll.client.burst_views import BurstStatus
    from atoll.client.views import ClusterInfo, PlacementStatus

T = TypeVar("T")

UNAVAILABLE: Final = 5
ANSWER_WITHIN_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class Overview:
    """All that is shown."""

    report: Report
    leader: str = ""
    """Address of the placement leader; empty: none is known."""
    placement: "PlacementStatus | None" = None
    clusters: "Sequence[ClusterInfo]" = ()
    burst: "BurstStatus | None" = None
    unread: Sequence[str] = ()
    """What could not be asked."""


def show(layout: Layout, *, output: Literal["table", "json"]) -> int:
    """Print it; 0 when all is well, 1 when something is not, 5 when nothing runs."""
    report = running(layout)
    if report is None:
        _not_running(layout, output)
        return UNAVAILABLE
    overview = look(report)
    if output == "json":
        say(json.dumps(as_json(layout, overview), indent=2))
    else:
        _print(layout, overview)
    return 0 if _well(overview) else 1


def look(report: Report) -> Overview:
    """Ask the API; what does not answer is named, not raised."""
    from atoll.client import Client, ClientConfig  # loads gRPC, which `up` and `down` can spare

    unread: list[str] = []
    submission, placement = _address(report, "submission"), _address(report, "placement")
    broker = _address(report, BROKER)
    if not (submission and placement):
        return Overview(report, unread=("clusters and leader: not started yet",))
    config = ClientConfig(
        endpoint=submission,
        placement=(placement,),
        burst=(broker,) if broker else (),
        timeout_s=ANSWER_WITHIN_S,
    )
    with Client(config=config) as client:
        clusters = _asked(client.clusters, "clusters", unread) or ()
        status = _asked(client.placement_status, "placement", unread)
        burst = _asked(client.burst.status, BROKER, unread) if broker else None
    leader = "" if status is None else (placement if status.leader else status.leader_address)
    return Overview(report, leader, status, clusters, burst=burst, unread=tuple(unread))


def has_accelerators(report: Report) -> bool:
    """Whether any cluster has a device; True when that cannot be told."""
    overview = look(report)
    return bool(overview.unread) or any(cluster.devices for cluster in overview.clusters)


def as_json(layout: Layout, overview: Overview) -> dict[str, Any]:
    """For programs: times are unix seconds, sizes are bytes."""
    report = overview.report
    return {
        "name": report.name,
        "phase": str(report.phase),
        "pid": report.pid,
        "started_at": report.started_at,
        "data_dir": str(layout.data),
        "endpoints": str(layout.endpoints),
        "leader": overview.leader,
        "placement": overview.placement and asdict(overview.placement),
        "processes": [view.model_dump(mode="json") for view in report.parts],
        "clusters": [asdict(cluster) for cluster in overview.clusters],
        "rented": dict(overview.burst.instances) if overview.burst else {},
        "unread": list(overview.unread),
    }


def tables(layout: Layout, overview: Overview, *, now: float) -> Iterator[Table | str]:
    """For people."""
    report = overview.report
    yield f"{report.name}: {report.phase}, supervisor {report.pid}, data in {layout.data}"
    yield _processes(report)
    yield f"Leader: {overview.leader or 'none'}"
    if told := forecasts_text(overview):
        yield told
    if told := rented_text(overview):
        yield told
    yield _clusters(overview, now)
    for missing in overview.unread:
        yield f"Not read: {missing}"


def forecasts_text(overview: Overview) -> str:
    """How far what jobs were told of their starts held; empty while nothing is known."""
    status = overview.placement
    if status is None or not status.eta_within:
        return ""
    half, most = status.eta_within
    return (
        f"Forecasts: of {status.eta_starts:,} jobs that had to wait, {half:.0%} of the latest"
        f" started by their p50 and {most:.0%} by their p90;"
        f" {status.eta_error_s:,.0f} s off on average"
    )


def rented_text(overview: Overview) -> str:
    """What is rented, and what it costs; empty while the broker is not asked."""
    burst = overview.burst
    if burst is None:
        return ""
    states = ", ".join(f"{n} {state}" for state, n in sorted(burst.instances.items()) if n)
    most = burst.spend.budget.per_hour
    bound = "no bound" if most is None else f"{money(most)} at most"
    return f"Rented: {states or 'nothing'}; {money(burst.spend.rate_per_hour)} an hour, {bound}"


def _not_running(layout: Layout, output: Literal["table", "json"]) -> None:
    if output == "json":
        gone = {"name": layout.name, "phase": "stopped", "data_dir": str(layout.data)}
        say(json.dumps(gone, indent=2))
    else:
        say(f"{layout.name}: does not run (data folder {layout.data}). Start it: atoll up")


def _print(layout: Layout, overview: Overview) -> None:
    console = Console(highlight=False)
    for piece in tables(layout, overview, now=SystemClock().now()):
        console.print(piece, markup=False, soft_wrap=isinstance(piece, str))


def _processes(report: Report) -> Table:
    table = Table(
        "PROCESS", "STATE", "PID", "ADDRESS", "RESTARTS", "DETAIL", box=None, pad_edge=False
    )
    for view in report.parts:
        pid = "-" if view.pid is None else str(view.pid)
        table.add_row(
            view.name,
            Text(str(view.state), style=STYLES[view.state]),
            pid,
            view.address or "-",
            str(view.restarts),
            view.detail,
        )
    return table


def _clusters(overview: Overview, now: float) -> Table:
    table = Table(
        "CLUSTER", "BACKEND", "STATE", "NODES UP", "DEVICES", "HEARTBEAT", box=None, pad_edge=False
    )
    for cluster in overview.clusters:
        devices = ", ".join(f"{count} {kind}" for kind, count in sorted(cluster.devices.items()))
        table.add_row(
            cluster.name,
            cluster.backend,
            f"{cluster.state}, cordoned" if cluster.cordoned else cluster.state,
            f"{cluster.nodes_up}/{cluster.nodes}",
            devices or "-",
            f"{max(0.0, now - cluster.last_seen):.0f} s ago",
        )
    return table


def _well(overview: Overview) -> bool:
    healthy = all(view.state is PartState.HEALTHY for view in overview.report.parts)
    return healthy and overview.report.phase is Phase.READY and bool(overview.leader)


def _address(report: Report, part: str) -> str:
    return next((view.address for view in report.parts if view.name == part), "")


def _asked(ask: Callable[[], T], what: str, unread: list[str]) -> T | None:
    from atoll.client import CallFailed

    try:
        return ask()
    except (DomainError, CallFailed) as error:
        unread.append(f"{what}: {error}")
        return None
