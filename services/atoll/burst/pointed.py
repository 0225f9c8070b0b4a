"""A provider after whose answers this process can be made to die, before it has recorded them."""

from collections.abc import Sequence

from atoll.core.model.burst import Offer
from atoll.ports.provider import CreateOrder, Provider, Sighting
from atoll.runtime import failpoints


class Pointed:
    """A `Provider` with failpoints."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.name = provider.name

    async def offers(self) -> Sequence[Offer]:
        """What it offers."""
        return await self._provider.offers()

    async def create(self, order: CreateOrder) -> Sighting:
        """Created, and not recorded yet."""
        sighting = await self._provider.create(order)
        failpoints.hit("burst.created")
        return sighting

    async def describe(self, tokens: Sequence[str]) -> Sequence[Sighting]:
        """What became of them."""
        return await self._provider.describe(tokens)

    async def list_tagged(self) -> Sequence[Sighting]:
        """All of ours."""
        return await self._provider.list_tagged()

    async def terminate(self, provider_id: str) -> None:
        """Told to end, and not confirmed yet."""
        await self._provider.terminate(provider_id)
        failpoints.hit("burst.told_to_end")

    async def close(self) -> None:
        """Let connections go."""
        await self._provider.close()
