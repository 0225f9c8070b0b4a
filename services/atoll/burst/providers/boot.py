"""What a rented machine is told at its first boot: to run an agent that joins with its token."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import Field

from atoll.burst.providers.site import Settings, Site
from atoll.ports.provider import CreateOrder

CONFIG: Final = "/etc/atoll/agent.yaml"
DATA: Final = "/var/lib/atoll/agent"
PEM_FILES: Final = ("tls_ca", "tls_cert", "tls_key")
UNIT: Final = f"""\
[Unit]
Description=Atoll agent
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
ExecStart=/opt/atoll/bin/python -m atoll.agent --config {CONFIG}
Restart=always
RestartSec=2
KillMode=process

[Install]
WantedBy=multi-user.target
"""


class BootSettings(Settings):
    """How the agent comes to a machine."""

    image: str = ""
    """Of a container with the agent; empty: it is installed from a package."""
    package: str = "atoll[agent]"
    """What pip installs, with `python3 -m venv` of the machine's image."""
    setup: tuple[str, ...] = ()
    """Lines of shell before that: drivers, docker, an index for pip."""
    at_most_h: float = Field(default=0.0, ge=0)
    """The machine shuts itself down then, whoever has forgotten it; 0: never."""


def agent_settings(order: CreateOrder, site: Site, data_dir: str = DATA) -> dict[str, Any]:
    """Of the agent of an instance."""
    return {
        "cluster": order.cluster,
        "node_name": order.cluster,
        "join_token": order.join_token,
        "backend": "local",
        "data_dir": data_dir,
        "dispatch": list(site.dispatch),
        "metrics_listen": "127.0.0.1:0",
        **site.agent_settings,
    }


def cloud_config(order: CreateOrder, site: Site, boot: BootSettings) -> str:
    """User data for cloud-init; raises OSError when a PEM file cannot be read."""
    files = [_file(path, text) for path, text in files_of(order, site, boot).items()]
    told = {"write_files": files, "runcmd": list(commands(order, boot))}
    return "#cloud-config\n" + yaml.safe_dump(told, sort_keys=False)


def script(order: CreateOrder, site: Site, boot: BootSettings) -> str:
    """The same for a shell that runs as root; raises OSError."""
    lines = ["set -e", "mkdir -p /etc/atoll"]
    for path, text in files_of(order, site, boot).items():
        lines += [f"install -m 0600 /dev/null {path}", f"printf %s {shlex.quote(text)} > {path}"]
    return "\n".join((*lines, *commands(order, boot))) + "\n"


def files_of(order: CreateOrder, site: Site, boot: BootSettings) -> dict[str, str]:
    """Text by path; certificates that the agent's settings name are handed on with them."""
    settings = agent_settings(order, site)
    files: dict[str, str] = {}
    for name in PEM_FILES:
        if settings.get(name):
            there = f"/etc/atoll/{name}.pem"
            files[there], settings[name] = Path(settings[name]).read_text(), there
    files[CONFIG] = yaml.safe_dump({"agent": settings}, sort_keys=False)
    if not boot.image:
        files["/etc/systemd/system/atoll-agent.service"] = UNIT
    return files


def commands(order: CreateOrder, boot: BootSettings) -> tuple[str, ...]:
    """Lines of shell that start the agent."""
    ends = (f"shutdown -P +{round(boot.at_most_h * 60)}",) if boot.at_most_h else ()
    start = _container(order, boot) if boot.image else _package(boot)
    return (*ends, *boot.setup, f"mkdir -p {DATA}", *start)


def _container(order: CreateOrder, boot: BootSettings) -> tuple[str, ...]:
    devices = ["--gpus", "all"] if order.offer.devices else []
    words = [
        *("docker", "run", "--detach", "--restart", "always", "--name", "atoll-agent"),
        *("--network", "host", "--user", "0", *devices),
        *("--volume", "/etc/atoll:/etc/atoll:ro", "--volume", "/var/lib/atoll:/var/lib/atoll"),
        *(boot.image, "agent", "--config", CONFIG),
    ]
    return (shlex.join(words),)


def _package(boot: BootSettings) -> tuple[str, ...]:
    return (
        "python3 -m venv /opt/atoll",
        shlex.join(["/opt/atoll/bin/pip", "install", "--quiet", boot.package]),
        "systemctl daemon-reload",
        "systemctl enable --now atoll-agent",
    )


def _file(path: str, text: str) -> Mapping[str, str]:
    return {"path": path, "permissions": "0600", "content": text}
