"""How much of an instance a job takes: a part of one machine, or whole ones of a group."""

from collections.abc import Sequence
from typing import Final

from atoll.core.model.burst import Offer
from atoll.core.model.burst_wants import Ask, TaskAsk
from atoll.core.model.resources import BLOCKS_PER_DEVICE

Amounts = tuple[float, float, float]
"""Blocks, milli-CPU, bytes of memory."""
TOO_MUCH: Final = float("inf")


def part_of(offer: Offer, ask: Ask) -> Amounts:
    """Of an instance's amounts; 1: all of it, above 1: it does not fit.

    Of a group of machines a job takes whole ones: several jobs fit if their parts do.
    """
    if ask.blocks and ask.kind not in {"", offer.kind}:
        return (TOO_MUCH,) * 3
    if offer.nodes == 1:
        return _part(ask, offer)
    taken = _machines(offer, ask)
    part = taken / offer.nodes if taken else TOO_MUCH
    return (part, part, part)


def holds(offer: Offer, ask: Ask) -> bool:
    """Whether an instance can run a job that takes this."""
    return max(part_of(offer, ask)) <= 1


def _part(ask: Ask | TaskAsk, offer: Offer) -> Amounts:
    """Of one machine."""
    blocks, cpu, memory = (
        asked / has if has else TOO_MUCH if asked else 0.0
        for asked, has in zip(_amounts(ask), _machine(offer), strict=True)
    )
    return (blocks, cpu, memory)


def _machines(offer: Offer, ask: Ask) -> int:
    """How many of a group's a job takes; 0: there are too few. The largest tasks go first."""
    if max(_part(ask, offer)) <= 1:
        return 1
    left: list[list[int]] = []
    for task in sorted(ask.tasks, key=lambda each: max(_part(each, offer)), reverse=True):
        count = task.count
        for machine in left:
            count -= _put(task, count, machine)
        while count:
            if len(left) == offer.nodes or max(_part(task, offer)) > 1:
                return 0
            left.append(list(_machine(offer)))
            count -= _put(task, count, left[-1])
    return len(left)


def _put(task: TaskAsk, most: int, left: list[int]) -> int:
    """Take what as many tasks need as fit on a machine; how many."""
    asked = _amounts(task)
    fit = min((has // each for has, each in zip(left, asked, strict=True) if each), default=most)
    count = min(most, fit)
    left[:] = [has - count * each for has, each in zip(left, asked, strict=True)]
    return count


def _machine(offer: Offer) -> tuple[int, int, int]:
    return offer.devices * BLOCKS_PER_DEVICE, offer.cpu_milli, offer.memory_bytes


def _amounts(ask: Ask | TaskAsk) -> Sequence[int]:
    return ask.blocks, ask.cpu_milli, ask.memory_bytes
