import re
import tomllib
from typing import Any

import pytest

from tests.deploy.manifests import COMPOSE, ROOT, compose_services

SERVICES = compose_services()
OURS = {name: made for name, made in SERVICES.items() if "ATOLL_IMAGE" in made["image"]}
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def mounted(service: dict[str, Any]) -> dict[str, str]:
    """Volume by path."""
    pairs = (volume.split(":") for volume in service.get("volumes", ()))
    return {path: name for name, path, *_ in pairs}


def test_it_has_every_part() -> None:
    assert set(SERVICES) == {
        "dev-ca", "postgres", "redis", "etcd-1", "etcd-2", "etcd-3", "migrate", "submission",
        "placement-1", "placement-2", "dispatch", "reservation-1", "reservation-2",
        "burst-1", "burst-2", "agent", "client",
    }  # fmt: skip


@pytest.mark.parametrize("name", SERVICES)
def test_containers_have_no_more_rights_than_they_need(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert service["mem_limit"]
    for port in service.get("ports", ()):
        assert port.startswith("127.0.0.1:")
    if name in OURS:
        assert service["user"] == "10001:10001"


def test_the_image_s_tag_is_the_version() -> None:
    assert {service["image"] for service in OURS.values()} == {f"${{ATOLL_IMAGE:-atoll:{VERSION}}}"}


def test_a_certificate_is_made_for_everybody_who_shows_one() -> None:
    made = {word for word in SERVICES["dev-ca"]["command"][1:] if not word.startswith("--")}
    shown = set(re.findall(r"/run/atoll(?:-agent)?/([a-z0-9-]+)\.(?:key|pem)", COMPOSE.read_text()))
    assert shown - {"ca"} <= made
    for name, service in OURS.items():
        advertised = service.get("environment", {}).get("ATOLL_ADVERTISE", f"{name}:0")
        assert advertised.partition(":")[0] == name


def test_jobs_cannot_reach_what_is_the_control_plane_s() -> None:
    assert set(mounted(SERVICES["agent"]).values()) == {"agent-access", "agent"}


def test_services_start_after_the_migrations() -> None:
    for name in (
        "submission",
        "placement-1",
        "placement-2",
        "dispatch",
        "reservation-1",
        "burst-1",
    ):
        wanted = SERVICES[name]["depends_on"]["migrate"]["condition"]
        assert wanted == "service_completed_successfully"
