"""The score of a shape by its form: whole devices, shares of one, slices, or none at all."""

from typing import Final

from atoll.core.engine.loss_kernels import (
    NO_PARTS,
    has_parts,
    less_a_share,
    parts_of,
)
from atoll.core.engine.score_kernels import NO, NodeView, Rules, base_score
from atoll.core.engine.term_kernels import (
    bounded,
    growth,
    hide_whole,
    looks_at_loss,
    show_whole,
    terms_of,
)
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
    SHAPE_PROFILE,
    SHAPE_SHARES,
    Cuts,
    Shapes,
)
from atoll.core.state.compiled import bare, inlined
from atoll.core.state.fit_kernels import (
    ANY_DEVICE,
    UNUSABLE,
    VIEW_AGAIN,
    VIEW_CUT,
    VIEW_FREE,
    VIEW_STATE,
    WHOLE,
    View,
    best_slice,
    left_of_share,
    ones,
    whole_free,
)

_DEVICES_LEFT: Final = int(Term.DEVICES_LEFT)
_BLOCKS_LEFT: Final = int(Term.BLOCKS_LEFT)
_DEVICES_BROKEN: Final = int(Term.DEVICES_BROKEN)
_DEVICES_IDLE: Final = int(Term.DEVICES_IDLE)
_SLICES_LOST: Final = int(Term.SLICES_LOST)
_NODE_LEFT: Final = int(Term.NODE_LEFT)
_SLICE: Final = 12
_SLICES: Final = 8


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
    if form == FORM_WHOLE and shapes[shape, SHAPE_SHARES] > node.untouched:
        return NO
    total = base_score(node, shapes, rules, shape)
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
    best, least = ANY_DEVICE, NO
    # Most nodes are full, and that is seen without a look at their devices.
    if shapes[shape, SHAPE_FORM] == FORM_BLOCKS and shapes[shape, SHAPE_BLOCKS] > node.most:
        return NO, best
    base = base_score(node, shapes, rules, shape)
    if base == NO:
        return NO, best
    weights, tables = rules.weights[shapes[shape, SHAPE_FORM]], rules.loss
    cpu_left = node.cpu - shapes[shape, SHAPE_CPU]
    in_parts = looks_at_loss(weights) and has_parts(tables)
    parts = NO_PARTS
    for device in range(seen.shape[1]):
        left = left_of_share(seen, shapes, shape, device)
        if left < 0 or seen[VIEW_AGAIN, device]:
            continue
        free, total = seen[VIEW_FREE, device], base
        total += weights[_DEVICES_LEFT] * (node.untouched - (free == WHOLE))
        total += weights[_DEVICES_BROKEN] * (free == WHOLE and left > 0)
        total += weights[_BLOCKS_LEFT] * left + weights[_NODE_LEFT] * (node.blocks - free + left)
        if in_parts:
            if least == NO:
                parts = parts_of(seen, cpu_left, tables)
            grown = less_a_share(parts, seen, device, left, tables) - node.loss
            total += terms_of(grown, tables, weights)
        else:
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
    if node.sliced == 0:
        return NO
    total = base_score(node, shapes, rules, shape)
    if total == NO:
        return NO
    # Slices are taken one by one, so they are tried out on a copy.
    for device in range(seen.shape[1]):
        for line in range(seen.shape[0]):
            trial[line, device] = seen[line, device]
    weights = rules.weights[FORM_SLICES]
    profile, untouched, left, broken = shapes[shape, SHAPE_PROFILE], node.untouched, 0, 0
    for _ in range(shapes[shape, SHAPE_SHARES]):
        device = best_slice(trial, cuts, shapes, shape)
        if device < 0:
            return NO
        state, cut = trial[VIEW_STATE, device], trial[VIEW_CUT, device]
        total += weights[_SLICES_LOST] * cuts.growth[cut, state, profile]
        untouched -= state == 0
        broken += trial[VIEW_FREE, device] == WHOLE
        trial[VIEW_FREE, device] = UNUSABLE
        trial[VIEW_STATE, device] |= cuts.mask[cut, state, profile]
        left += _SLICE * (_SLICES - ones(trial[VIEW_STATE, device] & 255))
    total += weights[_DEVICES_LEFT] * untouched + weights[_DEVICES_BROKEN] * broken
    total += weights[_BLOCKS_LEFT] * (left // shapes[shape, SHAPE_SHARES])
    cpu_left = node.cpu - shapes[shape, SHAPE_CPU]
    return bounded(total + growth(node.loss, cpu_left, rules.loss, weights, trial))


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
