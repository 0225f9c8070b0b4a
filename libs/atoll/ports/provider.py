"""What the broker needs of somebody who rents machines out.

Every call may fail or be repeated. `create` is safe to repeat: the same token is the same
instance, for ever. Whatever carries this Atoll's tag and is not ended is in `list_tagged`.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from atoll.core.model.burst import Offer
from atoll.core.model.errors import ErrorCode, Unavailable

TOKEN_TAG: Final = "atoll:token"
CLUSTER_TAG: Final = "atoll:cluster"
DEPLOYMENT_TAG: Final = "atoll:deployment"
"""Tags of what is created; only what carries ours is ours."""


class ProviderUnavailable(Unavailable):
    """It did not answer, or throttles: nobody knows whether anything happened. Try again."""

    def __init__(self, message: str, *, code: ErrorCode = ErrorCode.UNAVAILABLE) -> None:
        super().__init__(message, code=code)


class NoCapacity(Exception):
    """It has none of what was asked for now; nothing was created."""


class ProviderRefused(Exception):
    """It will not do this, however often it is asked: a quota, a permission, an unknown type."""


class Phase(enum.StrEnum):
    """What a provider says of an instance."""

    PENDING = "pending"
    RUNNING = "running"
    ENDING = "ending"
    GONE = "gone"
    """Confirmed: it is ended, and costs nothing any more."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """An instance as the provider sees it."""

    token: str
    provider_id: str
    phase: Phase
    zone: str = ""
    instance_type: str = ""
    created_at: float = 0.0
    interrupted_at: float = 0.0
    """When it will be taken back; 0: no notice was given."""
    message: str = ""


@dataclass(frozen=True, slots=True)
class CreateOrder:
    """One instance to be created."""

    token: str
    offer: Offer
    cluster: str
    """Name that its agent joins with; its nodes are called as node_names says."""
    join_token: str
    """One-time: the agent shows it when it opens its first session."""
    tags: Mapping[str, str]


class Provider(Protocol):
    """One provider, with its own credentials and regions."""

    name: str

    async def offers(self) -> Sequence[Offer]:
        """What it offers now, with prices. Raises ProviderUnavailable."""
        ...

    async def create(self, order: CreateOrder) -> Sighting:
        """Create, or find what the same token created before.

        Raises NoCapacity, ProviderRefused, ProviderUnavailable.
        """
        ...

    async def describe(self, tokens: Sequence[str]) -> Sequence[Sighting]:
        """What became of them; one that it does not know (any more) is left out."""
        ...

    async def list_tagged(self) -> Sequence[Sighting]:
        """All that carry this Atoll's tag and are not GONE."""
        ...

    async def terminate(self, provider_id: str) -> None:
        """End it; one that is ended already is no error. `describe` confirms."""
        ...

    async def close(self) -> None:
        """Let connections go."""
        ...
