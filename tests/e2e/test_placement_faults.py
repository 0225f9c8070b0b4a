"""What the placement leader may suffer; nothing is lost, nothing runs twice."""

import asyncio
import json
from pathlib import Path

import asyncpg
import pytest

from atoll.adapters.etcd.connection import EtcdConnection
from atoll.adapters.etcd.keys import end_of
from atoll.adapters.etcd.methods import DELETE
from atoll.adapters.etcd.wire import etcdwire_pb2 as wire
from atoll.core.model.errors import StaleEpoch
from tests.e2e.load import Load, quiet, value
from tests.e2e.oracle import check
from tests.e2e.processes import ServiceProcess
from tests.e2e.stack import Stack, leads, metrics_of
from tests.support.proxy import Proxy
from tests.support.waiting import eventually


async def test_leader_killed_in_load_is_succeeded_by_its_standby(stack: Stack) -> None:
    await stack.start(("alpha", "beta"), placements=2)
    async with stack.client() as client:
        async with Load(client) as load:
            await load.reach(100)
            first = await stack.leader()
            first.kill()
            second = await stack.leader(but=first)
            await load.reach(len(load.acknowledged) + 100)
        await quiet(stack, load.acknowledged)
    assert second is not first
    assert await epochs(stack) >= 2
    await check(stack, load.acknowledged)


@pytest.mark.parametrize("point", ["placement.before_commit", "placement.after_commit"])
async def test_leader_killed_around_a_commit_leaves_all_or_nothing(
    stack: Stack, point: str
) -> None:
    await stack.start(("alpha",), placements=1)
    doomed = stack.add_placement()
    first = stack.placements[0]
    doomed.start(ATOLL_FAILPOINT=f"{point}:kill:8")
    await doomed.wait_ready()
    first.kill()
    await stack.leader(but=first)
    async with stack.client() as client:
        async with Load(client) as load:
            await asyncio.to_thread(doomed.wait_killed, 120)
            first.start()
            await stack.leader(but=doomed)
        await quiet(stack, load.acknowledged)
    await check(stack, load.acknowledged)


async def test_leader_stopped_past_its_lease_fails_at_the_fence(stack: Stack) -> None:
    """It is paused between the fence and COMMIT, where it holds the row of its shard."""
    await stack.start(("alpha",), placements=1)
    first = stack.placements[0]
    paused = stack.add_placement()
    paused.start(ATOLL_FAILPOINT="placement.before_commit:pause:8")
    await paused.wait_ready()
    first.kill()
    await stack.leader(but=first)
    async with stack.client() as client:
        async with Load(client) as load:
            await eventually(lambda: frozen(paused))
            first.start()
            await stack.leader(but=paused)
            paused.resume()
            await load.reach(len(load.acknowledged) + 100)
            await eventually(lambda: "stepping down" in paused.log.read_text())
            await eventually(lambda: follows(paused))
        await quiet(stack, load.acknowledged)
    assert await epochs(stack) >= 2
    await check(stack, load.acknowledged)


async def test_leader_stopped_between_commits_finds_a_newer_epoch(stack: Stack) -> None:
    await stack.start(("alpha",), placements=2)
    first = await stack.leader()
    async with stack.client() as client:
        async with Load(client) as load:
            await load.reach(60)
            first.pause()
            await stack.leader(but=first)
            await load.reach(len(load.acknowledged) + 60)
            first.resume()
            await eventually(lambda: "stepping down" in first.log.read_text())
        await quiet(stack, load.acknowledged)
    await stack.leader()
    assert await epochs(stack) >= 2
    await check(stack, load.acknowledged)


