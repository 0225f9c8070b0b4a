"""Rents instances of Amazon EC2, spot or on demand.

The token is the ClientToken of the launch and a tag. Spot instances are asked for with the
offer's price as the most that is paid, so that no hour costs more than was bound for it. An
interruption is seen in the state of the spot request. The notice that the machine itself can
read in its metadata comes two minutes before the end as well, and is not waited for.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from botocore.exceptions import ClientError

from atoll.burst.providers.boot import cloud_config
from atoll.burst.providers.ec2_calls import Calls, code_of, launching
from atoll.burst.providers.ec2_offers import NOTICE_S, Ec2Offers, Ec2Settings, unix
from atoll.burst.providers.site import DEPLOYMENT_TAG, TOKEN_TAG, Site, read
from atoll.core.model.burst import MICROS, Market, Offer
from atoll.ports.provider import CreateOrder, Phase, ProviderUnavailable, Sighting

MOST_VALUES: Final = 100
"""Tokens in one filter."""
PHASES: Final = {
    "pending": Phase.PENDING,
    "running": Phase.RUNNING,
    "terminated": Phase.GONE,
}
"""Other states are on the way to the end."""
MARKED: Final = frozenset({"marked-for-termination", "marked-for-stop"})


class Ec2Provider:
    """A `Provider` over one region."""

    def __init__(self, name: str, settings: Ec2Settings, site: Site) -> None:
        self.name = name
        self._settings = settings
        self._site = site
        self._calls = Calls(
            region=settings.region,
            profile=settings.profile,
            endpoint_url=settings.endpoint_url,
            timeout_s=settings.timeout_s,
        )
        self._offers = Ec2Offers(name, settings, self._calls, clock=site.clock)

    async def offers(self) -> Sequence[Offer]:
        """Every type in every zone and market, with the prices of now."""
        return await self._offers.read()

    async def create(self, order: CreateOrder) -> Sighting:
        """Launch it, or find what the same token launched before."""
        # EC2 remembers a token for a day or so, the tag stays as long as the instance.
        if known := await self.describe([order.token]):
            return known[0]
        wanted = await self._launch(order)
        try:
            with launching():
                launched = await self._calls.call("run_instances", **wanted)
        except ClientError as error:  # launched with other settings than now, and not yet found
            raise ProviderUnavailable(str(error)) from error
        return _sighting(launched["Instances"][0], {})

    async def describe(self, tokens: Sequence[str]) -> Sequence[Sighting]:
        """What became of them."""
        parts = [list(tokens[n : n + MOST_VALUES]) for n in range(0, len(tokens), MOST_VALUES)]
        seen = [await self._find({f"tag:{TOKEN_TAG}": part}) for part in parts]
        return tuple(sighting for part in seen for sighting in part)

    async def list_tagged(self) -> Sequence[Sighting]:
        """All of this deployment that are not gone."""
        return tuple(s for s in await self._find({}) if s.phase is not Phase.GONE)

    async def terminate(self, provider_id: str) -> None:
        """End it; of one that is long gone EC2 knows nothing."""
        try:
            await self._calls.call("terminate_instances", InstanceIds=[provider_id])
        except ClientError as error:
            if not code_of(error).startswith("InvalidInstanceID"):
                raise ProviderUnavailable(str(error)) from error

    async def close(self) -> None:
        """Let connections and threads go."""
        await self._calls.close()

    async def _find(self, wanted: Mapping[str, list[str]]) -> list[Sighting]:
        filters = {**wanted, f"tag:{DEPLOYMENT_TAG}": [self._site.deployment]}
        found = await self._calls.pages(
            "describe_instances",
            "Reservations",
            Filters=[{"Name": name, "Values": values} for name, values in filters.items()],
        )
        instances = [each for reservation in found for each in reservation["Instances"]]
        notices = await self._notices(instances)
        return [_sighting(each, notices) for each in instances]

    async def _notices(self, instances: Iterable[Mapping[str, Any]]) -> dict[str, float]:
        """When instances are taken back, by spot request; without a notice it is not in it."""
        ids = [
            each["SpotInstanceRequestId"]
            for each in instances
            if each.get("SpotInstanceRequestId") and each["State"]["Name"] in {"pending", "running"}
        ]
        parts = [ids[n : n + MOST_VALUES] for n in range(0, len(ids), MOST_VALUES)]
        found = [await self._spot_requests(part) for part in parts]
        return {
            each["SpotInstanceRequestId"]: unix(each["Status"]["UpdateTime"]) + NOTICE_S
            for part in found
            for each in part
            if each["Status"]["Code"] in MARKED
        }

    async def _spot_requests(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        return await self._calls.pages(
            "describe_spot_instance_requests",
            "SpotInstanceRequests",
            Filters=[{"Name": "spot-instance-request-id", "Values": list(ids)}],
        )

    async def _launch(self, order: CreateOrder) -> dict[str, Any]:
        """Arguments of the call."""
        boot = self._settings.boot
        try:
            user_data = await asyncio.to_thread(cloud_config, order, self._site, boot)
        except OSError as error:
            raise ProviderUnavailable(f"its certificates cannot be read: {error}") from error
        tags = [{"Key": key, "Value": text} for key, text in sorted(order.tags.items())]
        tags.append({"Key": "Name", "Value": order.cluster})
        return {
            "ClientToken": order.token,
            "ImageId": self._settings.image_id,
            "InstanceType": order.offer.instance_type,
            "MinCount": 1,
            "MaxCount": 1,
            "Placement": {"AvailabilityZone": order.offer.zone},
            "UserData": user_data,
            "InstanceInitiatedShutdownBehavior": "terminate",
            "MetadataOptions": {"HttpTokens": "required"},
            "TagSpecifications": [
                {"ResourceType": what, "Tags": tags} for what in ("instance", "volume")
            ],
            **dict(self._wishes(order.offer)),
        }

    def _wishes(self, offer: Offer) -> Iterator[tuple[str, Any]]:
        settings = self._settings
        if offer.market is Market.SPOT:
            yield "InstanceMarketOptions", _spot(offer)
        if subnet := settings.zones.get(offer.zone):
            yield "SubnetId", subnet
        if settings.security_groups:
            yield "SecurityGroupIds", list(settings.security_groups)
        if settings.key_name:
            yield "KeyName", settings.key_name
        if settings.instance_profile:
            yield "IamInstanceProfile", {"Name": settings.instance_profile}
        if settings.disk_gib:
            disk = {"VolumeSize": settings.disk_gib, "DeleteOnTermination": True}
            yield "BlockDeviceMappings", [{"DeviceName": settings.root_device, "Ebs": disk}]


def make(name: str, given: Mapping[str, Any], site: Site) -> Ec2Provider:
    """One region; raises BadProvider."""
    return Ec2Provider(name, read(Ec2Settings, name, given), site)


def _spot(offer: Offer) -> dict[str, Any]:
    options = {
        "SpotInstanceType": "one-time",
        "InstanceInterruptionBehavior": "terminate",
        "MaxPrice": f"{offer.price / MICROS:.6f}",
    }
    return {"MarketType": "spot", "SpotOptions": options}


def _sighting(instance: Mapping[str, Any], notices: Mapping[str, float]) -> Sighting:
    """`notices`: unix seconds by spot request."""
    tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", ())}
    return Sighting(
        token=tags.get(TOKEN_TAG, ""),
        provider_id=instance["InstanceId"],
        phase=PHASES.get(instance["State"]["Name"], Phase.ENDING),
        zone=instance.get("Placement", {}).get("AvailabilityZone", ""),
        instance_type=instance["InstanceType"],
        created_at=unix(instance["LaunchTime"]),
        interrupted_at=notices.get(instance.get("SpotInstanceRequestId", ""), 0.0),
        message=instance.get("StateReason", {}).get("Message", ""),
    )
