"""A service registry of one process."""

from atoll.ports.registry import Endpoint


class MemoryRegistration:
    """An entry until it is closed."""

    def __init__(self, entries: "dict[tuple[str, str], str]", key: tuple[str, str]) -> None:
        self._entries = entries
        self._key = key

    async def close(self) -> None:
        """Remove the entry."""
        self._entries.pop(self._key, None)


class MemoryRegistry:
    """A `RegistryPort` without outages."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], str] = {}

    async def register(
        self, service: str, identity: str, *, address: str, ttl_s: float
    ) -> MemoryRegistration:
        """Enter an instance; `ttl_s` is of no use here, where nothing outlives the process."""
        self._entries[service, identity] = address
        return MemoryRegistration(self._entries, (service, identity))

    async def list(self, service: str) -> tuple[Endpoint, ...]:
        """The instances of `service`, ordered by identity."""
        return tuple(
            Endpoint(identity, address)
            for (of, identity), address in sorted(self._entries.items())
            if of == service
        )
