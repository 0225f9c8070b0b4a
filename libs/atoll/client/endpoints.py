"""Where a control plane that `atoll up` started is found: one small file for each of them.

`<state>/<name>/endpoints.json`, where `<state>` is ATOLL_STATE_DIR, else XDG_STATE_HOME/atoll, else
~/.local/state/atoll. What starts the control plane writes it, and removes it at the end.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Self

DEFAULT_NAME: Final = "default"
FILE_NAME: Final = "endpoints.json"
_REPLICAS: Final = ("placement", "reservation", "burst")


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Addresses (`host:port`) of one control plane."""

    name: str
    submission: str
    placement: tuple[str, ...] = ()
    reservation: tuple[str, ...] = ()
    burst: tuple[str, ...] = ()
    dispatch: str = ""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Address of the metrics by service."""
    pid: int = 0
    """Of the process that keeps it running."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """From the file's content; keys that this version does not know are left out."""
        known = {item.name for item in fields(cls)}
        chosen = {key: value for key, value in values.items() if key in known}
        lists = {key: tuple(chosen.get(key, ())) for key in _REPLICAS}
        return cls(**chosen | lists)


def state_dir() -> Path:
    """The folder with what is known of control planes on this machine."""
    if chosen := os.environ.get("ATOLL_STATE_DIR"):
        return Path(chosen).expanduser()
    if base := os.environ.get("XDG_STATE_HOME"):
        return Path(base).expanduser() / "atoll"
    return Path.home() / ".local" / "state" / "atoll"


def endpoints_file(name: str = DEFAULT_NAME) -> Path:
    """The file of the control plane with this name."""
    return state_dir() / name / FILE_NAME


def read_endpoints(path: Path) -> Endpoints | None:
    """What the file says; None when there is none. ValueError when it cannot be understood."""
    try:
        content = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        return Endpoints.of(json.loads(content))
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path}: not a file of endpoints ({error})") from error


def write_endpoints(path: Path, endpoints: Endpoints) -> None:
    """Replace the file at once; only its owner can read it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(asdict(endpoints), indent=1) + "\n", encoding="utf-8")
    draft.replace(path)
