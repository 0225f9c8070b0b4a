"""The providers by name. A new one is a file here and a line in PROVIDERS."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from atoll.burst.providers import process, simulated
from atoll.burst.providers.site import BadProvider, Site, UnknownProvider
from atoll.ports.provider import Provider

__all__ = ["PROVIDERS", "BadProvider", "Make", "Site", "UnknownProvider", "make_provider"]

Make = Callable[[str, Mapping[str, Any], Site], Provider]


def _extra(name: str) -> Make:
    """The provider in the file `name`, whose library comes with the extra of that name."""

    def make(provider: str, given: Mapping[str, Any], site: Site) -> Provider:
        try:
            module = import_module(f"atoll.burst.providers.{name}")
            made: Provider = module.make(provider, given, site)
        except ImportError as error:
            raise BadProvider(
                f"provider {provider!r} needs what atoll[{name}] installs: {error}"
            ) from error
        return made

    return make


PROVIDERS: Final[Mapping[str, Make]] = {
    "ec2": _extra("ec2"),
    "process": process.make,
    "simulated": simulated.make,
    "skypilot": _extra("skypilot"),
}


def make_provider(name: str, given: Mapping[str, Any], site: Site) -> Provider:
    """The provider `name`; `type` among its settings says which, if not its name.

    Raises UnknownProvider and BadProvider. Nothing is asked of anybody yet.
    """
    kind = given.get("type", name)
    make = PROVIDERS.get(kind)
    if make is None:
        known = ", ".join(sorted(PROVIDERS))
        raise UnknownProvider(f"provider {name!r}: type {kind!r} is unknown; there are: {known}")
    return make(name, {key: value for key, value in given.items() if key != "type"}, site)
