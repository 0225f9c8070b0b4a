"""The service over a store of each kind."""

from collections.abc import AsyncIterator

import pytest

from tests.services.reservation.worlds import World, memory_world, postgres_world


@pytest.fixture(params=["memory", "postgres"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """A store of each kind, with nothing in it."""
    if request.param == "memory":
        found = memory_world()
    else:
        found = postgres_world(request.getfixturevalue("store_dsn"))
    await found.begin()
    yield found
    await found.service.close()
    await found.store.close()


@pytest.fixture
async def timed() -> AsyncIterator[World]:
    """In memory: the test says when time passes."""
    found = memory_world()
    await found.begin()
    yield found
    await found.service.close()
