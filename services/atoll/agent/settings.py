"""What the agent can be told."""

from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, model_validator

from atoll.agent.parts import GuardLimits
from atoll.core.model.burst import MOST_NODES
from atoll.runtime.settings import Listen, Names, ServiceSettings

CLUSTER_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"


class AgentSettings(ServiceSettings):
    """Settings of one cluster's agent."""

    metrics_listen: Listen = Field(
        default="127.0.0.1:7081", description="address of /metrics, /healthz and /readyz over HTTP"
    )
    cluster: str = Field(pattern=f"^{CLUSTER_PATTERN}$", description="name of the cluster")
    backend: str = Field(default="local", description="what runs the work")
    data_dir: Path = Field(
        default=Path("/var/lib/atoll/agent"),
        description="folder of the journal and of what runs leave",
    )
    dispatch: Names = Field(
        default=("127.0.0.1:7074",), min_length=1, description="dispatch replicas, tried in turn"
    )
    join_token: SecretStr = Field(
        default=SecretStr(""),
        description="one-time token with which a rented cluster joins; empty: it is not rented",
    )
    labels: Names = Field(default=(), description="labels of the cluster, as key=value")
    stop_after_s: float = Field(
        default=60.0, gt=0, description="silence after which a guard stops `on_lost: requeue` runs"
    )
    max_grace_s: float = Field(
        default=30.0,
        ge=0,
        description="longest time that a guard gives a run from its first signal on",
    )
    clock_margin_s: float = Field(
        default=5.0,
        ge=0,
        description="by how much the clocks of two machines may be apart meanwhile",
    )
    cluster_file: Path | None = Field(
        default=None, description="simulated: what the cluster is made of (YAML, JSON, CSV)"
    )
    sim_speed: float = Field(
        default=1.0, gt=0, le=1e6, description="simulated: seconds of a job in one real second"
    )
    node_name: str = Field(default="", description="local: name of the node; empty: the host's")
    node_count: int = Field(
        default=1,
        ge=1,
        le=MOST_NODES,
        description="local: as how many nodes this machine is shown, each with what is declared: "
        "to try out what takes several; their names are numbered",
    )
    devices_file: Path | None = Field(
        default=None, description="local: devices to declare in place of those that are found"
    )
    cpu_milli: int = Field(
        default=0, ge=0, description="local: CPUs to declare, in thousandths; 0: what is found"
    )
    memory_bytes: int = Field(
        default=0, ge=0, description="local: memory to declare, in bytes; 0: what is found"
    )
    mig_dynamic: bool = Field(
        default=False,
        description="local: cut devices into MIG slices, or join them, as the next job needs",
    )
    measure_load: bool = Field(
        default=True,
        description="local: report what other processes use of CPU, memory and devices",
    )
    keep_ended: int = Field(
        default=1000, ge=0, description="local: ended runs whose output is kept"
    )
    pass_env: Names = Field(
        default=(),
        description="local: variables that runs get from the agent, beside PATH and such",
    )

    @model_validator(mode="after")
    def _labels_are_pairs(self) -> Self:
        for label in self.labels:
            if not label.partition("=")[2]:
                raise ValueError(f"label {label!r} is not key=value")
        return self

    @model_validator(mode="after")
    def _several_nodes_are_declared(self) -> Self:
        declared = self.devices_file is not None and self.cpu_milli and self.memory_bytes
        if self.node_count > 1 and (not declared or self.measure_load):
            raise ValueError(
                "node_count above 1 needs cpu_milli, memory_bytes and devices_file, and no "
                "measure_load: what is found here is there once"
            )
        return self

    @property
    def limits(self) -> GuardLimits:
        """When a guard has certainly ended its run."""
        return GuardLimits(self.stop_after_s, self.max_grace_s, self.clock_margin_s)

    @property
    def label_pairs(self) -> tuple[tuple[str, str], ...]:
        """The cluster's labels, sorted by key."""
        return tuple(
            sorted((key, value) for key, _, value in (x.partition("=") for x in self.labels))
        )
