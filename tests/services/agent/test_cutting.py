"""The local backend cuts devices, and joins them again, as tasks need it: on a pretended one."""

import os
import stat
import sys
from pathlib import Path

import pytest

from atoll.agent.localrun.cutting import CannotCut, cut_declared, cut_found
from atoll.agent.localrun.devices import found_devices
from atoll.core.model.ids import NodeId
from atoll.core.model.inventory import Device, NodeInventory
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.resources import DeviceGrant

PRETENDED = '''#!{python} -S
"""One H100 whose mode and instances are files; `stuck`: its mode cannot be changed."""
import pathlib, sys

here, told = pathlib.Path("{here}"), sys.argv[1:]
mode, made = here / "mode", here / "instances"
rows = [line.split() for line in made.read_text().splitlines()]
SIZES = {{"1g.10gb": 1, "3g.40gb": 4}}

def write(rows):
    made.write_text("".join(" ".join(row) + chr(10) for row in rows))

if told[0].startswith("--query-gpu"):
    print(f"0, NVIDIA H100 80GB HBM3, 81559, GPU-a, {{mode.read_text()}}")
elif told[0] == "-L":
    print("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-a)")
    for at, (number, profile, start) in enumerate(rows):
        print(f"  MIG {{profile}}     Device  {{at}}: (UUID: MIG-{{number}})")
elif told[:2] == ["mig", "-lgi"]:
    for number, profile, start in rows:
        place = f"{{start}}:{{SIZES[profile]}}"
        print(f"|   0  MIG {{profile}}          19        {{number}}          {{place}}     |")
elif "-mig" in told:
    if not (here / "stuck").exists() and not rows:
        mode.write_text("Enabled" if told[-1] == "1" else "Disabled")
elif "-cgi" in told:
    profile, start = told[told.index("-cgi") + 1].split(":")
    number = str(max([0, *(int(row[0]) for row in rows)]) + 1)
    write([*rows, [number, profile, start]])
elif "-dgi" in told:
    write([row for row in rows if row[0] != told[told.index("-gi") + 1]])
'''
SMALL = DeviceGrant(0, slice_mask=0b10, profile="1g.10gb")
LARGE = DeviceGrant(0, slice_mask=0b11110000, profile="3g.40gb")
LARGE_LEFT = DeviceGrant(0, slice_mask=0b1111, profile="3g.40gb")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "nvidia-smi"
    program.write_text(PRETENDED.format(python=sys.executable, here=tmp_path))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "mode").write_text("Disabled")
    (tmp_path / "instances").write_text("")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def here() -> NodeInventory:
    return NodeInventory("n0", 1000, 1 << 30, found_devices(dynamic=True))


def task(*grants: DeviceGrant) -> TaskPlacement:
    return TaskPlacement(0, 0, NodeId(1), "n0", 100, 1 << 20, grants)


def test_what_the_inventory_says_does_not_follow_the_mode(machine: Path) -> None:
    (before,) = here().devices
    assert (before.mig, before.mig_dynamic, before.mig_instances) == (False, True, ())
    cut_found(here(), [task(SMALL)])
    assert here().devices == (before,)
    assert [device.mig_dynamic for device in found_devices()] == [False]


def test_a_device_is_cut_cut_further_and_joined_again(machine: Path) -> None:
    (cut,) = cut_found(here(), [task(SMALL)]).devices
    assert (machine / "mode").read_text() == "Enabled"
    assert cut.mig_instances == (("1g.10gb", 1, "MIG-1"),)
    (cut,) = cut_found(here(), [task(LARGE)]).devices
    assert cut.mig_instances == (("1g.10gb", 1, "MIG-1"), ("3g.40gb", 4, "MIG-2"))
    # What an ended task left where another begins goes; what lies beside it stays.
    (cut,) = cut_found(here(), [task(LARGE_LEFT)]).devices
    assert [(profile, start) for profile, start, _ in cut.mig_instances] == [
        ("3g.40gb", 0),
        ("3g.40gb", 4),
    ]
    cut_found(here(), [task(DeviceGrant(0, 100))])
    assert (machine / "mode").read_text() == "Disabled"
    assert (machine / "instances").read_text() == ""


def test_what_is_there_already_is_left_as_it_is(machine: Path) -> None:
    first = cut_found(here(), [task(SMALL, LARGE)])
    assert cut_found(here(), [task(SMALL, LARGE)]) == first


def test_a_device_that_cannot_be_changed_is_told_of(machine: Path) -> None:
    (machine / "stuck").touch()
    with pytest.raises(CannotCut, match="mode of device 0"):
        cut_found(here(), [task(SMALL)])


def test_declared_devices_are_only_said_to_be_cut() -> None:
    devices = (Device(0, "H100", 80 << 30, mig_dynamic=True), Device(1, "H100", 80 << 30))
    node = NodeInventory("n0", 1000, 1 << 30, devices)
    cut, plain = cut_declared(node, [task(SMALL, LARGE), task(DeviceGrant(1, 100))]).devices
    assert cut.mig_instances == (
        ("1g.10gb", 1, "MIG-0/1g.10gb/1"),
        ("3g.40gb", 4, "MIG-0/3g.40gb/4"),
    )
    assert plain == devices[1]
