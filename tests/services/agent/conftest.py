"""A dispatch in the test's hands, and an agent over a simulated cluster that talks to it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.services.agent.fake_dispatch import FakeDispatch
from tests.services.agent.running import Running, simulated


@pytest.fixture
async def dispatch() -> AsyncIterator[FakeDispatch]:
    made = FakeDispatch()
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def agent(dispatch: FakeDispatch, tmp_path: Path) -> AsyncIterator[Running]:
    running = Running(simulated(tmp_path, dispatch))
    yield running
    await running.stop(in_order=False)