async def test_a_late_commit_of_a_leader_that_heard_nothing_fails_at_the_fence(
    stack: Stack,
) -> None:
    """It is cut from etcd: by its own clock it leads for a minute yet, but has a successor."""
    port = int(stack.etcd_endpoints[0].rsplit(":", 1)[1])
    async with Proxy(port) as proxy:
        await stack.start(("alpha",), placements=1)
        second, first = stack.placements[0], stack.add_placement()
        first.start(ATOLL_ETCD_ENDPOINTS=f"http://{proxy.address}", ATOLL_ELECTION_TTL_S="60")
        await first.wait_ready()
        second.kill()
        await stack.leader(but=second)
        async with stack.client() as client:
            async with Load(client) as load:
                await load.reach(60)
                proxy.blackhole()
                await depose(stack)
                second.start()
                await stack.leader(but=first)
                await eventually(lambda: "stepping down" in first.log.read_text())
                await load.reach(len(load.acknowledged) + 60)
            await quiet(stack, load.acknowledged)
    (why,) = (line for line in first.log.read_text().splitlines() if "stepping down" in line)
    assert json.loads(why)["why"] == str(StaleEpoch())
    assert await epochs(stack) >= 2
    await check(stack, load.acknowledged)


async def test_take_over_while_a_slow_foreign_transaction_is_open(stack: Stack) -> None:
    await stack.start(("alpha",), placements=2)
    foreign = await asyncpg.connect(stack.dsn)
    transaction = foreign.transaction()
    await transaction.start()
    await foreign.fetchval("SELECT pg_current_xact_id()::text")
    async with stack.client() as client:
        async with Load(client) as load:
            await load.reach(60)
            first = await stack.leader()
            first.kill()
            await stack.leader(but=first)
            await load.reach(len(load.acknowledged) + 60)
        await quiet(stack, load.acknowledged)
    still_open = await value(
        stack, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND state LIKE 'idle in%'",
        foreign.get_server_pid(),
    )  # fmt: skip
    assert still_open == 1
    await transaction.rollback()
    await foreign.close()
    await check(stack, load.acknowledged)


async def test_reply_to_a_commit_is_lost(stack: Stack) -> None:
    """The leader reads where the fence stands before it plans again."""
    server = stack.dsn.rsplit(":", 1)[1].split("/")[0]
    async with Proxy(int(server)) as proxy:
        behind = stack.dsn.replace(f":{server}/", f":{proxy.port}/")
        await stack.start(("alpha",), placements=1)
        leader = stack.placements[0]
        leader.kill()
        leader.start(ATOLL_DSN=behind, ATOLL_FAILPOINT="placement.before_commit:pause:8")
        await stack.leader()
        async with stack.client() as client:
            async with Load(client) as load:
                await eventually(lambda: frozen(leader))
                proxy.drop_server_bytes()
                leader.resume()
                await eventually(lambda: proxy.dropped_bytes > 0)
                proxy.heal()
                await load.reach(len(load.acknowledged) + 40)
            await quiet(stack, load.acknowledged)
        assert metrics_of(leader)["atoll_placement_reloads_total"] >= 1
        await check(stack, load.acknowledged)


def frozen(process: ServiceProcess) -> bool:
    """Whether it is stopped by a signal."""
    stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii")
    return stat.rsplit(")", 1)[1].split()[0] == "T"


async def depose(stack: Stack) -> None:
    """Take away the leader's key in etcd; it hears of it if it can."""
    etcd = EtcdConnection(stack.etcd_endpoints)
    below = f"{stack.etcd_prefix}/elections/placement-"
    request = wire.DeleteRangeRequest(key=below.encode(), range_end=end_of(below))
    answer = await etcd.call(DELETE, request)
    await etcd.close()
    assert answer.deleted == 1


async def follows(placement: ServiceProcess) -> bool:
    """Whether a replica says that it does not lead."""
    return not await leads(placement)


async def epochs(stack: Stack) -> int:
    """How many terms have made attempts; on a busy machine a leader may lose one for no fault."""
    found = await value(
        stack, "SELECT count(DISTINCT (epoch_generation, epoch_revision)) FROM attempts"
    )
    return int(found)
