"""A scenario in the words of the services: their settings, clusters and queues."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from atoll.agent.settings import AgentSettings
from atoll.agent.simcluster.description import Described, described_by, read_cluster
from atoll.core.model.ids import QueueName, Tenant
from atoll.core.model.job import Queue
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.core.policies.registry import policies
from atoll.dispatch.settings import DispatchSettings
from atoll.placement.settings import PlacementSettings
from atoll.sim.scenario import ClusterPart, QueuePart, Scenario, Settings
from atoll.sim.service.plane import PlaneSettings
from atoll.sim.work import Work

TENANT: Final = Tenant("default")
BEATS: Final = {"heartbeat_s": 15.0, "lease_s": 60.0, "bind_timeout_s": 60.0, "lost_after_s": 300.0}
PLACEMENT: Final = {
    "period_s": 15.0,
    "listen_period_s": 10.0,
    "bind_timeout_s": 60.0,
    "unschedulable_after_s": 60.0,
    "lost_after_s": 300.0,
    "takeover_grace_s": 60.0,
    "audit_period_s": 600.0,
    "forecast_period_s": 60.0,
    "remember_period_s": 600.0,
}
AGENT: Final = {"stop_after_s": 120.0}
"""Periods are longer than in the services' own defaults, as days pass in minutes here; what
happens is dealt with as quickly as there. A scenario may set any of them."""


def plane_settings(given: Settings) -> PlaneSettings:
    """The services' settings; raises ValidationError."""
    placement = PlacementSettings.model_validate(PLACEMENT | given.placement)
    return PlaneSettings(
        placement=placement,
        dispatch=DispatchSettings.model_validate(BEATS | given.dispatch),
        policies=policies(
            order=placement.queue_order,
            score=placement.score,
            objective=placement.objective,
            shares=placement.fair_share,
        ),
        placement_replicas=given.placement_replicas,
        dispatch_replicas=given.dispatch_replicas,
    )


def agent_settings(
    scenario: Scenario, name: str, *, folder: Path, dispatch: tuple[str, ...]
) -> AgentSettings:
    """An agent's settings; `folder` is that of all agents. Raises ValidationError."""
    return AgentSettings.model_validate({
        "cluster": name,
        "backend": "simulated",
        "data_dir": folder / name,
        "dispatch": dispatch,
        **AGENT,
        **scenario.settings.agent,
    })


def clusters(scenario: Scenario) -> dict[str, Described]:
    """The clusters by name; raises BadDescription."""
    return {part.name: _described(part) for part in scenario.clusters}


def queues(scenario: Scenario, works: Sequence[Work]) -> Iterator[Queue]:
    """The queues to create: those of the scenario, and those that jobs name besides."""
    for part in scenario.queues:
        yield queue_of(part)
    known = {part.name for part in scenario.queues} | {"default"}
    for name in sorted({work.spec.queue for work in works} - known):
        yield Queue(QueueName(name), TENANT)


def queue_of(part: QueuePart) -> Queue:
    """A queue, its amounts in blocks."""
    return Queue(
        QueueName(part.name),
        TENANT,
        weight=part.weight,
        deserved=_blocks(part.deserved),
        device_limit=round(part.limit * BLOCKS_PER_DEVICE),
        kind_limits=_blocks(part.kind_limits),
        preempts=part.preempts,
    )


def _blocks(devices: dict[str, float]) -> tuple[tuple[str, int], ...]:
    return tuple((kind, round(n * BLOCKS_PER_DEVICE)) for kind, n in sorted(devices.items()))


def _described(part: ClusterPart) -> Described:
    if part.file is not None:
        return read_cluster(part.file, part.name)
    document = {"nodes": list(part.nodes), "labels": part.labels}
    if part.levels:
        document["levels"] = list(part.levels)
    return described_by(document, part.name)
