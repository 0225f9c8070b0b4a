"""What the local backend finds on a machine, from what others print and the kernel offers."""

import os
from pathlib import Path

import psutil
import pytest

from atoll.agent.localrun import devices as found
from atoll.agent.localrun import machine
from atoll.agent.localrun.cgroups import Cgroups, find_cgroups, kill_group
from atoll.agent.localrun.devices import foreign_blocks, found_devices, kind_of
from atoll.agent.localrun.launch import signal_number
from atoll.agent.localrun.load import LoadMeter, Sample, sample
from atoll.core.model.inventory import LocalUse

GIB = 1 << 30
QUERY = """0, NVIDIA H100 80GB HBM3, 81559, GPU-aaa, Disabled
1, NVIDIA A100-SXM4-40GB, 40960, GPU-bbb, Enabled
2, NVIDIA GeForce RTX 4090, 24564, GPU-ccc, [N/A]
"""
LISTING = """GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-aaa)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-bbb)
  MIG 3g.20gb     Device  0: (UUID: MIG-111)
  MIG 1g.5gb      Device  1: (UUID: MIG-222)
  MIG 1g.5gb      Device  2: (UUID: MIG-333)
GPU 2: NVIDIA GeForce RTX 4090 (UUID: GPU-ccc)
"""
INSTANCES = """+-------------------------------------------------------+
| GPU instances:                                        |
| GPU   Name             Profile  Instance   Placement  |
|                          ID       ID       Start:Size |
|=======================================================|
|   1  MIG 1g.5gb          19        7          0:1     |
+-------------------------------------------------------+
|   1  MIG 1g.5gb          19        8          1:1     |
+-------------------------------------------------------+
|   1  MIG 3g.20gb          9        2          4:4     |
+-------------------------------------------------------+
"""
APPS = """GPU-aaa, 4242, 20000
GPU-aaa, 1, 9000
GPU-ccc, 77, [N/A]
"""


@pytest.fixture
def nvidia(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An nvidia-smi that prints what one printed."""
    for name, text in (("query", QUERY), ("list", LISTING), ("mig", INSTANCES), ("apps", APPS)):
        (tmp_path / name).write_text(text)
    program = tmp_path / "nvidia-smi"
    program.write_text(
        f"""#!/bin/sh
case "$1" in
--query-gpu=*) cat {tmp_path}/query ;;
--query-compute-apps=*) cat {tmp_path}/apps ;;
-L) cat {tmp_path}/list ;;
mig) cat {tmp_path}/mig ;;
esac
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def test_devices_are_what_nvidia_smi_tells_of(nvidia: Path) -> None:
    h100, a100, rtx = found_devices()
    assert (h100.kind, h100.uuid, h100.mig) == ("H100", "GPU-aaa", False)
    assert h100.memory_bytes == 81559 << 20
    assert (a100.kind, a100.mig) == ("A100", True)
    assert a100.mig_instances == (
        ("1g.5gb", 0, "MIG-222"),
        ("1g.5gb", 1, "MIG-333"),
        ("3g.20gb", 4, "MIG-111"),
    )
    assert (rtx.kind, rtx.mig) == ("GeForce-RTX-4090", False)


def test_what_others_use_of_a_device_is_counted_in_tenths(nvidia: Path) -> None:
    assert foreign_blocks(found_devices(), own=[1]) == ((0, 30), (2, 100))


def test_without_nvidia_smi_there_are_no_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert found_devices() == ()


