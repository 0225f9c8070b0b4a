"""Who calls. Every request carries a principal and a tenant, if only the default ones."""

from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from atoll.core.model.ids import Tenant
from atoll.runtime import tracing

PRINCIPAL_KEY: Final = "x-atoll-principal"
TENANT_KEY: Final = "x-atoll-tenant"
REQUEST_KEY: Final = "x-request-id"
KEYS: Final = frozenset({PRINCIPAL_KEY, TENANT_KEY, REQUEST_KEY, tracing.TRACEPARENT})
MOST_CHARACTERS: Final = 256
DEFAULT_TENANT: Final = Tenant("default")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who made a call, on whose behalf, and in which trace."""

    principal: str = "anonymous"
    tenant: Tenant = DEFAULT_TENANT
    traceparent: str = ""
    request_id: str = ""
    """The caller's own name for the call, to find it in the log."""
    method: str = ""
    """`package.Service/Method`."""


NOBODY: Final = Caller()
current: Final[ContextVar[Caller]] = ContextVar("caller", default=NOBODY)
"""The caller of the call that this task serves."""


def caller_of(metadata: Iterable[tuple[str, str | bytes]], *, method: str = "") -> Caller:
    """The caller that a call's metadata tells of."""
    told = {
        key: value[:MOST_CHARACTERS]
        for key, value in metadata
        if key in KEYS and value and isinstance(value, str)
    }
    return Caller(
        principal=told.get(PRINCIPAL_KEY, NOBODY.principal),
        tenant=Tenant(told.get(TENANT_KEY, NOBODY.tenant)),
        traceparent=told.get(tracing.TRACEPARENT, ""),
        request_id=told.get(REQUEST_KEY, ""),
        method=method,
    )


def log_fields() -> dict[str, str]:
    """What the log says of the call that is being served; nothing outside of calls."""
    who = current.get()
    if who is NOBODY:
        return {}
    named = {"rpc_method": who.method, "request_id": who.request_id}
    return {
        "principal": who.principal,
        "tenant": who.tenant,
        **{key: value for key, value in named.items() if value},
    }
