"""What every provider is given beside its own settings, and how settings are read."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from atoll.core.model.burst import MICROS
from atoll.ports.clock import Clock
from atoll.ports.provider import CLUSTER_TAG, DEPLOYMENT_TAG, TOKEN_TAG

__all__ = [
    "CLUSTER_TAG",
    "DEPLOYMENT_TAG",
    "TOKEN_TAG",
    "BadProvider",
    "Settings",
    "SingleMachine",
    "Site",
    "UnknownProvider",
    "chance",
    "micros",
    "read",
]


class BadProvider(ValueError):
    """Its settings are wrong; the message says where."""


class UnknownProvider(BadProvider):
    """There is no provider of that type."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where rented machines belong."""

    clock: Clock
    deployment: str
    """Only what carries this in its tag is ours."""
    data_dir: Path
    """Providers keep files of their own below."""
    dispatch: tuple[str, ...] = ()
    """Addresses that rented agents are told."""
    agent_settings: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of rented agents, such as tls_ca."""


class Settings(BaseModel):
    """Of a provider: what is not known is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SingleMachine(Settings):
    """Of a type of which an instance is one machine: its agent knows that one only."""

    nodes: int = 1

    @field_validator("nodes")
    @classmethod
    def _is_one(cls, nodes: int) -> int:
        if nodes != 1:
            raise ValueError(
                "an instance of this provider is one machine: its agent runs work on its own "
                "machine only; rent more instances, or give a type with more devices"
            )
        return nodes


S = TypeVar("S", bound=Settings)


def read(kind: type[S], name: str, given: Mapping[str, Any]) -> S:
    """The settings of the provider `name`; raises BadProvider."""
    try:
        return kind.model_validate(dict(given))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        said = (f"{'.'.join((name, *map(str, f['loc'])))}: {f['msg']}" for f in faults)
        raise BadProvider("; ".join(said)) from None


def micros(dollars: float) -> int:
    """Micro-dollars."""
    return round(dollars * MICROS)


def chance(*words: object) -> float:
    """A number in 0 <= x < 1 that is always the same for the same words."""
    digest = hashlib.sha256("\0".join(map(str, words)).encode()).digest()
    return int.from_bytes(digest[:7]) / (1 << 56)
