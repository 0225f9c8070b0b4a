"""The accelerators of this machine: what nvidia-smi tells of, or what a file declares."""

import csv
import io
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import yaml

from atoll.agent.described import BadDescription, parse_devices
from atoll.core.model.inventory import Device
from atoll.core.model.mig import table_for
from atoll.runtime import logs

log = logs.logger(__name__)

WITHIN_S: Final = 20.0
QUERY: Final = "index,name,memory.total,uuid,mig.mode.current"
APPS: Final = "gpu_uuid,pid,used_memory"
MIB: Final = 1 << 20
KINDS: Final = ("GB200", "B200", "H200", "H100", "A100", "A800", "H800", "L40S", "L40", "L4", "A40",
                "A30", "A10", "V100", "P100", "T4")  # fmt: skip
"""Kinds whose name stands in a longer product name; others are named by the product."""


def declared_devices(path: Path) -> tuple[Device, ...]:
    """What a file declares; raises BadDescription."""
    try:
        return parse_devices(yaml.safe_load(path.read_text()), str(path))
    except (OSError, yaml.YAMLError, ValueError, TypeError, KeyError) as error:
        raise BadDescription(f"{path}: {error}") from error


def found_devices(*, dynamic: bool = False) -> tuple[Device, ...]:
    """What nvidia-smi tells of; nothing where there is none, or while it fails.

    `dynamic`: devices that can be cut are handed out either way, however they are cut now.
    """
    listing = nvidia_smi(f"--query-gpu={QUERY}", "--format=csv,noheader,nounits")
    devices = parse_query(listing)
    if dynamic:
        return tuple(_either_way(d) if _can_be_cut(d, listing) else d for d in devices)
    if not any(device.mig for device in devices):
        return devices
    return with_instances(devices, nvidia_smi("-L"), nvidia_smi("mig", "-lgi"))


def foreign_blocks(devices: Sequence[Device], own: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """(index, blocks) that processes other than `own` (pids) use of each device's memory."""
    listing = nvidia_smi(f"--query-compute-apps={APPS}", "--format=csv,noheader,nounits")
    mine, by_uuid = set(own), {device.uuid: device for device in devices}
    used: dict[int, int] = {}
    for uuid, pid, mebibytes in _rows(listing, 3):
        device = by_uuid.get(uuid)
        if device is not None and pid.isdigit() and int(pid) not in mine:
            taken = int(mebibytes) * MIB if mebibytes.isdigit() else device.memory_bytes
            used[device.index] = used.get(device.index, 0) + taken
    memory = {device.index: device.memory_bytes for device in devices}
    # Rounded to tenths: an inventory that changes with every tensor helps nobody.
    return tuple(
        (index, min(100, -(-taken * 10 // memory[index]) * 10))
        for index, taken in sorted(used.items())
    )


def parse_query(listing: str) -> tuple[Device, ...]:
    """Devices out of `--query-gpu`."""
    return tuple(
        Device(
            index=int(index),
            kind=kind_of(name),
            memory_bytes=int(mebibytes) * MIB if mebibytes.isdigit() else 0,
            uuid=uuid,
            mig=mode == "Enabled",
        )
        for index, name, mebibytes, uuid, mode in _rows(listing, 5)
        if index.isdigit()
    )


def with_instances(devices: Sequence[Device], listing: str, placements: str) -> tuple[Device, ...]:
    """The devices with their MIG instances, out of `-L` (UUIDs) and `mig -lgi` (places).

    Both list the instances of a device in the same order within a profile.
    """
    uuids, starts = _instance_uuids(listing), _instance_starts(placements)
    return tuple(
        replace(
            device,
            mig_instances=tuple(sorted(_joined(device.index, uuids, starts), key=_by_start)),
        )
        for device in devices
    )


def kind_of(product: str) -> str:
    """`NVIDIA H100 80GB HBM3` is an `H100`."""
    words = set(re.split(r"[\s-]+", product))
    short = next((kind for kind in KINDS if kind in words), None)
    return short or product.removeprefix("NVIDIA ").strip().replace(" ", "-")


def nvidia_smi(*arguments: str) -> str:
    """What it prints; empty when there is none or it fails, which is logged."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, *arguments], capture_output=True, text=True, timeout=WITHIN_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("nvidia-smi failed", arguments=arguments, why=str(error))
        return ""
    return done.stdout


def _either_way(device: Device) -> Device:
    return replace(device, mig=False, mig_dynamic=True)


def _can_be_cut(device: Device, listing: str) -> bool:
    if table_for(device.kind, device.memory_bytes) is None:
        return False
    modes = {uuid: mode for _, _, _, uuid, mode in _rows(listing, 5)}
    return modes.get(device.uuid) in ("Enabled", "Disabled")


Instance = tuple[str, int, str]


def _joined(
    index: int,
    uuids: Mapping[tuple[int, str], list[str]],
    starts: Mapping[tuple[int, str], list[int]],
) -> list[Instance]:
    return [
        (profile, start, uuid)
        for (device, profile), places in starts.items()
        if device == index
        for start, uuid in zip(places, uuids.get((device, profile), []), strict=False)
    ]


def _by_start(instance: Instance) -> int:
    return instance[1]


def _instance_uuids(listing: str) -> dict[tuple[int, str], list[str]]:
    found: dict[tuple[int, str], list[str]] = {}
    device = -1
    for line in listing.splitlines():
        if match := re.match(r"GPU (\d+):", line):
            device = int(match[1])
        elif match := re.match(r"\s+MIG (\S+)\s+Device\s+\d+: \(UUID: (\S+)\)", line):
            found.setdefault((device, match[1]), []).append(match[2])
    return found


def _instance_starts(placements: str) -> dict[tuple[int, str], list[int]]:
    found: dict[tuple[int, str], list[int]] = {}
    row = re.compile(r"\|\s+(\d+)\s+MIG (\S+)\s+\d+\s+\d+\s+(\d+):\d+\s+\|")
    for line in placements.splitlines():
        if match := row.match(line):
            found.setdefault((int(match[1]), match[2]), []).append(int(match[3]))
    return found


def _rows(listing: str, width: int) -> list[list[str]]:
    rows = csv.reader(io.StringIO(listing), skipinitialspace=True)
    return [[cell.strip() for cell in row] for row in rows if len(row) == width]