def test_a_failing_nvidia_smi_is_as_good_as_none(nvidia: Path) -> None:
    (nvidia / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    assert found.nvidia_smi("-L") == ""


@pytest.mark.parametrize(
    ("product", "kind"),
    [
        ("NVIDIA H100 PCIe", "H100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("Tesla T4", "T4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA RTX A6000", "RTX-A6000"),
    ],
)
def test_a_product_is_known_by_its_short_name(product: str, kind: str) -> None:
    assert kind_of(product) == kind


def test_the_machine_has_cpus_and_memory() -> None:
    assert 0 < machine.cpu_milli() <= 1000 * (os.cpu_count() or 1)
    assert 0 < machine.memory_bytes() <= psutil.virtual_memory().total


def test_a_cgroup_limits_what_the_machine_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "CGROUP_ROOT", tmp_path)
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    (tmp_path / "memory.max").write_text(f"{GIB}\n")
    assert (machine.cpu_milli(), machine.memory_bytes()) == (500, GIB)
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.cpu_milli() == 1000 * len(os.sched_getaffinity(0))


def test_version_2_groups_hand_their_controllers_down(tmp_path: Path) -> None:
    own = tmp_path / "self"
    own.write_text("0::/system.slice/agent.service\n")
    parent = tmp_path / "system.slice" / "agent.service"
    parent.mkdir(parents=True)
    (parent / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    groups = find_cgroups("atoll-c1", root=tmp_path, own=own)
    assert groups.unified
    (made,) = groups.make("1.1-0", cpu_milli=1500, memory_bytes=GIB)
    assert made == str(parent / "atoll-c1" / "1.1-0")
    assert (Path(made) / "cpu.max").read_text() == "150000 100000"
    assert (Path(made) / "memory.max").read_text() == str(GIB)
    for folder in (parent, parent / "atoll-c1"):
        assert (folder / "cgroup.subtree_control").read_text() == "+cpu +memory"


def test_an_agent_in_the_leaf_of_its_unit_makes_groups_beside_it(tmp_path: Path) -> None:
    own = tmp_path / "self"
    own.write_text("0::/system.slice/agent.service/atoll-agent\n")
    unit = tmp_path / "system.slice" / "agent.service"
    leaf = unit / "atoll-agent"
    leaf.mkdir(parents=True)
    (unit / "cgroup.controllers").write_text("cpu memory pids\n")
    groups = find_cgroups("atoll-c1", root=tmp_path, own=own)
    assert groups.cpu == unit / "atoll-c1"
    assert not (leaf / "cgroup.subtree_control").exists()


def test_version_1_groups_are_apart(tmp_path: Path) -> None:
    own = tmp_path / "self"
    own.write_text("4:memory:/box\n1:cpu,cpuacct:/\n")
    (tmp_path / "cpu").mkdir()
    (tmp_path / "memory" / "box").mkdir(parents=True)
    groups = find_cgroups("atoll-c1", root=tmp_path, own=own)
    assert not groups.unified
    made = groups.make("1.1-0", cpu_milli=250, memory_bytes=0)
    assert made == (
        str(tmp_path / "cpu" / "atoll-c1" / "1.1-0"),
        str(tmp_path / "memory" / "box" / "atoll-c1" / "1.1-0"),
    )
    assert (Path(made[0]) / "cpu.cfs_quota_us").read_text() == "25000"
    assert not (Path(made[1]) / "memory.limit_in_bytes").exists()


def test_where_nothing_can_be_written_nothing_is_limited(tmp_path: Path) -> None:
    own = tmp_path / "self"
    own.write_text("4:memory:/\n")
    groups = find_cgroups("atoll-c1", root=tmp_path / "absent", own=own)
    assert groups == Cgroups()
    assert groups.make("1.1-0", cpu_milli=250, memory_bytes=5) == ()
    kill_group(tmp_path / "absent")


def told(meter: LoadMeter, count: int, *, cores: float, own: float, memory: int) -> LocalUse:
    """Take samples, 10 s apart, of so many busy cores."""
    use = LocalUse()
    for n in range(count):
        at = 10.0 * n
        use = meter.take(Sample(at, at * (cores + own), at * own, memory * GIB, 0))
    return use


def test_load_is_told_in_whole_cores_and_gibibytes_without_our_own() -> None:
    assert told(LoadMeter(), 8, cores=2.7, own=5.0, memory=3) == LocalUse(2000, 3 * GIB)


def test_a_short_burst_is_not_worth_telling() -> None:
    meter = LoadMeter()
    told(meter, 12, cores=0.1, own=0.0, memory=1)
    burst = Sample(121.0, 12.0 + 4.0, 0.0, GIB, 0)
    assert meter.take(burst) == LocalUse(0, GIB)


def test_a_sample_knows_our_own_runs() -> None:
    me = psutil.Process()
    before = sample(0.0, ())
    assert before.busy_s > 0
    assert (before.own_s, before.own_bytes) == (0.0, 0)
    assert sample(0.0, (me.ppid(),)).own_bytes >= me.memory_info().rss // 2
    assert sample(0.0, (2**22 + 1,)).own_bytes == 0


@pytest.mark.parametrize(("name", "number"), [("SIGUSR1", 10), ("TERM", 15), ("SIGNOSUCH", 0)])
def test_signals_are_known_by_name(name: str, number: int) -> None:
    assert signal_number(name) == number
