"""Which clusters an embedded stack has: this machine, and those of a clusters file.

clusters:
  - name: h100
    backend: simulated
    cluster:                       # as the agent takes it; or the path of a file with it,
      nodes: [...]                 # relative to this one
    settings: {sim_speed: 10}      # any other setting of the agent
burst: {policy_per_hour: 1.0}      # any setting of the broker
"""

from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from atoll.core.model.errors import FieldViolation, InvalidInput

LOCAL: Final = "local"


class Cluster(BaseModel):
    """One cluster, for which one agent runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    backend: Literal["local", "simulated"] = "local"
    cluster: dict[str, Any] | Path | None = None
    """What is simulated, as the agent takes it, or a file with that, relative to this one."""
    settings: dict[str, Any] = {}
    """Further settings of the agent by name, such as sim_speed."""

    @model_validator(mode="after")
    def _described_if_simulated(self) -> Self:
        if (self.backend == "simulated") != (self.cluster is not None):
            raise ValueError("`cluster` describes a simulated cluster, and only that")
        return self

    def below(self, folder: Path) -> "Cluster":
        """The same with the path of its description made absolute."""
        if not isinstance(self.cluster, Path):
            return self
        return self.model_copy(update={"cluster": folder / self.cluster})


class Clusters(BaseModel):
    """The file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    clusters: tuple[Cluster, ...] = ()
    burst: dict[str, Any] = {}
    """Further settings of the broker by name, such as providers and policy_per_hour."""

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Self:
        names = [cluster.name for cluster in self.clusters]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two clusters have the name {', '.join(twice)}")
        return self

    def with_local(self) -> "Clusters":
        """This machine first, unless a cluster has its name already."""
        if any(cluster.name == LOCAL for cluster in self.clusters):
            return self
        return self.model_copy(update={"clusters": (Cluster(name=LOCAL), *self.clusters)})


def read_clusters(path: Path) -> Clusters:
    """Read a clusters file; raises InvalidInput with what is wrong where."""
    try:
        given = yaml.safe_load(path.read_text())
        read = Clusters.model_validate(given or {})
    except OSError as error:
        raise _wrong(str(path), error.strerror or repr(error)) from None
    except yaml.YAMLError as error:
        raise _wrong(str(path), str(error)) from None
    except ValidationError as error:
        raise InvalidInput(tuple(_violations(path, error))) from None
    folder = path.absolute().parent
    below = tuple(cluster.below(folder) for cluster in read.clusters)
    return read.model_copy(update={"clusters": below})


def write_clusters(path: Path, clusters: Clusters) -> None:
    """Write what `read_clusters` reads."""
    draft = path.with_suffix(".new")
    draft.write_text(yaml.safe_dump(clusters.model_dump(mode="json"), sort_keys=False))
    draft.replace(path)


def _violations(path: Path, error: ValidationError) -> list[FieldViolation]:
    return [
        FieldViolation(".".join((str(path), *map(str, fault["loc"]))), fault["msg"])
        for fault in error.errors(include_url=False, include_input=False)
    ]


def _wrong(field: str, message: str) -> InvalidInput:
    return InvalidInput((FieldViolation(field, message),))
