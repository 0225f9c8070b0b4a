"""The score of a task on a node: a weighted sum of terms, or NO when it does not fit.

It depends on the node's hardware and what is free of it, on the shape, and on what is
the same for a whole cycle; only a policy that plays by chance looks at the node itself.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.loss_kernels import LossTables, loss
from atoll.core.engine.term_kernels import bounded, by_chance, growth, hide_whole, show_whole
from atoll.core.policies.interfaces import Term
from atoll.core.state.columns import (
    FORM_BLOCKS,
    FORM_MEMORY,
    FORM_NONE,
    FORM_SLICES,
    FORM_WHOLE,
    SHAPE_BLOCKS,
    SHAPE_CPU,
    SHAPE_FORM,
    SHAPE_MEMORY,
    SHAPE_PROFILE,
    SHAPE_SHARES,
    Cuts,
    Models,
    Nodes,
    Shapes,
)
from atoll.core.state.compiled import bare, inlined
from atoll.core.state.fit_kernels import (
    ANY_DEVICE,
    VIEW_CUT,
    VIEW_FREE,
    VIEW_KIND,
    VIEW_MEMORY,
    VIEW_STATE,
    WHOLE,
    Devices,
    View,
    best_slice,
    left_of_share,
    look,
    ones,
    whole_free,
)

NO: Final = np.iinfo(np.int32).max
"""No score: it does not fit."""

_CPU_LEFT: Final = int(Term.CPU_LEFT)
_MEMORY_LEFT: Final = int(Term.MEMORY_LEFT)
_DEVICES_LEFT: Final = int(Term.DEVICES_LEFT)
_BLOCKS_LEFT: Final = int(Term.BLOCKS_LEFT)
_DEVICES_BROKEN: Final = int(Term.DEVICES_BROKEN)
_DEVICES_IDLE: Final = int(Term.DEVICES_IDLE)
_SLICES_LOST: Final = int(Term.SLICES_LOST)
_NODE_LEFT: Final = int(Term.NODE_LEFT)
_ALIGNED: Final = int(Term.ALIGNED)
_CHANCE: Final = int(Term.CHANCE)
_SLICE: Final = 12
_SLICES: Final = 8


class NodeView(NamedTuple):
    """What a node has beside its devices; they are in a view."""

    cpu: int
    memory: int
    cpu_scale: float
    """Thousandths per unit; so is the next one."""
    memory_scale: float
    untouched: int
    """Devices with nothing on them."""
    devices: int
    blocks: int
    """Free over all devices."""
    loss: int
    """As it stands."""
    chance: int


class Rules(NamedTuple):
    """What the policy of a cycle says."""

    weights: NDArray[np.int64]
    """(FORMS, TERMS)."""
    loss: LossTables
    seed: NDArray[np.int64]
    """(1) of what is left to chance; 0 when nothing is."""


class Scoring(NamedTuple):
    """What scores depend on besides the nodes, and room to work in.

    Kernels take it apart before their loops: a bundle of arrays that is passed on for every
    node costs more than the score itself.
    """

    models: Models
    cuts: Cuts
    shapes: Shapes
    rules: Rules
    seen: View
    trial: View
    out: Devices


@inlined
def look_at(nodes: Nodes, models: Models, rules: Rules, row: int, seen: View) -> NodeView:
    """Look at a node: the devices go to `seen`, the rest is returned."""
    look(nodes, models, row, seen)
    untouched, devices, blocks = 0, 0, 0
    for device in range(seen.shape[1]):
        free = seen[VIEW_FREE, device]
        untouched += free == WHOLE or seen[VIEW_STATE, device] == 0
        devices += nodes.model[row, device] != 0
        blocks += max(0, free)
    cpu_cap, memory_cap = nodes.cpu_cap[row], nodes.memory_cap[row]
    free_cpu = nodes.cpu_free[row]
    return NodeView(
        free_cpu,
        nodes.memory_free[row],
        1000.0 / cpu_cap if cpu_cap > 0 else 0.0,
        1000.0 / memory_cap if memory_cap > 0 else 0.0,
        untouched,
        devices,
        blocks,
        loss(seen, free_cpu, rules.loss),
        nodes.id[row] * rules.seed[0],
    )


@inlined
def score(
    node: NodeView,
    cuts: Cuts,
    shapes: Shapes,
    rules: Rules,
    seen: View,
    trial: View,
    shape: int,
) -> int:
    """Score of one task of `shape` on the node that was looked at."""
    if shapes[shape, SHAPE_FORM] == FORM_SLICES:
        return slice_score(node, cuts, shapes, rules, seen, trial, shape)
    return plain_score(node, shapes, rules, seen, shape)


@inlined
def plain_score(node: NodeView, shapes: Shapes, rules: Rules, seen: View, shape: int) -> int:
    """Score of a shape that asks for no slices."""
    form = shapes[shape, SHAPE_FORM]
    if form in (FORM_BLOCKS, FORM_MEMORY):
        return share_score(node, shapes, rules, seen, shape)[0]
    total = _base(node, shapes, rules, shape)
    if total == NO:
        return NO
    weights = rules.weights[form]
    if form == FORM_NONE:
        total += weights[_DEVICES_IDLE] * node.devices + weights[_NODE_LEFT] * node.blocks
        cpu_left = node.cpu - shapes[shape, SHAPE_CPU]
        return bounded(total + growth(node.loss, cpu_left, rules.loss, weights, seen))
    return _whole_score(node, shapes, rules, seen, shape, total)


@inlined
def device_for(node: NodeView, shapes: Shapes, rules: Rules, seen: View, shape: int) -> int:
    """The device for which a share has its score; ANY_DEVICE for what is no share or fits not."""
    if shapes[shape, SHAPE_FORM] in (FORM_BLOCKS, FORM_MEMORY):
        return share_score(node, shapes, rules, seen, shape)[1]
    return ANY_DEVICE


@bare
def share_score(
    node: NodeView, shapes: Shapes, rules: Rules, seen: View, shape: int
) -> tuple[int, int]:
    """Best score of a share of one device, and that device, the first of equals."""
    base = _base(node, shapes, rules, shape)
    best, least = ANY_DEVICE, NO
    if base == NO:
        return NO, best
    weights, tables = rules.weights[shapes[shape, SHAPE_FORM]], rules.loss
    cpu_left = node.cpu - shapes[shape, SHAPE_CPU]
    for device in range(seen.shape[1]):
        left = left_of_share(seen, shapes, shape, device)
        if left < 0 or _same_before(seen, device):
            continue
        free, total = seen[VIEW_FREE, device], base
        total += weights[_DEVICES_LEFT] * (node.untouched - (free == WHOLE))
        total += weights[_DEVICES_BROKEN] * (free == WHOLE and left > 0)
        total += weights[_BLOCKS_LEFT] * left + weights[_NODE_LEFT] * (node.blocks - free + left)
        seen[VIEW_FREE, device] = left
        total += growth(node.loss, cpu_left, tables, weights, seen)
        seen[VIEW_FREE, device] = free
        if bounded(total) < least:
            best, least = device, bounded(total)
    return least, best


@bare
def slice_score(
    node: NodeView,
    cuts: Cuts,
    shapes: Shapes,
    rules: Rules,
    seen: View,
    trial: View,
    shape: int,
) -> int:
    """Score of a shape that asks for slices."""
    total = _base(node, shapes, rules, shape)
    if total == NO:
        return NO
    # Slices are taken one by one, so they are tried out on a copy.
    for device in range(seen.shape[1]):
        for line in range(seen.shape[0]):
            trial[line, device] = seen[line, device]
    weights = rules.weights[FORM_SLICES]
    profile, untouched, left = shapes[shape, SHAPE_PROFILE], node.untouched, 0
    for _ in range(shapes[shape, SHAPE_SHARES]):
        device = best_slice(trial, cuts, shapes, shape)
        if device < 0:
            return NO
        state, cut = trial[VIEW_STATE, device], trial[VIEW_CUT, device]
        total += weights[_SLICES_LOST] * cuts.growth[cut, state, profile]
        untouched -= state == 0
        trial[VIEW_STATE, device] |= cuts.mask[cut, state, profile]
        left += _SLICE * (_SLICES - ones(trial[VIEW_STATE, device] & 255))
    total += weights[_DEVICES_LEFT] * untouched
    total += weights[_BLOCKS_LEFT] * (left // shapes[shape, SHAPE_SHARES])
    cpu_left = node.cpu - shapes[shape, SHAPE_CPU]
    return bounded(total + growth(node.loss, cpu_left, rules.loss, weights, seen))


@inlined
def _base(node: NodeView, shapes: Shapes, rules: Rules, shape: int) -> int:
    cpu, memory = shapes[shape, SHAPE_CPU], shapes[shape, SHAPE_MEMORY]
    cpu_left, memory_left = node.cpu - cpu, node.memory - memory
    if cpu_left < 0 or memory_left < 0:
        return NO
    weights = rules.weights[shapes[shape, SHAPE_FORM]]
    total = weights[_CPU_LEFT] * int(cpu_left * node.cpu_scale)
    total += weights[_MEMORY_LEFT] * int(memory_left * node.memory_scale)
    if weights[_ALIGNED] != 0:
        total += weights[_ALIGNED] * _aligned(node, shapes, shape)
    if weights[_CHANCE] != 0:
        total += weights[_CHANCE] * by_chance(node.chance, shapes, shape, node.cpu + node.blocks)
    return int(total)


@bare
def _whole_score(
    node: NodeView, shapes: Shapes, rules: Rules, seen: View, shape: int, base: int
) -> int:
    shares, weights = shapes[shape, SHAPE_SHARES], rules.weights[FORM_WHOLE]
    if whole_free(seen, shapes, shape) < shares:
        return NO
    total = base + weights[_DEVICES_LEFT] * (node.untouched - shares)
    total += weights[_NODE_LEFT] * (node.blocks - WHOLE * shares)
    cpu_left = node.cpu - shapes[shape, SHAPE_CPU]
    hide_whole(seen, shapes, shape, shares)
    total += growth(node.loss, cpu_left, rules.loss, weights, seen)
    show_whole(seen)
    return bounded(total)


@bare
def _aligned(node: NodeView, shapes: Shapes, shape: int) -> int:
    asked, free = shapes[shape, SHAPE_CPU] * node.cpu_scale, node.cpu * node.cpu_scale
    total = asked * free
    asked, free = shapes[shape, SHAPE_MEMORY] * node.memory_scale, node.memory * node.memory_scale
    total += asked * free
    if node.devices > 0 and shapes[shape, SHAPE_FORM] in (FORM_WHOLE, FORM_BLOCKS):
        scale = 1000.0 / (WHOLE * node.devices)
        blocks = shapes[shape, SHAPE_SHARES] * shapes[shape, SHAPE_BLOCKS]
        total += blocks * scale * node.blocks * scale
    return int(total / 1000.0)


@inlined
def _same_before(seen: View, device: int) -> bool:
    """Whether an earlier device looks the same, so that this one need not be tried."""
    for earlier in range(device):
        same = seen[VIEW_FREE, earlier] == seen[VIEW_FREE, device]
        same &= seen[VIEW_KIND, earlier] == seen[VIEW_KIND, device]
        if same and seen[VIEW_MEMORY, earlier] == seen[VIEW_MEMORY, device]:
            return True
    return False
