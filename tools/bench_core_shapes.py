"""What the core's measurement is made of: 200 shapes, and nodes to put them on."""

from dataclasses import dataclass

from atoll.core.model.ids import ClusterName, NodeId
from atoll.core.model.inventory import Device, Node, NodeInventory
from atoll.core.model.plan import GangRequest, GroupRequest
from atoll.core.model.resources import DeviceRequest, TaskShape

GIB = 1 << 30
DEVICES = 8
GANG = 16
NODES_PER_RACK = 32
RACKS_PER_BLOCK = 16

_KIND = "H100"
_BLOCKS = (5, 10, 15, 20, 25, 30, 40, 50, 60, 75)
_WHOLE = (1, 2, 4, 8)
_SLICES = (
    ("1g.10gb", 1 / 8),
    ("1g.20gb", 1 / 4),
    ("2g.20gb", 1 / 4),
    ("3g.40gb", 1 / 2),
    ("4g.40gb", 1 / 2),
)
_MODES = {
    mig: tuple(Device(i, _KIND, 80 * GIB, mig=mig) for i in range(DEVICES)) for mig in (False, True)
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the shapes, as a job asks for it."""

    request: GangRequest
    devices: float
    """That a job of it takes, parts added up."""
    sliced: bool


def kinds() -> list[Kind]:
    """100 parts of a device, 48 of whole devices, 12 gangs of such, 40 of slices."""
    parts = [_part(i) for i in range(100)]
    whole = [_whole(i, tasks=1, cores=4 + i // 4) for i in range(48)]
    gangs = [_whole(i, tasks=GANG, cores=4 + i) for i in range(12)]
    return parts + whole + gangs + [_slice(i) for i in range(40)]


def node(number: int, cluster: ClusterName, *, sliced: bool) -> Node:
    """A node with 8 H100, 128 cores, 2 TiB, in a rack of 32 and a block of 16 racks."""
    rack = number // NODES_PER_RACK
    inventory = NodeInventory(
        f"n{number}",
        128_000,
        2048 * GIB,
        _MODES[sliced],
        domains=(("block", f"b{rack // RACKS_PER_BLOCK}"), ("rack", f"r{rack}")),
    )
    return Node(NodeId(number), cluster, inventory)


def _part(i: int) -> Kind:
    blocks = _BLOCKS[i % 10]
    shape = TaskShape((1 + i // 10) * 1000, (4 + 4 * (i % 7)) * GIB, _device(blocks=blocks))
    return Kind(_job(1, shape), blocks / 100, sliced=False)


def _whole(i: int, *, tasks: int, cores: int) -> Kind:
    count = _WHOLE[i % 4]
    memory = (32 + 8 * (i % 5)) * count * GIB
    shape = TaskShape(cores * count * 1000, memory, DeviceRequest(_KIND, count))
    return Kind(_job(tasks, shape), count * tasks, sliced=False)


def _slice(i: int) -> Kind:
    profile, share = _SLICES[i % 5]
    shape = TaskShape((1 + i // 5) * 1000, (4 + 4 * (i % 4)) * GIB, _device(profile=profile))
    return Kind(_job(1, shape), share, sliced=True)


def _device(*, blocks: int = 100, profile: str = "") -> DeviceRequest:
    return DeviceRequest(_KIND, 1, blocks=blocks, profile=profile)


def _job(tasks: int, shape: TaskShape) -> GangRequest:
    return GangRequest((GroupRequest(tasks, tasks, (shape,)),))
