"""Runs the kernels of windows once, with the types that all worlds have."""

import numpy as np

from atoll.core.engine.windows.bookings import Bookings
from atoll.core.engine.windows.kept import Parts
from atoll.core.model.booking import NodeShare, OccurrenceId, Window
from atoll.core.model.ids import ClusterName
from atoll.core.model.resources import DeviceGrant
from atoll.core.state.world import World


def warm_windows(world: World, now: float) -> None:
    """Look at what runs beside a window of a part of a node; `world` has a node."""
    node = next(iter(world.freeze(now).row_of))
    share = NodeShare(node, "", cpu_milli=1, devices=(DeviceGrant(0, slice_mask=1, profile=""),))
    number = OccurrenceId(1)
    world.put_windows([Window(number, "warm", now + 1, now + 2, ClusterName("warm"), (share,))])
    snapshot = world.freeze(now)
    bookings = Bookings(snapshot, now)
    every = np.ones(len(bookings.view), np.bool_)
    Parts(bookings, None).kept(snapshot.nodes, every, bookings.rows_of(every))
    world.drop_windows([number])
