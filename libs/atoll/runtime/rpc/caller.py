"""Who calls. Every request carries a principal and a tenant, if only the default ones."""

from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from atoll.core.model.ids import Tenant
from atoll.runtime import tracing

PRINCIPAL_KEY: Final = "x-atoll-principal"
TENANT_KEY: Final = "x-atoll-tenant"
MOST_CHARACTERS: Final = 256
DEFAULT_TENANT: Final = Tenant("default")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who made a call, on whose behalf, and in which trace."""

    principal: str = "anonymous"
    tenant: Tenant = DEFAULT_TENANT
    traceparent: str = ""


NOBODY: Final = Caller()
current: Final[ContextVar[Caller]] = ContextVar("caller", default=NOBODY)
"""The caller of the call that this task serves."""


def caller_of(metadata: Iterable[tuple[str, str | bytes]]) -> Caller:
    """The caller that a call's metadata tells of."""
    principal, tenant, parent = NOBODY.principal, NOBODY.tenant, ""
    for key, value in metadata:
        if not value or isinstance(value, bytes):
            continue
        if key == PRINCIPAL_KEY:
            principal = value[:MOST_CHARACTERS]
        elif key == TENANT_KEY:
            tenant = Tenant(value[:MOST_CHARACTERS])
        elif key == tracing.TRACEPARENT:
            parent = value
    return Caller(principal, tenant, parent)
