"""Whether a job could ever run, and when that is looked up anew."""

import asyncio
from dataclasses import replace

import pytest

from atoll.adapters.memory.clock import ManualClock, settle
from atoll.core.model.burst import Market, Offer
from atoll.core.model.errors import ErrorCode, InvalidInput
from atoll.core.model.ids import DEFAULT_SHARD, ClusterName, NodeId, ShardId
from atoll.core.model.inventory import Cluster, ClusterState, Node
from atoll.core.model.plan import GangRequest, GroupRequest
from atoll.core.model.resources import TaskShape
from atoll.ports.store.common import StoreUnavailable
from atoll.submission.usecases.admission import FRESH_S, MOST_SHARE, STALE_S, Admission
from tests.services.submission.worlds import node

OTHER_SHARD = ShardId(1)


def request(cpu_milli: int) -> GangRequest:
    return GangRequest((GroupRequest(1, 1, (TaskShape(cpu_milli, 0),)),))


SMALL, LARGE = request(1_000), request(100_000)


class Inventory:
    """Clusters and nodes as a test sets them; reading them takes `takes_s`."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.clusters_: list[Cluster] = []
        self.nodes_: list[Node] = []
        self.offers: list[Offer] = []
        self.reads = 0
        self.takes_s = 0.0
        self.away = False

    def add(self, name: str, *, cpu_milli: int, shard: ShardId = DEFAULT_SHARD) -> None:
        cluster = ClusterName(name)
        self.clusters_.append(Cluster(cluster, shard=shard))
        number = NodeId(len(self.nodes_) + 1)
        self.nodes_.append(Node(number, cluster, node(f"{name}-1", cpu_milli=cpu_milli)))

    async def clusters(self) -> list[Cluster]:
        self.reads += 1
        await self._clock.sleep(self.takes_s)
        if self.away:
            raise StoreUnavailable("away", code=ErrorCode.UNAVAILABLE)
        return self.clusters_

    async def nodes(self, cluster: str, *, after: tuple[str, str], limit: int) -> list[Node]:
        key = [((row.cluster, row.inventory.name), row) for row in self.nodes_]
        return [row for place, row in sorted(key, key=lambda k: k[0]) if place > after][:limit]

    async def rentable(self) -> list[Offer]:
        return self.offers


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def inventory(clock: ManualClock) -> Inventory:
    return Inventory(clock)


@pytest.fixture
def admission(inventory: Inventory, clock: ManualClock) -> Admission:
    return Admission(inventory, clock)


async def test_what_fits_is_let_in_without_reading_again(
    inventory: Inventory, admission: Admission, clock: ManualClock
) -> None:
    inventory.add("alpha", cpu_milli=64_000)
    for _ in range(5):
        assert await admission.shards_for([SMALL, SMALL]) == [(DEFAULT_SHARD,)] * 2
        await clock.advance(STALE_S / 6)
    assert inventory.reads == 1


async def test_a_refusal_looks_again_first(
    inventory: Inventory, admission: Admission, clock: ManualClock
) -> None:
    inventory.add("alpha", cpu_milli=64_000)
    await admission.shards_for([SMALL])
    inventory.add("beta", cpu_milli=128_000)
    with pytest.raises(InvalidInput):
        await admission.shards_for([LARGE])  # what is known is fresh enough to refuse by
    await clock.advance(FRESH_S + 1)
    assert await admission.shards_for([LARGE]) == [(DEFAULT_SHARD,)]
    assert inventory.reads == 2


async def test_a_flood_of_impossible_jobs_takes_a_bounded_share_of_the_time(
    inventory: Inventory, admission: Admission, clock: ManualClock
) -> None:
    inventory.add("alpha", cpu_milli=64_000)
    inventory.takes_s = 2.0
    first = asyncio.create_task(admission.shards_for([SMALL]))
    await settle()
    await clock.advance(2.0)
    await first
    inventory.takes_s = 0.0
    await clock.advance(FRESH_S + 1)
    with pytest.raises(InvalidInput):
        await admission.shards_for([LARGE])
    assert inventory.reads == 1
    await clock.advance(2.0 / MOST_SHARE)
    with pytest.raises(InvalidInput):
        await admission.shards_for([LARGE])
    assert inventory.reads == 2


async def test_an_old_summary_is_used_while_a_new_one_is_made(
    inventory: Inventory, admission: Admission, clock: ManualClock
) -> None:
    inventory.add("alpha", cpu_milli=64_000)
    await admission.shards_for([SMALL])
    await clock.advance(STALE_S + 1)
    inventory.takes_s = 5.0
    assert await admission.shards_for([SMALL]) == [(DEFAULT_SHARD,)]
    await settle()
    assert inventory.reads == 2
    assert await admission.shards_for([SMALL]) == [(DEFAULT_SHARD,)]
    await clock.advance(6.0)
    assert inventory.reads == 2


async def test_a_store_that_is_away_leaves_the_old_summary(
    inventory: Inventory, admission: Admission, clock: ManualClock
) -> None:
    inventory.add("alpha", cpu_milli=64_000)
    await admission.shards_for([SMALL])
    inventory.away = True
    await clock.advance(STALE_S + 1)
    for _ in range(2):
        assert await admission.shards_for([SMALL]) == [(DEFAULT_SHARD,)]
        await settle()
    with pytest.raises(StoreUnavailable):
        await admission.shards_for([LARGE])


async def test_retired_clusters_do_not_count(inventory: Inventory, admission: Admission) -> None:
    inventory.add("alpha", cpu_milli=128_000)
    inventory.clusters_ = [replace(c, state=ClusterState.RETIRED) for c in inventory.clusters_]
    assert await admission.shards_for([request(10**9)]) == [(DEFAULT_SHARD,)]


async def test_a_job_goes_to_shards_that_could_run_it(
    inventory: Inventory, admission: Admission
) -> None:
    inventory.add("alpha", cpu_milli=64_000)
    inventory.add("beta", cpu_milli=128_000, shard=OTHER_SHARD)
    assert await admission.shards_for([SMALL, LARGE]) == [
        (DEFAULT_SHARD, OTHER_SHARD),
        (OTHER_SHARD,),
    ]


async def test_the_refusal_names_the_job_and_both_numbers(
    inventory: Inventory, admission: Admission
) -> None:
    inventory.add("alpha", cpu_milli=64_000)
    with pytest.raises(InvalidInput) as raised:
        await admission.shards_for([SMALL, LARGE])
    assert raised.value.code is ErrorCode.NEVER_FITS
    (violation,) = raised.value.violations
    assert violation.field == "jobs[1]"
    assert "100 CPUs" in violation.message
    assert "64 CPUs" in violation.message


def machine(cpu_milli: int) -> Offer:
    return Offer("cloud", "eu-1a", "eu", "big", Market.SPOT, cpu_milli, memory_bytes=1 << 40)


async def test_a_job_that_only_a_rented_machine_can_run_is_let_in_if_it_may_be_rented_for(
    inventory: Inventory, admission: Admission
) -> None:
    inventory.add("alpha", cpu_milli=64_000)
    inventory.offers = [machine(8_000), machine(128_000)]
    assert await admission.shards_for([LARGE]) == [(DEFAULT_SHARD,)]
    for barred in (replace(LARGE, burst=False), request(200_000)):
        with pytest.raises(InvalidInput):
            await admission.shards_for([barred])


async def test_a_machine_that_is_rented_just_now_is_no_reason_to_wait_for_ever(
    inventory: Inventory, admission: Admission
) -> None:
    inventory.add("alpha", cpu_milli=64_000)
    inventory.add("burst-1", cpu_milli=128_000)
    with pytest.raises(InvalidInput):
        await admission.shards_for([LARGE])
