"""What every provider has to do, whoever it is."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from atoll.burst.providers.registry import PROVIDERS
from atoll.core.model.burst import Offer
from atoll.ports.provider import (
    NoCapacity,
    Phase,
    Provider,
    ProviderRefused,
    ProviderUnavailable,
    Sighting,
)
from tests.services.burst.providers.grounds import GROUNDS, Ground
from tests.services.burst.providers.orders import order

MOST_LOOKS = 200


@pytest.fixture(params=sorted(PROVIDERS))
async def ground(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ground]:
    """Every entry of the registry; one without a ground fails here."""
    found = GROUNDS[request.param]()
    await found.begin(tmp_path)
    yield found
    await found.end()


async def some(provider: Provider) -> Offer:
    return (await provider.offers())[0]


async def until_gone(ground: Ground, provider: Provider, token: str) -> Sighting:
    for _ in range(MOST_LOOKS):
        (seen,) = await provider.describe([token])
        if seen.phase is Phase.GONE:
            return seen
        await ground.pass_time()
    raise AssertionError(f"{token} is not gone")


async def test_offers_are_its_own_and_distinct(ground: Ground) -> None:
    provider = ground.broker()
    offers = await provider.offers()
    assert offers
    assert {offer.provider for offer in offers} == {provider.name}
    assert len({offer.key for offer in offers}) == len(offers)
    assert all(offer.price > 0 and offer.cpu_milli > 0 and offer.region for offer in offers)
    await provider.close()


async def test_the_same_token_is_the_same_instance_for_another_broker_too(ground: Ground) -> None:
    first, second = ground.broker(), ground.broker()
    offer = await some(first)
    made = await first.create(order("one", offer))
    again = await second.create(order("one", offer))
    assert made.token == again.token == "one"
    assert made.provider_id == again.provider_id != ""
    assert [s.provider_id for s in await second.list_tagged()] == [made.provider_id]
    await first.close()
    await second.close()


async def test_creations_at_once_under_one_token_are_one_instance(ground: Ground) -> None:
    first, second = ground.broker(), ground.broker()
    offer = await some(first)
    made = await asyncio.gather(
        *(each.create(order("one", offer)) for each in (first, second, first, second))
    )
    assert len({seen.provider_id for seen in made}) == 1
    assert len(await first.list_tagged()) == 1
    await first.close()
    await second.close()


async def test_unknown_tokens_are_left_out(ground: Ground) -> None:
    provider = ground.broker()
    await provider.create(order("one", await some(provider)))
    assert [seen.token for seen in await provider.describe(["none", "one"])] == ["one"]
    assert not await provider.describe(["none"])
    assert not await provider.describe([])
    await provider.close()


async def test_all_that_is_not_gone_is_listed(ground: Ground) -> None:
    provider = ground.broker()
    offer = await some(provider)
    assert not await provider.list_tagged()
    made = [await provider.create(order(token, offer)) for token in ("one", "two", "three")]
    seen = await provider.list_tagged()
    assert {s.token for s in seen} == {"one", "two", "three"}
    assert {s.provider_id for s in seen} == {s.provider_id for s in made}
    assert all(s.zone == offer.zone and s.instance_type == offer.instance_type for s in seen)
    assert all(s.created_at > 0 for s in seen)
    await provider.terminate(made[1].provider_id)
    await until_gone(ground, provider, "two")
    assert {s.token for s in await provider.list_tagged()} == {"one", "three"}
    await provider.close()


async def test_it_can_be_ended_twice_and_is_gone_only_then(ground: Ground) -> None:
    provider = ground.broker()
    made = await provider.create(order("one", await some(provider)))
    await ground.pass_time()
    (seen,) = await provider.describe(["one"])
    assert seen.phase in {Phase.PENDING, Phase.RUNNING}
    await provider.terminate(made.provider_id)
    await provider.terminate(made.provider_id)
    gone = await until_gone(ground, provider, "one")
    assert gone.provider_id == made.provider_id
    await provider.terminate(made.provider_id)
    assert not await provider.list_tagged()
    await provider.close()


async def test_what_is_gone_is_not_created_again_under_its_token(ground: Ground) -> None:
    provider = ground.broker()
    offer = await some(provider)
    made = await provider.create(order("one", offer))
    await provider.terminate(made.provider_id)
    await until_gone(ground, provider, "one")
    assert (await provider.create(order("one", offer))).phase is Phase.GONE
    assert not await provider.list_tagged()
    await provider.close()


async def test_to_end_what_never_was_is_no_error(ground: Ground) -> None:
    provider = ground.broker()
    made = await provider.create(order("one", await some(provider)))
    await provider.terminate(made.provider_id[:-1] + "~")
    assert len(await provider.list_tagged()) == 1
    await provider.close()


async def test_without_capacity_nothing_is_created(ground: Ground) -> None:
    offer = await some(ground.broker())
    await ground.no_capacity()
    provider = ground.broker()
    with pytest.raises(NoCapacity):
        await provider.create(order("one", offer))
    assert not await provider.list_tagged()
    await provider.close()


async def test_a_refusal_creates_nothing(ground: Ground) -> None:
    offer = await some(ground.broker())
    await ground.refuse()
    provider = ground.broker()
    with pytest.raises(ProviderRefused):
        await provider.create(order("one", offer))
    assert not await provider.list_tagged()
    await provider.close()


async def test_silence_is_not_an_end(ground: Ground) -> None:
    offer = await some(ground.broker())
    await ground.fall_silent()
    provider = ground.broker()
    with pytest.raises(ProviderUnavailable):
        await provider.offers()
    with pytest.raises(ProviderUnavailable):
        await provider.create(order("one", offer))
    with pytest.raises(ProviderUnavailable):
        await provider.describe(["one"])
    with pytest.raises(ProviderUnavailable):
        await provider.list_tagged()
    with pytest.raises(ProviderUnavailable):
        await provider.terminate("some")
    await provider.close()
