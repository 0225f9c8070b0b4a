"""Settings of the client: given by the caller, over environment, over file, over defaults.

The file is YAML: the section `client` of ATOLL_CONFIG, else of ~/.config/atoll/config.yaml. What is
still missing then comes from the control plane that runs on this machine, if there is one.
"""

import difflib
import getpass
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args

from atoll.client.endpoints import DEFAULT_NAME, Endpoints, endpoints_file, read_endpoints
from atoll.core.model.errors import ErrorCode, FieldViolation, InvalidInput

TlsMode = Literal["auto", "on", "off"]
DEFAULT_ENDPOINT: Final = "127.0.0.1:7070"
DEFAULT_PLACEMENT: Final = "127.0.0.1:7072"
DEFAULT_RESERVATION: Final = "127.0.0.1:7076"
DEFAULT_BURST: Final = "127.0.0.1:7078"
SECTION: Final = "client"
DEFAULTS: Final = Endpoints(
    DEFAULT_NAME,
    DEFAULT_ENDPOINT,
    placement=(DEFAULT_PLACEMENT,),
    reservation=(DEFAULT_RESERVATION,),
    burst=(DEFAULT_BURST,),
)


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Where the control plane is, and who calls it."""

    endpoint: str = DEFAULT_ENDPOINT
    """SubmissionService, `host:port`."""
    placement: tuple[str, ...] = ()
    """Replicas of PlacementService, in any order."""
    reservation: tuple[str, ...] = ()
    """Replicas of ReservationService, in any order."""
    burst: tuple[str, ...] = ()
    """Replicas of BurstService, in any order."""
    name: str = DEFAULT_NAME
    """Of the control plane on this machine to look for."""
    tls: TlsMode = "auto"
    """`auto`: on, but for addresses of this machine."""
    tls_ca: str = ""
    """PEM file with the authorities to trust; empty: those of the system."""
    tls_cert: str = ""
    """PEM file with the caller's certificate, when the server asks for one."""
    tls_key: str = ""
    """PEM file with its key."""
    tenant: str = DEFAULT_NAME
    principal: str = ""
    """Who calls; empty: the user of the operating system."""
    timeout_s: float = 30.0
    """Of one call that is not a stream."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where each setting came from; those that are missing are defaults."""


SETTINGS: Final = tuple(item.name for item in fields(ClientConfig) if item.name != "origins")
Found = dict[str, tuple[object, str]]


def load_config(given: Mapping[str, object] | None = None) -> ClientConfig:
    """The settings in force; `given` comes first, None in it means: not given.

    Raises InvalidInput for a file or a value that cannot be understood.
    """
    found = _merged(_given(given or {}), _environment(), _file())
    name = str(found.get("name", (DEFAULT_NAME, ""))[0])
    for key, value in _local(name, has_endpoint="endpoint" in found).items():
        found.setdefault(key, value)
    found.setdefault("principal", (_user(), "operating system"))
    values = {key: _converted(key, value, origin) for key, (value, origin) in found.items()}
    origins = {key: origin for key, (_, origin) in found.items()}
    return ClientConfig(**cast("dict[str, Any]", values), origins=origins)


def config_file() -> Path:
    """The file that settings are read from, whether it exists or not."""
    if chosen := os.environ.get("ATOLL_CONFIG"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "atoll" / "config.yaml"


def _merged(*sources: Found) -> Found:
    merged: Found = {}
    for source in reversed(sources):
        merged |= source
    return merged


def _given(given: Mapping[str, object]) -> Found:
    return {
        key: (value, f"flag --{key.replace('_', '-')}")
        for key, value in given.items()
        if value is not None
    }


def _environment() -> Found:
    names = {key: f"ATOLL_{key.upper()}" for key in SETTINGS}
    return {
        key: (os.environ[name], f"environment {name}")
        for key, name in names.items()
        if os.environ.get(name)
    }


def _file() -> Found:
    path = config_file()
    if not path.is_file():
        return {}
    values = _section(path)
    if unknown := sorted(values.keys() - set(SETTINGS)):
        near = difflib.get_close_matches(unknown[0], SETTINGS, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(SETTINGS)}"
        raise _invalid(
            f"{SECTION}.{unknown[0]}",
            f"unknown key in {path}; {hint}",
            code=ErrorCode.UNKNOWN_FIELD,
        )
    return {key: (value, f"file {path}") for key, value in values.items() if value is not None}


def _section(path: Path) -> dict[str, object]:
    import yaml

    try:
        content = yaml.safe_load(path.read_bytes())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise _invalid("config", f"{path}: {error}") from None
    section = content.get(SECTION, {}) if isinstance(content, dict) else content
    if not isinstance(section or {}, dict):
        raise _invalid(SECTION, f"{path}: must be a mapping of settings")
    return dict(section or {})


def _local(name: str, *, has_endpoint: bool) -> Found:
    # The other addresses belong to the control plane of the endpoint: never mix two of them.
    if has_endpoint:
        return {}
    path = endpoints_file(name)
    try:
        found = read_endpoints(path) or DEFAULTS
    except ValueError as error:
        raise _invalid("endpoint", str(error)) from None
    origin = f"file {path}" if found.pid or path.exists() else "default"
    return {
        "endpoint": (found.submission, origin),
        "placement": (found.placement, origin),
        "reservation": (found.reservation, origin),
        "burst": (found.burst, origin),
    }


def _converted(key: str, value: object, origin: str) -> object:
    match key:
        case "placement" | "reservation" | "burst":
            return tuple(_addresses(value))
        case "timeout_s":
            return _seconds(value, origin)
        case "tls":
            return _mode(value, origin)
        case _:
            return str(value)


def _addresses(value: object) -> Iterator[str]:
    parts = value if isinstance(value, list | tuple) else str(value).split(",")
    yield from (text for part in parts if (text := str(part).strip()))


def _seconds(value: object, origin: str) -> float:
    try:
        seconds = float(str(value))
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise _invalid("timeout_s", f"{value!r} ({origin}): must be seconds above 0")
    return seconds


def _mode(value: object, origin: str) -> str:
    # YAML reads a bare `on` as true.
    text = {"true": "on", "false": "off"}.get(str(value).lower(), str(value).lower())
    if text not in get_args(TlsMode):
        raise _invalid("tls", f"{value!r} ({origin}): use one of {', '.join(get_args(TlsMode))}")
    return text


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _invalid(name: str, message: str, *, code: ErrorCode = ErrorCode.INVALID_FIELD) -> InvalidInput:
    return InvalidInput((FieldViolation(name, message, code),))
