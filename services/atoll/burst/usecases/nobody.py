"""Stands for a provider that is not configured any more, and some of whose instances are left."""

from collections.abc import Sequence
from typing import Final, NoReturn

from atoll.core.model.burst import Offer
from atoll.ports.provider import CreateOrder, ProviderUnavailable, Sighting

NOBODY: Final = "nobody"


class Nobody:
    """A `Provider` that never answers: what it has is not known, so nothing is taken for ended."""

    name = NOBODY

    async def offers(self) -> Sequence[Offer]:
        """None that anybody knows of."""
        _away()

    async def create(self, order: CreateOrder) -> Sighting:
        """Nobody can."""
        _away()

    async def describe(self, tokens: Sequence[str]) -> Sequence[Sighting]:
        """Nobody can."""
        _away()

    async def list_tagged(self) -> Sequence[Sighting]:
        """Nobody can."""
        _away()

    async def terminate(self, provider_id: str) -> None:
        """Nobody can."""
        _away()

    async def close(self) -> None:
        """Nothing is open."""


def _away() -> NoReturn:
    raise ProviderUnavailable("this provider is not configured any more")
