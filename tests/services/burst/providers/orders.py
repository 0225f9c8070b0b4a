"""Orders for the tests of providers."""

from atoll.burst.providers.site import CLUSTER_TAG, DEPLOYMENT_TAG, TOKEN_TAG
from atoll.core.model.burst import Offer
from atoll.ports.provider import CreateOrder

DEPLOYMENT = "tests"


def order(token: str, offer: Offer, *, join_token: str = "ab" * 32) -> CreateOrder:
    """An order of what is offered."""
    cluster = f"burst-{token}"
    tags = {TOKEN_TAG: token, CLUSTER_TAG: cluster, DEPLOYMENT_TAG: DEPLOYMENT}
    return CreateOrder(token=token, offer=offer, cluster=cluster, join_token=join_token, tags=tags)
