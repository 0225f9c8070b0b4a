"""The backends by name. A new one is a file here and a line in BACKENDS."""

from collections.abc import Callable, Mapping
from typing import Final

from atoll.agent.backends import local, simulated
from atoll.agent.settings import AgentSettings
from atoll.ports.backend import Backend
from atoll.ports.clock import Clock

Make = Callable[[AgentSettings, Clock], Backend]

BACKENDS: Final[Mapping[str, Make]] = {
    "local": local.make,
    "simulated": simulated.make,
}


class UnknownBackend(Exception):
    """There is no backend of that name."""


def make_backend(settings: AgentSettings, clock: Clock) -> Backend:
    """The backend that the settings name; raises UnknownBackend, or what is wrong with it."""
    make = BACKENDS.get(settings.backend)
    if make is None:
        known = ", ".join(sorted(BACKENDS))
        raise UnknownBackend(f"backend {settings.backend!r} is unknown; there are: {known}")
    return make(settings, clock)
