"""What only real etcd can do to an election, and the client underneath."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import trustme

from atoll.adapters.etcd import EtcdConnection, EtcdRejected, EtcdUnavailable, TlsFiles
from atoll.adapters.etcd import keys as etcd_keys
from atoll.adapters.etcd.election import GENERATION_KEY
from atoll.adapters.etcd.errors import Compacted, LeaseLost
from atoll.adapters.etcd.lease import Lease
from atoll.adapters.etcd.methods import COMPACT, DELETE, PUT, STATUS
from atoll.adapters.etcd.watch import events, until_gone
from atoll.adapters.etcd.wire import etcdwire_pb2 as wire
from atoll.adapters.system import SystemClock
from atoll.runtime.servers import EtcdServer, EtcdTls
from tests.adapters.election_worlds import TTL_S, EtcdWorld, etcd_world
from tests.support.servers import EtcdLike, EtcdMemberLike
from tests.support.waiting import eventually

CLOCK = SystemClock()


@pytest.fixture
async def world(etcd_server: EtcdLike, etcd_prefix: str) -> AsyncIterator[EtcdWorld]:
    """Elections over one member."""
    async with etcd_world(etcd_server, etcd_prefix) as real:
        yield real


@pytest.fixture
async def three(etcd_cluster: EtcdLike, etcd_prefix: str) -> AsyncIterator[EtcdWorld]:
    """Elections over three members."""
    async with etcd_world(etcd_cluster, etcd_prefix) as real:
        yield real


async def test_a_deleted_key_is_a_lost_leadership(world: EtcdWorld) -> None:
    first = await (await world.candidate("a")).campaign()
    await world.delete_key("a")
    await world.until(first.lost())
    assert not first.valid()
    second = await world.until((await world.candidate("b")).campaign())
    assert second.epoch > first.epoch


async def test_a_candidate_whose_key_was_deleted_in_line_stands_again(world: EtcdWorld) -> None:
    first = await (await world.candidate("a")).campaign()
    waiting = asyncio.ensure_future((await world.candidate("b")).campaign())
    await eventually(lambda: has_key(world, "b"))
    key = await world.key_of("b")
    await world.delete_key("b")
    await first.resign()
    second = await world.until(waiting)
    assert second.valid()
    assert await world.key_of("b") != key


async def test_a_candidate_outlasts_the_compaction_of_what_it_watched(world: EtcdWorld) -> None:
    first = await (await world.candidate("a")).campaign()
    waiting = asyncio.ensure_future((await world.candidate("b")).campaign())
    await eventually(lambda: has_key(world, "b"))
    for proxy in world.proxies["b"]:
        proxy.refuse()
    await first.resign()
    await compact(world.direct, world.prefix)
    await world.heal("b")
    assert (await world.until(waiting)).epoch > first.epoch


async def test_a_watch_from_a_compacted_revision_says_so(world: EtcdWorld) -> None:
    key = f"{world.prefix}/watched"
    await etcd_keys.put(world.direct, key, "1")
    before = (await etcd_keys.get(world.direct, key)).revision
    await etcd_keys.put(world.direct, key, "2")
    await compact(world.direct, world.prefix)
    async with aclosing(events(world.direct, key, after=before - 1, clock=CLOCK)) as seen:
        with pytest.raises(Compacted):
            await world.until(anext(seen))
    gone = asyncio.ensure_future(until_gone(world.direct, key, revision=before - 1, clock=CLOCK))
    await asyncio.sleep(0.1)
    assert not gone.done()
    await world.direct.call(DELETE, wire.DeleteRangeRequest(key=key.encode()))
    await world.until(gone)


async def test_a_watch_goes_on_where_it_broke_each_event_once(world: EtcdWorld) -> None:
    await world.candidate("watcher")
    (proxy,) = world.proxies["watcher"]
    etcd = EtcdConnection([proxy.address])
    key = f"{world.prefix}/watched"
    start = (await etcd_keys.get(world.direct, key)).revision
    seen: list[str] = []

    async def watch() -> None:
        async with aclosing(events(etcd, key, after=start, clock=CLOCK)) as stream:
            async for event in stream:
                seen.append(event.kv.value.decode())  # noqa: PERF401 looked at meanwhile

    watching = asyncio.ensure_future(watch())
    for number in range(5):
        await etcd_keys.put(world.direct, key, str(number))
        await eventually(lambda: len(seen) >= 1)
        proxy.reset()
    await eventually(lambda: len(seen) == 5)
    assert seen == ["0", "1", "2", "3", "4"]
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await etcd.close()


async def test_a_process_that_slept_past_its_lease_knows_at_once(world: EtcdWorld) -> None:
    leadership = await (await world.candidate("a")).campaign()
    time.sleep(TTL_S)  # noqa: ASYNC251 the whole process stands still
    assert not leadership.valid()
    await world.until(leadership.lost())


async def test_a_generation_that_is_no_number_is_refused(world: EtcdWorld) -> None:
    await etcd_keys.put(world.direct, GENERATION_KEY, "two")
    with pytest.raises(EtcdRejected, match="not a number"):
        await world.until((await world.candidate("a")).campaign())


async def test_a_repeated_create_finds_the_first_one(world: EtcdWorld) -> None:
    lease = await Lease.grant(world.direct, CLOCK, ttl_s=TTL_S)
    created = [
        await etcd_keys.create_or_read(world.direct, f"{world.prefix}/k", "v", lease=lease.id)
        for _ in range(2)
    ]
    assert created[0] == created[1]
    await lease.revoke()
    with pytest.raises(LeaseLost):
        await etcd_keys.put(world.direct, f"{world.prefix}/k", "v", lease=lease.id)


async def test_a_killed_etcd_leader_changes_no_leadership(three: EtcdWorld) -> None:
    three.ttl_s = 2 * TTL_S  # a new etcd leader takes up to a second, on a busy machine two
    candidate = await three.candidate("a")
    leadership = await three.until(candidate.campaign())
    for _ in range(2):
        victim = await etcd_leader(three)
        victim.kill()
        await asyncio.sleep(1.5 * three.ttl_s)
        assert leadership.valid()
        await victim.start()
    assert await candidate.leader() == "a"


async def test_without_quorum_a_leader_steps_down_and_stands_again(three: EtcdWorld) -> None:
    candidate = await three.candidate("a")
    first = await three.until(candidate.campaign())
    await three.go_down()
    await three.until(first.lost())
    with pytest.raises(EtcdUnavailable):
        await candidate.leader()
    again = asyncio.ensure_future(candidate.campaign())
    await three.come_back()
    assert (await three.until(again)).epoch > first.epoch
    assert not first.valid()


async def test_a_standby_leaves_a_member_that_fell_silent(three: EtcdWorld) -> None:
    silent, *others = three.cluster.members
    etcd = EtcdConnection([*silent.endpoints, *others[0].endpoints])
    standby = three.election(etcd, "b")
    first = await three.election(three.direct, "a").campaign()
    waiting = asyncio.ensure_future(standby.campaign())
    await eventually(lambda: has_key(three, "b"))
    silent.pause()
    await first.resign()
    second = await three.until(waiting)
    assert second.epoch > first.epoch
    await second.resign()
    await etcd.close()


async def test_calls_go_on_at_the_next_endpoint_and_say_when_there_is_none(
    three: EtcdWorld,
) -> None:
    first, second, third = three.cluster.members
    etcd = EtcdConnection([f"http://{member.endpoints[0]}" for member in (first, second)])
    await etcd_keys.get(etcd, "/")
    first.kill()
    await eventually(lambda: answers(etcd))
    second.pause()
    with pytest.raises(EtcdUnavailable, match="etcd at "):
        await etcd_keys.get(etcd, "/")
    second.resume()
    await eventually(lambda: answers(etcd))
    assert third.running()
    await etcd.close()


async def test_tls_lets_in_who_has_a_certificate_of_the_same_authority(
    server_folder: Path,
) -> None:
    files = certificates(server_folder)
    server = EtcdServer(server_folder / "etcd-tls", tls=EtcdTls(*files))
    async with server:
        endpoints = [f"https://{endpoint}" for endpoint in server.endpoints]
        ca, cert, key = files
        with_one = EtcdConnection(endpoints, tls=TlsFiles(ca, cert, key))
        without = EtcdConnection(endpoints, tls=TlsFiles(ca))
        in_clear = EtcdConnection(server.endpoints)
        await etcd_keys.put(with_one, "k", "v")
        assert (await etcd_keys.get(with_one, "k")).entries[0].value == "v"
        for refused in (without, in_clear):
            with pytest.raises(EtcdUnavailable):
                await etcd_keys.get(refused, "k")
        for connection in (with_one, without, in_clear):
            await connection.close()


@pytest.mark.parametrize(
    ("endpoints", "tls"),
    [
        ([], None),
        (["ftp://127.0.0.1:1"], None),
        (["https://127.0.0.1:1"], None),
        (["http://127.0.0.1:1"], TlsFiles()),
    ],
    ids=["none", "another scheme", "https without files", "files without https"],
)
def test_endpoints_that_make_no_sense_are_refused(
    endpoints: list[str], tls: TlsFiles | None
) -> None:
    with pytest.raises(ValueError, match=r"etcd|https"):
        EtcdConnection(endpoints, tls=tls)


async def has_key(world: EtcdWorld, identity: str) -> bool:
    found = await etcd_keys.list_below(world.direct, f"{world.prefix}/e/")
    return any(entry.value == identity for entry in found.entries)


async def answers(etcd: EtcdConnection) -> bool:
    try:
        await etcd_keys.get(etcd, "/")
    except EtcdUnavailable:
        return False
    return True


async def compact(etcd: EtcdConnection, prefix: str) -> None:
    """Forget everything before now."""
    put = await etcd.call(PUT, wire.PutRequest(key=f"{prefix}/later".encode()))
    await etcd.call(COMPACT, wire.CompactionRequest(revision=put.header.revision, physical=True))


async def etcd_leader(world: EtcdWorld) -> EtcdMemberLike:
    """The member that leads the etcd cluster itself."""
    for member in world.cluster.members:
        etcd = EtcdConnection(member.endpoints)
        status = await etcd.call(STATUS, wire.StatusRequest())
        await etcd.close()
        if status.leader == status.header.member_id:
            return member
    raise AssertionError("etcd has no leader")


def certificates(folder: Path) -> tuple[Path, Path, Path]:
    """An authority, and one certificate of it for both ends: CA, certificate, key."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    files = folder / "ca.pem", folder / "cert.pem", folder / "key.pem"
    authority.cert_pem.write_to_path(files[0])
    issued.cert_chain_pems[0].write_to_path(files[1])
    issued.private_key_pem.write_to_path(files[2])
    for file in files:
        file.chmod(0o644)
    return files
