"""The tasks that a workload is typically made of, to say how much of what is free they can use."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from atoll.core.model.resources import BLOCKS_PER_DEVICE, TaskShape
from atoll.sim.work import Work

COVERED: Final = 0.95
MOST: Final = 64


def typical_tasks(works: Iterable[Work]) -> tuple[tuple[float, int, int], ...]:
    """(popularity, milli-CPU, device blocks) of the most popular tasks that want devices.

    They cover 95 % of all tasks, 64 distinct ones at most; popularities sum up to 1.
    """
    seen: Counter[tuple[int, int]] = Counter()
    for work in works:
        for group in work.spec.groups:
            seen[_wants(group.shapes[0])] += group.count
    total = sum(seen.values())
    chosen: list[tuple[tuple[int, int], int]] = []
    covered = 0
    for task, times in sorted(seen.items(), key=lambda item: (-item[1], item[0]))[:MOST]:
        chosen.append((task, times))
        covered += times
        if covered >= COVERED * total:
            break
    return tuple((times / covered, cpu, blocks) for (cpu, blocks), times in chosen)


def _wants(shape: TaskShape) -> tuple[int, int]:
    device = shape.device
    if device is None:
        return shape.cpu_milli, 0
    if device.profile:
        return shape.cpu_milli, BLOCKS_PER_DEVICE // 7 * device.count
    return shape.cpu_milli, device.count * device.blocks
