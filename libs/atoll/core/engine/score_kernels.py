"""The score of a task on a node: a weighted sum of terms, or NO when it does not fit.

It depends on the node's hardware and what is free of it, on the shape, and on what is
the same for a whole cycle; only a policy that plays by chance looks at the node itself.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.loss_kernels import (
    LossTables,
    loss,
)
from atoll.core.engine.term_kernels import (
    by_chance,
)
from atoll.core.policies.interfaces import Term
from atoll.core.state.columns import (
    FORM_BLOCKS,
    FORM_WHOLE,
    SHAPE_BLOCKS,
    SHAPE_CPU,
    SHAPE_FORM,
    SHAPE_MEMORY,
    SHAPE_SHARES,
    Cuts,
    Models,
    Nodes,
    Shapes,
)
from atoll.core.state.compiled import bare, inlined
from atoll.core.state.fit_kernels import (
    VIEW_AGAIN,
    VIEW_FREE,
    VIEW_KIND,
    VIEW_MEMORY,
    VIEW_STATE,
    WHOLE,
    Devices,
    View,
    look,
)

NO: Final = np.iinfo(np.int32).max
"""No score: it does not fit."""

_CPU_LEFT: Final = int(Term.CPU_LEFT)
_MEMORY_LEFT: Final = int(Term.MEMORY_LEFT)
_ALIGNED: Final = int(Term.ALIGNED)
_CHANCE: Final = int(Term.CHANCE)


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
    most: int
    """Free on one device."""
    sliced: int
    """Devices that are handed out in slices."""
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
    _mark_again(seen)
    untouched, devices, blocks, most, sliced = 0, 0, 0, 0, 0
    for device in range(seen.shape[1]):
        free = seen[VIEW_FREE, device]
        untouched += free == WHOLE or seen[VIEW_STATE, device] == 0
        devices += nodes.model[row, device] != 0
        blocks += max(0, free)
        most = max(most, free)
        sliced += seen[VIEW_STATE, device] >= 0
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
        most,
        sliced,
        loss(seen, free_cpu, rules.loss),
        nodes.id[row] * rules.seed[0],
    )


@inlined
def base_score(node: NodeView, shapes: Shapes, rules: Rules, shape: int) -> int:
    """What every form of shapes has in its score; NO when CPU or memory do not suffice."""
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


@inlined
def _mark_again(seen: View) -> None:
    """Find the devices that look like an earlier one, so that they need not be tried."""
    for device in range(seen.shape[1]):
        again = False
        for earlier in range(device):
            same = seen[VIEW_FREE, earlier] == seen[VIEW_FREE, device]
            same &= seen[VIEW_KIND, earlier] == seen[VIEW_KIND, device]
            again |= same and seen[VIEW_MEMORY, earlier] == seen[VIEW_MEMORY, device]
        seen[VIEW_AGAIN, device] = again


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
