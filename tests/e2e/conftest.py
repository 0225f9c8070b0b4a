"""A whole Atoll of each test's own, over the shared real servers."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.stack import Stack
from tests.support.servers import EtcdLike


@pytest.fixture
async def stack(
    tmp_path: Path,
    store_dsn: str,
    etcd_cluster: EtcdLike,
    valkey_url: str,
    etcd_prefix: str,
) -> AsyncIterator[Stack]:
    """Not started yet; ended with the test."""
    made = Stack(
        folder=tmp_path,
        dsn=store_dsn,
        etcd_endpoints=etcd_cluster.endpoints,
        redis_url=valkey_url,
        etcd_prefix=etcd_prefix,
    )
    yield made
    await asyncio.to_thread(made.stop)
