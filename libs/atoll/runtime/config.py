"""Where settings come from: flags over environment over file over defaults, each with its origin.

A file is YAML. Settings that services share stand at its top, those of one service in a section
of its name, which wins. A key that nobody knows is an error that names the nearest one.
"""

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml
from pydantic import SecretStr, ValidationError
from pydantic_settings import CliSettingsSource, EnvSettingsSource

from atoll.runtime.settings import ServiceSettings, StoreSettings

S = TypeVar("S", bound=ServiceSettings)
ENV = "ATOLL_"
CONFIG_ENV = "ATOLL_CONFIG"
CONFIG_FLAG = "--config"


class ConfigError(Exception):
    """The configuration is wrong; the message says where and what would be right."""


@dataclass(frozen=True, slots=True)
class Loaded(Generic[S]):
    """Settings, and where each that is not a default came from."""

    settings: S
    origins: Mapping[str, str]
    """By field: `flag --listen`, `environment ATOLL_LISTEN`, `file PATH (section)`."""


def load(kind: type[S], service: str, arguments: Sequence[str] = ()) -> Loaded[S]:
    """Read the settings of `service`; raises ConfigError, or SystemExit for --help."""
    path, flags = _config_path(arguments)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for found in (
        _flags(kind, service, flags),
        _environment(kind),
        _secret_files(kind),
        _file(kind, service, path),
    ):
        for field, (value, origin) in found.items():
            if field not in values:
                values[field], origins[field] = value, origin
    try:
        return Loaded(kind(**values), origins)
    except ValidationError as error:
        raise ConfigError(_told(error, origins)) from None


def shown(loaded: Loaded[S]) -> list[tuple[str, str, str]]:
    """(field, value, origin) of every setting by name; secrets are masked."""
    rows = []
    for field in sorted(type(loaded.settings).model_fields):
        value = getattr(loaded.settings, field)
        rows.append((field, _text(value), loaded.origins.get(field, "default")))
    return rows


Found = dict[str, tuple[Any, str]]


def _config_path(arguments: Sequence[str]) -> tuple[Path | None, list[str]]:
    rest = list(arguments)
    for i, argument in enumerate(rest):
        flag, equals, value = argument.partition("=")
        if flag != CONFIG_FLAG:
            continue
        if not equals and i + 1 == len(rest):
            raise ConfigError(f"{CONFIG_FLAG} needs a file")
        del rest[i : i + 1 if equals else i + 2]
        return Path(value if equals else arguments[i + 1]), rest
    named = os.environ.get(CONFIG_ENV)
    return (Path(named) if named else None), rest


def _flags(kind: type[S], service: str, arguments: Sequence[str]) -> Found:
    source: CliSettingsSource[Any] = CliSettingsSource(
        kind,
        cli_prog_name=f"python -m atoll.{service}",
        cli_parse_args=list(arguments),
        cli_kebab_case=True,
        cli_implicit_flags=True,
        cli_hide_none_type=True,
    )
    return {
        field: (value, f"flag --{field.replace('_', '-')}") for field, value in source().items()
    }


def _environment(kind: type[S]) -> Found:
    source = EnvSettingsSource(kind)
    known = {f"{ENV}{field}".upper() for field in kind.model_fields}
    return {
        field: (value, f"environment {ENV}{field.upper()}")
        for field, value in source().items()
        if f"{ENV}{field}".upper() in known
    }


def _secret_files(kind: type[S]) -> Found:
    found: Found = {}
    for field, info in kind.model_fields.items():
        name = f"{ENV}{field.upper()}_FILE"
        if info.annotation is SecretStr and (path := os.environ.get(name)):
            if f"{ENV}{field.upper()}" in os.environ:
                raise ConfigError(f"{name} and {ENV}{field.upper()} are both set; keep one")
            found[field] = (_read(Path(path), name).strip(), f"environment {name}")
    return found


def _file(kind: type[S], service: str, path: Path | None) -> Found:
    if path is None:
        return {}
    whole = _mapping(yaml.safe_load(_read(path, CONFIG_ENV)) or {}, str(path))
    shared = {key: value for key, value in whole.items() if not isinstance(value, dict)}
    section = _mapping(whole.get(service, {}), f"{path} ({service})")
    _known(shared, StoreSettings.model_fields, str(path))
    _known(section, kind.model_fields, f"{path} ({service})")
    found = {k: (v, f"file {path}") for k, v in shared.items() if k in kind.model_fields}
    return found | {k: (v, f"file {path} ({service})") for k, v in section.items()}


def _read(path: Path, named_by: str) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise ConfigError(f"{path} (from {named_by}): {error.strerror}") from None


def _mapping(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ConfigError(f"{where}: expected settings as `name: value`")
    return value


def _known(given: Iterable[str], fields: Iterable[str], where: str) -> None:
    names = set(fields)
    for key in given:
        if key not in names:
            near = difflib.get_close_matches(key, sorted(names), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"{where}: unknown setting {key!r}{hint}")


def _told(error: ValidationError, origins: Mapping[str, str]) -> str:
    lines = []
    for fault in error.errors(include_url=False, include_input=False):
        field = ".".join(str(part) for part in fault["loc"])
        origin = origins.get(field.split(".", 1)[0], "")
        lines.append(f"{field or 'settings'}: {fault['msg']}" + (f" ({origin})" if origin else ""))
    return "\n".join(lines)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value)
    return "" if value is None else str(value)
