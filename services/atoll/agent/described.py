"""Descriptions that people write: amounts of memory, lists of devices, entries with known keys."""

import re
from collections.abc import Mapping
from typing import Any, Final

from atoll.core.model.inventory import Device
from atoll.core.model.mig import table_for

UNITS: Final = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
DYNAMIC: Final = "dynamic"
"""`mig:` of devices that are handed out either way."""
DEVICE_KEYS: Final = frozenset({"kind", "count", "memory", "mig", "uuid"})


class BadDescription(Exception):
    """The description is wrong; the message says where."""


def parse_devices(given: object, where: str) -> tuple[Device, ...]:
    """The devices of one node, numbered from 0; raises BadDescription."""
    devices: list[Device] = []
    for place, entry in enumerate(as_list(given)):
        at = f"{where}[{place}]"
        group = as_mapping(entry, at, DEVICE_KEYS)
        for _ in range(int(group.get("count", 1))):
            devices.append(_device(group, len(devices), at))
    return tuple(devices)


def parse_amount(value: object, where: str) -> int:
    """Bytes, as a number or with Ki, Mi, Gi or Ti behind it; raises BadDescription."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(Ki|Mi|Gi|Ti|)B?", str(value))
    if match is None:
        raise BadDescription(f"{where}: {value!r} is no amount such as 512Gi")
    return int(float(match[1]) * UNITS[match[2]])


def as_list(given: object) -> list[Any]:
    """A list; one thing stands for a list of it, and nothing for an empty one."""
    if given is None:
        return []
    return given if isinstance(given, list) else [given]


def as_mapping(given: object, where: str, keys: frozenset[str] | None) -> Mapping[str, Any]:
    """A mapping with these keys only (None: any); raises BadDescription."""
    if not isinstance(given, dict):
        raise BadDescription(f"{where}: expected `key: value` entries")
    if keys is not None and (unknown := sorted(set(given) - keys)):
        raise BadDescription(f"{where}: {unknown[0]!r} is unknown; there are {sorted(keys)}")
    return given


def _device(group: Mapping[str, Any], index: int, where: str) -> Device:
    mig = group.get("mig", False)
    kind, memory = str(group.get("kind", "GPU")), group.get("memory", "80Gi")
    memory_bytes = parse_amount(memory, f"{where}.memory")
    if mig == DYNAMIC and table_for(kind, memory_bytes) is None:
        raise BadDescription(f"{where}.mig: a {kind} cannot be cut into slices")
    return Device(
        index=index,
        kind=kind,
        memory_bytes=memory_bytes,
        uuid=str(group.get("uuid", "")),
        mig=bool(mig) and mig != DYNAMIC,
        mig_dynamic=mig == DYNAMIC,
        mig_instances=tuple(
            (str(item["profile"]), int(item["start"]), str(item.get("uuid", "")))
            for item in (mig if isinstance(mig, list) else ())
        ),
    )
