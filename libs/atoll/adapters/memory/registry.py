"""A service registry of one process."""

from atoll.ports.registry import Endpoint


class MemoryRegistration:
    """An entry until it is closed, or its identity enters again."""

    def __init__(self, entries: "dict[MemoryRegistration, Endpoint]", service: str) -> None:
        self.service = service
        self._entries = entries

    async def close(self) -> None:
        """Remove the entry."""
        self._entries.pop(self, None)


class MemoryRegistry:
    """A `RegistryPort` without outages."""

    def __init__(self) -> None:
        self._entries: dict[MemoryRegistration, Endpoint] = {}

    async def register(
        self, service: str, identity: str, *, address: str, ttl_s: float
    ) -> MemoryRegistration:
        """Enter an instance; `ttl_s` is of no use here, where nothing outlives the process."""
        for entry, endpoint in tuple(self._entries.items()):
            if entry.service == service and endpoint.identity == identity:
                await entry.close()
        registration = MemoryRegistration(self._entries, service)
        self._entries[registration] = Endpoint(identity, address)
        return registration

    async def list(self, service: str) -> tuple[Endpoint, ...]:
        """The instances of `service`, ordered by identity."""
        found = (point for entry, point in self._entries.items() if entry.service == service)
        return tuple(sorted(found))
