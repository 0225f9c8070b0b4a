"""Which services are up and where: addresses that vanish with their process."""

from dataclasses import dataclass
from typing import Protocol


class RegistryUnavailable(Exception):
    """The registry cannot be reached or refused; try again later."""


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """One registered instance of a service."""

    identity: str
    address: str
    """`host:port`, as a client would dial it."""


class Registration(Protocol):
    """An entry that is kept alive, through outages, until it is closed."""

    async def close(self) -> None:
        """Remove the entry at once, as far as the registry can be reached; never raises."""
        ...


class RegistryPort(Protocol):
    """The instances of every service."""

    async def register(
        self, service: str, identity: str, *, address: str, ttl_s: float
    ) -> Registration:
        """Enter an instance; it vanishes `ttl_s` after its process stopped renewing it.

        Raises RegistryUnavailable if the first entry fails; from then on the entry is
        made again by itself whenever it got lost.
        """
        ...

    async def list(self, service: str) -> tuple[Endpoint, ...]:
        """The instances of `service`, ordered by identity; raises RegistryUnavailable."""
        ...
