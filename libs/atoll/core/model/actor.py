"""On whose behalf a use case runs."""

from dataclasses import dataclass

from atoll.core.model.ids import Tenant


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks, and whose jobs and queues that person sees."""

    principal: str
    tenant: Tenant
