"""EC2 over HTTP against moto's server: launches, prices, notices, errors, and what is told."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import boto3
import pytest
import yaml

from atoll.burst.providers import ec2
from atoll.core.model.burst import Market, Offer
from atoll.ports.provider import NoCapacity, Phase, Provider, ProviderRefused, ProviderUnavailable
from tests.services.burst.providers.moto_ground import IMAGE, MotoGround
from tests.services.burst.providers.orders import DEPLOYMENT, order

ERRORS = {
    "InsufficientInstanceCapacity": NoCapacity,
    "SpotMaxPriceTooLow": NoCapacity,
    "UnfulfillableCapacity": NoCapacity,
    "VcpuLimitExceeded": ProviderRefused,
    "MaxSpotInstanceCountExceeded": ProviderRefused,
    "UnauthorizedOperation": ProviderRefused,
    "InvalidAMIID.NotFound": ProviderRefused,
    "RequestLimitExceeded": ProviderUnavailable,
    "Unavailable": ProviderUnavailable,
}


class Request:
    """A spot request, as far as moto is asked about it."""

    spot_instance_request_id = "sir-1"
    status = {"Code": "fulfilled", "UpdateTime": "2026-12-01T00:00:00.000Z"}  # noqa: RUF012

    def get_filter_value(self, name: str) -> str:
        assert name == "spot-instance-request-id"
        return self.spot_instance_request_id


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[MotoGround]:
    """One server with nothing in it."""
    found = MotoGround()
    await found.begin(tmp_path)
    yield found
    await found.end()


async def offer_of(broker: Provider, market: Market, kind: str = "g4dn.xlarge") -> Offer:
    offers = await broker.offers()
    return next(o for o in offers if o.market is market and o.instance_type == kind)


async def test_offers_have_sizes_and_prices(ground: MotoGround) -> None:
    broker = ground.broker(spot_margin=1.0)
    paid, spot = [await offer_of(broker, market) for market in Market]
    assert (paid.kind, paid.devices, paid.cpu_milli, paid.price) == ("T4", 1, 4000, 526_000)
    assert paid.memory_bytes == 16 << 30
    assert (spot.price, spot.notice_s) == (20, 120)  # moto's price is $0.00001
    plain = await offer_of(broker, Market.ON_DEMAND, "m5.large")
    assert (plain.kind, plain.devices) == ("", 0)
    assert {o.zone for o in await broker.offers()} == {"us-east-1b", "us-east-1c"}
    await broker.close()


async def test_a_launch_carries_token_tags_market_and_user_data(ground: MotoGround) -> None:
    boot = {"image": "atoll:1", "setup": ["install-docker"], "at_most_h": 2}
    broker = ground.broker(boot=boot, disk_gib=50)
    made = await broker.create(order("t1", await offer_of(broker, Market.SPOT)))
    (asked,) = ground.launches.asked
    assert asked["client_token"] == "t1"
    assert asked["tags"]["instance"]["atoll:deployment"] == DEPLOYMENT
    assert asked["tags"]["instance"] == asked["tags"]["volume"]
    assert asked["instance_market_options"] == "spot"
    assert asked["instance_initiated_shutdown_behavior"] == "terminate"
    assert made.zone == "us-east-1b"
    told = yaml.safe_load(asked["user_data"].decode())
    (config,) = [f for f in told["write_files"] if f["path"] == "/etc/atoll/agent.yaml"]
    agent = yaml.safe_load(config["content"])["agent"]
    assert config["permissions"] == "0600"
    assert (agent["cluster"], agent["join_token"]) == ("burst-t1", "ab" * 32)
    assert agent["dispatch"] == ["dispatch.example.org:7074"]
    assert told["runcmd"][:2] == ["shutdown -P +120", "install-docker"]
    assert "--gpus all" in told["runcmd"][-1]
    await broker.close()


async def test_the_same_token_with_other_settings_is_the_first_instance(
    ground: MotoGround,
) -> None:
    first = ground.broker()
    offer = await offer_of(first, Market.ON_DEMAND)
    made = await first.create(order("t1", offer))
    second = ground.broker(disk_gib=80)
    assert (await second.create(order("t1", offer))).provider_id == made.provider_id
    await first.close()
    await second.close()


async def test_a_launch_that_cannot_be_found_yet_is_neither_made_again_nor_refused(
    ground: MotoGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = ground.broker(), ground.broker(key_name="other")
    offer = await offer_of(first, Market.ON_DEMAND)
    await first.create(order("t1", offer))

    async def nothing(_: object, __: object) -> tuple[()]:
        return ()

    with monkeypatch.context() as change:
        change.setattr(ec2.Ec2Provider, "describe", nothing)
        with pytest.raises(ProviderUnavailable, match="IdempotentParameterMismatch"):
            await second.create(order("t1", offer))
    assert len(await second.list_tagged()) == 1
    await first.close()
    await second.close()


async def test_errors_have_the_ports_words(ground: MotoGround) -> None:
    broker = ground.broker()
    offer = await offer_of(broker, Market.ON_DEMAND)
    for code, raised in ERRORS.items():
        ground.launches.error = code
        with pytest.raises(raised, match=code):
            await broker.create(order("t1", offer))
    assert not await broker.list_tagged()
    await broker.close()


async def test_an_interruption_is_seen_in_the_spot_request(ground: MotoGround) -> None:
    broker = ground.broker()
    made = await broker.create(order("t1", await offer_of(broker, Market.SPOT)))
    request = Request()
    ground.backend.spot_instance_requests[request.spot_instance_request_id] = request
    instance = ground.backend.get_instance(made.provider_id)
    instance.spot_instance_request_id = request.spot_instance_request_id
    (seen,) = await broker.describe(["t1"])
    assert seen.interrupted_at == 0
    request.status = request.status | {"Code": "marked-for-termination"}
    (seen,) = await broker.list_tagged()
    assert seen.interrupted_at == datetime(2026, 12, 1, tzinfo=UTC).timestamp() + 120
    assert seen.phase is Phase.RUNNING
    await broker.close()


async def test_many_are_read_page_by_page(ground: MotoGround) -> None:
    broker = ground.broker()
    offer = await offer_of(broker, Market.ON_DEMAND, "m5.large")
    tokens = [f"t{n}" for n in range(130)]
    user = order("t0", offer)
    for token in tokens:  # straight at moto: 130 launches over HTTP take their time
        tags = {"instance": dict(user.tags) | {"atoll:token": token}}
        ground.backend.run_instances(
            IMAGE,
            1,
            "",
            [],
            instance_type="m5.large",
            is_instance_type_default=False,
            tags=tags,
            client_token=token,
            placement="us-east-1b",
        )
    assert {s.token for s in await broker.list_tagged()} == set(tokens)
    assert {s.token for s in await broker.describe(tokens)} == set(tokens)
    await broker.close()


async def test_without_credentials_nobody_is_asked(
    ground: MotoGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boto3, "Session", boto3.session.Session)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    broker = ground.broker()
    with pytest.raises(ProviderUnavailable, match="credentials"):
        await broker.offers()
    await broker.close()


async def test_an_answer_that_does_not_come_in_time_is_no_answer(tmp_path: Path) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    ground = MotoGround()
    await ground.begin(tmp_path)
    broker = ground.broker(endpoint_url=url, timeout_s=0.1)
    with pytest.raises(ProviderUnavailable):
        await broker.list_tagged()
    await broker.close()
    await ground.end()
    server.close()
