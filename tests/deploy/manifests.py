"""What stands in the files of deploy/, as the tests ask for it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from atoll.agent.settings import AgentSettings
from atoll.burst.settings import BurstSettings
from atoll.dispatch.settings import DispatchSettings
from atoll.placement.settings import PlacementSettings
from atoll.reservation.settings import ReservationSettings
from atoll.runtime.settings import ServiceSettings, StoreSettings
from atoll.submission.settings import SubmissionSettings

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "docker-compose.yml"
K8S = ROOT / "deploy" / "k8s"
UNIT = ROOT / "deploy" / "systemd" / "atoll-agent.service"
SETTINGS: Mapping[str, type[ServiceSettings]] = {
    "submission": SubmissionSettings,
    "placement": PlacementSettings,
    "dispatch": DispatchSettings,
    "reservation": ReservationSettings,
    "burst": BurstSettings,
    "agent": AgentSettings,
    "migrate": StoreSettings,
    "schema": StoreSettings,
}

Yaml = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One container of ours: its role, and what it is told."""

    where: str
    role: str
    environment: Mapping[str, str]

    @property
    def atoll(self) -> dict[str, str]:
        """The part of the environment that is ours."""
        return {key: text for key, text in self.environment.items() if key.startswith("ATOLL_")}


def compose_services() -> dict[str, Yaml]:
    """By name, with every merge done."""
    services: dict[str, Yaml] = yaml.safe_load(COMPOSE.read_text())["services"]
    return services


def objects() -> list[Yaml]:
    """Every object of the Kubernetes manifests."""
    names = yaml.safe_load((K8S / "kustomization.yaml").read_text())["resources"]
    return [made for name in names for made in yaml.safe_load_all((K8S / name).read_text())]


def pods() -> Iterator[tuple[str, Yaml]]:
    """Name and spec of every pod template."""
    for made in objects():
        if template := made.get("spec", {}).get("template"):
            yield made["metadata"]["name"], template["spec"]


def containers(pod: Yaml) -> Iterator[Yaml]:
    """Those that prepare, and those that stay."""
    yield from pod.get("initContainers", ())
    yield from pod["containers"]


def runs() -> list[Run]:
    """Every container of ours, wherever it is deployed."""
    return [*_compose_runs(), *_k8s_runs(), _unit_run()]


def _compose_runs() -> Iterator[Run]:
    for name, service in compose_services().items():
        role = service["command"][0]
        if role in SETTINGS:
            yield Run(f"compose {name}", role, service.get("environment", {}))


def _k8s_runs() -> Iterator[Run]:
    maps = {
        made["metadata"]["name"]: made["data"] for made in objects() if made["kind"] == "ConfigMap"
    }
    for name, pod in pods():
        for container in containers(pod):
            environment: dict[str, str] = {}
            for source in container.get("envFrom", ()):
                environment |= maps[source["configMapRef"]["name"]]
            environment |= {
                entry["name"]: entry.get("value", "") for entry in container.get("env", ())
            }
            yield Run(f"k8s {name}/{container['name']}", container["args"][0], environment)


def _unit_run() -> Run:
    lines = UNIT.with_name("agent.env").read_text().splitlines()
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return Run("systemd", "agent", {key: text for key, _, text in pairs})
